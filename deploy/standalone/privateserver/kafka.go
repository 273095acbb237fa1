package privateserver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/secure"
)

// The user of the embedded broker.
const (
	KafkaUsername  = "doorward"
	KafkaMechanism = "SCRAM-SHA-256"
)

// StartKafka runs the embedded broker until the process ends.
func StartKafka(p *run.Process, dir string, password secure.Secret) (address string, err error) {
	cluster, err := OpenBroker(dir, password)
	if err != nil {
		return "", err
	}
	p.OnClose("embedded Kafka", func(context.Context) error {
		cluster.Close()
		return nil
	})
	return cluster.ListenAddrs()[0], nil
}

// OpenBroker starts an embedded broker of the Kafka protocol on loopback, which
// keeps its log in the data folder and writes it through to the disk. It asks for
// the password.
func OpenBroker(dir string, password secure.Secret) (*kfake.Cluster, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	// The broker keeps the users of its last run, whose password was another one.
	if err := os.RemoveAll(filepath.Join(dir, "sasl.json")); err != nil {
		return nil, err
	}
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1), kfake.ListenFn(listenKafka), kfake.DataDir(dir), kfake.SyncWrites(),
		kfake.DefaultNumPartitions(6),
		kfake.EnableSASL(), kfake.Superuser(KafkaMechanism, KafkaUsername, password.Reveal()),
	)
	if err != nil {
		return nil, fmt.Errorf("start the embedded Kafka in %s: %w", dir, err)
	}
	return cluster, nil
}

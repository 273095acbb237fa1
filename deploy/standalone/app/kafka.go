package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/secure"
)

// The user of the embedded broker.
const (
	kafkaUsername  = "doorward"
	kafkaMechanism = "SCRAM-SHA-256"
)

// brokerFile is the file of the data folder that says how the commands of doorward
// reach the embedded broker while the process runs.
const brokerFile = "broker.json"

// broker is the content of brokerFile.
type broker struct {
	Address  string `json:"address"`
	Password string `json:"password"`
}

// setVariables makes the broker the Kafka of the source.
func (b broker) setVariables(source *env.Source) {
	source.SetDefault("KAFKA_BROKERS", b.Address)
	source.SetDefault("KAFKA_USERNAME", kafkaUsername)
	source.SetDefault("KAFKA_PASSWORD", b.Password)
	source.SetDefault("KAFKA_SASL_MECHANISM", kafkaMechanism)
}

// resolveBroker sets the variables KAFKA_… of the source: unless the environment names
// brokers, to the embedded broker of the standalone process that runs on the data folder.
func resolveBroker(source *env.Source) error {
	if source.Has("KAFKA_BROKERS") {
		return nil
	}
	var cfg Config
	source.Load(&cfg)
	var private broker
	data := folder{path: cfg.DataDir}
	exists, err := data.readJSON(brokerFile, &private)
	if err != nil {
		return err
	}
	if !exists || namesADatabase(source) { // of another deployment
		return fmt.Errorf("KAFKA_BROKERS is missing, and no standalone with a broker of its own runs on %s; set it, or DOORWARD_DATA_DIR",
			cfg.DataDir)
	}
	private.setVariables(source)
	return nil
}

// startKafka runs the embedded broker until the process ends.
func startKafka(p *run.Process, dir string, password secure.Secret) (address string, err error) {
	cluster, err := openBroker(dir, password)
	if err != nil {
		return "", err
	}
	p.OnClose("embedded Kafka", func(context.Context) error {
		cluster.Close()
		return nil
	})
	return cluster.ListenAddrs()[0], nil
}

// openBroker starts an embedded broker of the Kafka protocol on loopback, which
// keeps its log in the data folder and writes it through to the disk. It asks for
// the password.
func openBroker(dir string, password secure.Secret) (*kfake.Cluster, error) {
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
		kfake.EnableSASL(), kfake.Superuser(kafkaMechanism, kafkaUsername, password.Reveal()),
	)
	if err != nil {
		return nil, fmt.Errorf("start the embedded Kafka in %s: %w", dir, err)
	}
	return cluster, nil
}

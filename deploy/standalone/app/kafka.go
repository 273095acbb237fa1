package app

import (
	"context"
	"fmt"
	"os"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/doorward/doorward/pkg/run"
)

// startKafka runs an embedded broker of the Kafka protocol on loopback, which
// keeps its log in the data folder and writes it through to the disk.
func startKafka(p *run.Process, dir string) (address string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DataDir(dir), kfake.SyncWrites(), kfake.DefaultNumPartitions(6))
	if err != nil {
		return "", fmt.Errorf("start the embedded Kafka in %s: %w", dir, err)
	}
	p.OnClose("embedded Kafka", func(context.Context) error {
		cluster.Close()
		return nil
	})
	return cluster.ListenAddrs()[0], nil
}

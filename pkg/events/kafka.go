package events

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
)

// Config says where Kafka is.
type Config struct {
	Brokers    []string `env:"KAFKA_BROKERS" required:"true" help:"comma-separated addresses of Kafka brokers, host:port"`
	Partitions int      `env:"DOORWARD_KAFKA_PARTITIONS" default:"6" min:"1" help:"partitions of a topic that this process creates"`
}

// Topic names where a service's events go; what no consumer could digest goes
// to the topic of that name with ".dead" at its end.
func Topic(service string) string { return "doorward." + service }

// dead names the topic of the events of topic that were set aside.
func dead(topic string) string { return topic + ".dead" }

// createTopics makes a service's topics where they do not exist. Replication
// is the broker's default.
func createTopics(ctx context.Context, cfg Config, topics ...string) error {
	client := &kafka.Client{Addr: kafka.TCP(cfg.Brokers...), Timeout: 10 * time.Second}
	request := &kafka.CreateTopicsRequest{}
	for _, topic := range topics {
		request.Topics = append(request.Topics, kafka.TopicConfig{Topic: topic, NumPartitions: cfg.Partitions, ReplicationFactor: -1})
	}
	answer, err := client.CreateTopics(ctx, request)
	if err != nil {
		return fmt.Errorf("create the topics %v: %w", topics, err)
	}
	for topic, err := range answer.Errors {
		if err != nil && !errors.Is(err, kafka.TopicAlreadyExists) {
			return fmt.Errorf("create the topic %s: %w", topic, err)
		}
	}
	return nil
}

// newWriter makes a writer whose messages are acknowledged by all replicas.
// Messages of one key go to one partition, so they keep their order.
func newWriter(cfg Config) *kafka.Writer {
	return &kafka.Writer{
		Addr:         kafka.TCP(cfg.Brokers...),
		Balancer:     &kafka.Murmur2Balancer{},
		RequiredAcks: kafka.RequireAll,
		BatchTimeout: 2 * time.Millisecond,
		BatchSize:    500,
		MaxAttempts:  3,
		WriteTimeout: 10 * time.Second,
		ReadTimeout:  10 * time.Second,
	}
}

// firstPause is the pause after the first failure in a row; each further one
// doubles it, up to a hundredfold.
var firstPause = 100 * time.Millisecond

// backoff gives the pause after the n-th failure in a row, counted from 0.
func backoff(n int) time.Duration {
	return min(firstPause<<min(n, 10), 100*firstPause)
}

// pause waits, or ends early with ctx.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

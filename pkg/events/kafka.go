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

// newClient makes a client that knows the brokers and partitions of the topics,
// as they were a moment ago; createTopics waits in vain for one that it was not
// told of. leave ends its connections.
func newClient(cfg Config, topics []string) (client *kafka.Client, leave func()) {
	transport := &kafka.Transport{MetadataTTL: 3 * time.Second, MetadataTopics: topics}
	return &kafka.Client{Addr: kafka.TCP(cfg.Brokers...), Timeout: 10 * time.Second, Transport: transport}, transport.CloseIdleConnections
}

// createTopics makes a service's topics where they do not exist. Replication
// is the broker's default.
func createTopics(ctx context.Context, client *kafka.Client, cfg Config, topics ...string) error {
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

// groupOffset gives the offset up to which a consumer group had read a
// partition, or kafka.FirstOffset where it had read nothing.
func groupOffset(ctx context.Context, client *kafka.Client, group, topic string, partition int) (int64, error) {
	answer, err := client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: group, Topics: map[string][]int{topic: {partition}}})
	if err == nil {
		err = answer.Error
	}
	offset := kafka.FirstOffset
	if err == nil && len(answer.Topics[topic]) == 1 {
		found := answer.Topics[topic][0]
		if err = found.Error; found.CommittedOffset >= 0 {
			offset = found.CommittedOffset
		}
	}
	if err != nil && !errors.Is(err, kafka.GroupIdNotFound) {
		return 0, fmt.Errorf("ask for the offset of the group %s: %w", group, err)
	}
	return offset, nil
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

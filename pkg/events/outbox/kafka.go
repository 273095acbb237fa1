package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/doorward/doorward/pkg/secure"
)

const requestTimeout = 10 * time.Second

// Config says where Kafka is, and under which secret events are signed.
type Config struct {
	Brokers    []string      `env:"KAFKA_BROKERS" required:"true"`
	Partitions int           `env:"DOORWARD_KAFKA_PARTITIONS" default:"6" min:"1"`
	Username   string        `env:"KAFKA_USERNAME" help:"user name, where the brokers ask for one"`
	Password   secure.Secret `env:"KAFKA_PASSWORD" help:"password of that user"`
	Mechanism  string        `env:"KAFKA_SASL_MECHANISM" default:"SCRAM-SHA-512"`
	TLS        bool          `env:"KAFKA_TLS" default:"false" help:"whether connections to the brokers are encrypted"`
	CA         string        `env:"KAFKA_CA"`
	Secret     secure.Secret `env:"DOORWARD_INTERNAL_SECRET"`
	Accepted   secure.Secret `env:"DOORWARD_INTERNAL_SECRET_ACCEPTED"`
}

// Help has the help texts that are longer than a line.
func (Config) Help() map[string]string {
	return map[string]string{
		"KAFKA_BROKERS":             "comma-separated addresses of Kafka brokers, host:port",
		"DOORWARD_KAFKA_PARTITIONS": "partitions of a topic that this process creates",
		"KAFKA_SASL_MECHANISM":      "how that user authenticates: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512",
		"KAFKA_CA": "CA certificates in PEM to verify the brokers with, instead of those of the " +
			"system",
		"DOORWARD_INTERNAL_SECRET": "secret of at least 32 characters that all processes of the deployment share; " +
			"make one with: openssl rand -hex 32",
		"DOORWARD_INTERNAL_SECRET_ACCEPTED": "previous or next internal secret, accepted during a rotation",
	}
}

// Topic returns the topic of the events of a service. Their dead letters are in the topic with
// ".dead" at the end of its name.
func Topic(service string) string { return "doorward." + service }

// deadLetterTopic returns the topic of the dead letters of a topic.
func deadLetterTopic(topic string) string { return topic + ".dead" }

// newClient makes a Kafka client with the metadata of the topics. closeClient closes its
// connections.
func newClient(cfg Config, topics []string) (client *kafka.Client, closeClient func(), err error) {
	transport, err := cfg.transport()
	if err != nil {
		return nil, nil, err
	}
	transport.MetadataTTL, transport.MetadataTopics = 3*time.Second, topics
	client = &kafka.Client{Addr: kafka.TCP(cfg.Brokers...), Timeout: fetchWait + requestTimeout, Transport: transport}
	return client, transport.CloseIdleConnections, nil
}

// createTopics creates the topics that do not exist, with the default replication factor of the
// broker. The client must have been made for these topics.
func createTopics(ctx context.Context, client *kafka.Client, cfg Config, topics ...string) error {
	request := &kafka.CreateTopicsRequest{}
	for _, topic := range topics {
		request.Topics = append(request.Topics, kafka.TopicConfig{Topic: topic, NumPartitions: cfg.Partitions,
			ReplicationFactor: -1})
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
	return awaitTopics(ctx, client, topics)
}

// awaitTopics waits until the broker lists the partitions of the topics. A new topic is not listed
// at once, and a consumer group that forms before would be assigned no partitions, also not later
// unless the number of partitions changes.
func awaitTopics(ctx context.Context, client *kafka.Client, topics []string) error {
	for {
		answer, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: topics})
		if err != nil {
			return fmt.Errorf("look up the topics %v: %w", topics, err)
		}
		missing := slices.ContainsFunc(answer.Topics, func(t kafka.Topic) bool {
			return t.Error != nil || len(t.Partitions) == 0
		})
		if !missing && len(answer.Topics) == len(topics) {
			return nil
		}
		if err := wait(ctx, firstBackoff); err != nil {
			return err
		}
	}
}

// newProducer makes a Kafka producer (kafka.Writer) with acks=all: all in-sync replicas of the broker
// acknowledge a message. Messages with the same key go to one partition, so that they keep their
// order. closeWriter closes its connections.
func newProducer(cfg Config) (writer *kafka.Writer, closeWriter func(), err error) {
	transport, err := cfg.transport()
	if err != nil {
		return nil, nil, err
	}
	writer = &kafka.Writer{
		Transport:    transport,
		Addr:         kafka.TCP(cfg.Brokers...),
		Balancer:     &kafka.Murmur2Balancer{},
		RequiredAcks: kafka.RequireAll,
		BatchTimeout: 2 * time.Millisecond,
		BatchSize:    500,
		MaxAttempts:  3,
		WriteTimeout: requestTimeout,
		ReadTimeout:  requestTimeout,
	}
	return writer, func() {
		_ = writer.Close()
		transport.CloseIdleConnections()
	}, nil
}

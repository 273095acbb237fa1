package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/doorward/doorward/pkg/events"
)

// resolvedGroup is the consumer group whose committed offsets say which dead letters were resolved.
const resolvedGroup = "doorward.deadletters"

// DeadLetter is a message that a consumer group could not handle (dead letter queue, poison message).
type DeadLetter struct {
	Topic string    `json:"topic"` // topic of the event, without ".dead"
	Group string    `json:"group"`
	Error string    `json:"error"`
	Event string    `json:"event"` // name of its type; empty where it cannot be read
	ID    string    `json:"id"`    // of the event
	At    time.Time `json:"at"`

	message kafka.Message
}

// Inspector reads the topics and consumer groups of a deployment, and changes their offsets, for the
// commands of operators (deploy/standalone/app): consumer lag, dead letters (deadletters.go), and the
// reset of offsets after a restore (rewind.go).
type Inspector struct {
	cfg    Config
	client *kafka.Client
	writer *kafka.Writer
	close  []func()
}

// NewInspector makes the connections to Kafka; Close closes them.
func NewInspector(cfg Config) (*Inspector, error) {
	client, closeClient, err := newClient(cfg, nil)
	if err != nil {
		return nil, err
	}
	writer, closeWriter, err := newProducer(cfg)
	if err != nil {
		closeClient()
		return nil, err
	}
	return &Inspector{cfg, client, writer, []func(){closeClient, closeWriter}}, nil
}

// Close closes the connections.
func (i *Inspector) Close() {
	for _, end := range i.close {
		end()
	}
}

// partitionsOf returns the partitions of the product's topics, or of those of dead letters.
func (i *Inspector) partitionsOf(ctx context.Context, dead bool) (map[string][]int, error) {
	answer, err := i.client.Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return nil, err
	}
	found := map[string][]int{}
	for _, topic := range answer.Topics {
		if !strings.HasPrefix(topic.Name, Topic("")) || strings.HasSuffix(topic.Name, deadLetterTopic("")) != dead {
			continue
		}
		for _, p := range topic.Partitions {
			found[topic.Name] = append(found[topic.Name], p.ID)
		}
	}
	return found, nil
}

// offsetRange has the offsets of a partition from next to before end.
type offsetRange struct{ next, end int64 }

// uncommitted returns the offsets of the partitions that a group has not committed. It leaves out
// partitions of which the group has committed no offset, unless the group is resolvedGroup.
func (i *Inspector) uncommitted(
	ctx context.Context, group string, topics map[string][]int,
) (map[string]map[int]offsetRange, error) {
	known, err := offsets(ctx, i.client, topics, kafka.FirstOffsetOf, kafka.LastOffsetOf)
	if err != nil {
		return nil, err
	}
	committed, err := i.committed(ctx, group, topics)
	if err != nil {
		return nil, err
	}
	found := map[string]map[int]offsetRange{}
	for topic, partitions := range known {
		found[topic] = map[int]offsetRange{}
		for n, p := range partitions {
			if offset, reads := committed[topic][n]; reads || group == resolvedGroup {
				found[topic][n] = offsetRange{max(p.FirstOffset, offset), p.LastOffset}
			}
		}
	}
	return found, nil
}

// Lag returns how many events the consumer group of a service has not handled yet.
func (i *Inspector) Lag(ctx context.Context, service string) (events int64, err error) {
	topics, err := i.partitionsOf(ctx, false)
	if err != nil || len(topics) == 0 {
		return 0, err
	}
	ranges, err := i.uncommitted(ctx, Topic(service), topics)
	for _, partitions := range ranges {
		for _, s := range partitions {
			events += max(0, s.end-s.next)
		}
	}
	return events, err
}

// DeadLetters returns the dead letters that are not resolved.
func (i *Inspector) DeadLetters(ctx context.Context) (list []DeadLetter, err error) {
	err = i.eachPartition(ctx, func(_ string, _ int, _ offsetRange, letters []DeadLetter) error {
		list = append(list, letters...)
		return nil
	})
	return list, err
}

// eachPartition calls do with the unresolved dead letters of each partition.
func (i *Inspector) eachPartition(
	ctx context.Context, do func(topic string, partition int, s offsetRange, letters []DeadLetter) error,
) error {
	topics, err := i.partitionsOf(ctx, true)
	if err != nil || len(topics) == 0 {
		return err
	}
	ranges, err := i.uncommitted(ctx, resolvedGroup, topics)
	if err != nil {
		return err
	}
	for topic, partitions := range ranges {
		for partition, s := range partitions {
			messages, err := i.readMessages(ctx, topic, partition, s)
			if err != nil {
				return err
			}
			var letters []DeadLetter
			for _, message := range messages {
				letters = append(letters, deadLetterOf(message))
			}
			if err := do(topic, partition, s, letters); err != nil {
				return err
			}
		}
	}
	return nil
}

// readMessages reads the messages of a partition that are in a range of its offsets.
func (i *Inspector) readMessages(
	ctx context.Context, topic string, partition int, s offsetRange,
) (list []kafka.Message, err error) {
	for next := s.next; next < s.end; {
		answer, err := i.client.Fetch(ctx, &kafka.FetchRequest{
			Topic: topic, Partition: partition, Offset: next, MinBytes: 1, MaxBytes: 1 << 20, MaxWait: time.Second,
		})
		if err == nil {
			err = answer.Error
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", topic, err)
		}
		before := next
		for {
			record, err := answer.Records.ReadRecord()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", topic, err)
			}
			if record.Offset < next || record.Offset >= s.end {
				continue
			}
			message := kafka.Message{Topic: topic, Headers: record.Headers, Time: record.Time}
			if message.Key, err = kafka.ReadAll(record.Key); err != nil {
				return nil, err
			}
			if message.Value, err = kafka.ReadAll(record.Value); err != nil {
				return nil, err
			}
			list, next = append(list, message), record.Offset+1
		}
		if next == before {
			return list, nil // the rest of the range was deleted by the broker
		}
	}
	return list, nil
}

// deadLetterOf describes a message of a topic of dead letters.
func deadLetterOf(message kafka.Message) DeadLetter {
	letter := DeadLetter{Topic: strings.TrimSuffix(message.Topic, deadLetterTopic("")), At: message.Time,
		message: message}
	letter.message.Time = time.Time{} // a message that is sent again has the time at which it is sent
	var e events.Envelope
	if json.Unmarshal(letter.message.Value, &e) == nil {
		letter.Event, letter.ID, letter.At = e.Type, e.ID.String(), e.At
	}
	for _, header := range message.Headers {
		switch header.Key {
		case "group":
			letter.Group = string(header.Value)
		case "error":
			letter.Error = string(header.Value)
		}
	}
	return letter
}

// Resolve removes the chosen dead letters from the list, and with retry sends them to their topic
// again, where Tx.Seen prevents a second effect in the groups that have handled them. The other dead
// letters of a partition are first written to its end: after an interruption some are there twice,
// and none is lost. It returns the number of resolved dead letters.
func (i *Inspector) Resolve(ctx context.Context, retry bool, chosen func(DeadLetter) bool) (n int, err error) {
	err = i.eachPartition(ctx, func(topic string, partition int, s offsetRange, letters []DeadLetter) error {
		if !slices.ContainsFunc(letters, chosen) {
			return nil
		}
		var out []kafka.Message
		taken := 0
		for _, letter := range letters {
			message := letter.message
			switch {
			case !chosen(letter):
				out = append(out, message)
				continue
			case retry:
				message.Topic = letter.Topic
				message.Headers = slices.DeleteFunc(slices.Clone(message.Headers),
					func(h kafka.Header) bool { return h.Key != signatureHeader })
				out = append(out, message)
			}
			taken++
		}
		if len(out) > 0 {
			if err := i.writer.WriteMessages(ctx, out...); err != nil {
				return fmt.Errorf("write to %s: %w", topic, err)
			}
		}
		answer, err := i.client.OffsetCommit(ctx, &kafka.OffsetCommitRequest{
			GroupID: resolvedGroup, GenerationID: -1,
			Topics: map[string][]kafka.OffsetCommit{topic: {{Partition: partition, Offset: s.end}}},
		})
		if err != nil {
			return fmt.Errorf("commit the offset of %s/%d: %w", topic, partition, err)
		}
		for _, p := range answer.Topics[topic] {
			if p.Error != nil {
				return fmt.Errorf("commit the offset of %s/%d: %w", topic, partition, p.Error)
			}
		}
		n += taken
		return nil
	})
	return n, err
}

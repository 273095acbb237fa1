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

// resolvedGroup is the consumer group whose offsets say up to where dead letters
// have been dealt with.
const resolvedGroup = "doorward.deadletters"

// DeadLetter is a message that a group could not handle.
type DeadLetter struct {
	Topic string    `json:"topic"` // of the event, without ".dead"
	Group string    `json:"group"`
	Error string    `json:"error"`
	Event string    `json:"event"` // name of its type; empty where it cannot be read
	ID    string    `json:"id"`    // of the event
	At    time.Time `json:"at"`

	message kafka.Message
}

// Inspector looks at the topics and groups of a deployment from outside.
type Inspector struct {
	cfg    Config
	client *kafka.Client
	writer *kafka.Writer
	close  []func()
}

// NewInspector connects to Kafka. Close ends it.
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

// Close ends the connections.
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

// span is what a partition holds that a group has not committed.
type offsetRange struct{ next, end int64 }

// uncommitted returns what the partitions hold that a group has not committed. Only
// those count from which it has committed something, but for resolvedGroup all.
func (i *Inspector) uncommitted(ctx context.Context, group string, topics map[string][]int) (map[string]map[int]offsetRange, error) {
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

// Lag returns how many events the group of a service has still to handle.
func (i *Inspector) Lag(ctx context.Context, service string) (events int64, err error) {
	topics, err := i.partitionsOf(ctx, false)
	if err != nil || len(topics) == 0 {
		return 0, err
	}
	spans, err := i.uncommitted(ctx, Topic(service), topics)
	for _, partitions := range spans {
		for _, s := range partitions {
			events += max(0, s.end-s.next)
		}
	}
	return events, err
}

// DeadLetters returns the dead letters that have not been dealt with.
func (i *Inspector) DeadLetters(ctx context.Context) (list []DeadLetter, err error) {
	err = i.eachPartition(ctx, func(_ string, _ int, _ offsetRange, letters []DeadLetter) error {
		list = append(list, letters...)
		return nil
	})
	return list, err
}

func (i *Inspector) eachPartition(ctx context.Context, do func(topic string, partition int, s offsetRange, letters []DeadLetter) error) error {
	topics, err := i.partitionsOf(ctx, true)
	if err != nil || len(topics) == 0 {
		return err
	}
	spans, err := i.uncommitted(ctx, resolvedGroup, topics)
	if err != nil {
		return err
	}
	for topic, partitions := range spans {
		for partition, s := range partitions {
			letters, err := i.readDeadLetters(ctx, topic, partition, s)
			if err != nil {
				return err
			}
			if err := do(topic, partition, s, letters); err != nil {
				return err
			}
		}
	}
	return nil
}

func (i *Inspector) readDeadLetters(ctx context.Context, topic string, partition int, s offsetRange) (list []DeadLetter, err error) {
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
			letter, err := deadLetterOf(topic, record)
			if err != nil {
				return nil, err
			}
			list, next = append(list, letter), record.Offset+1
		}
		if next == before {
			return list, nil // the rest of the span has been deleted
		}
	}
	return list, nil
}

func deadLetterOf(topic string, record *kafka.Record) (letter DeadLetter, err error) {
	letter = DeadLetter{Topic: strings.TrimSuffix(topic, deadLetterTopic("")), At: record.Time}
	letter.message = kafka.Message{Topic: topic, Headers: record.Headers}
	if letter.message.Key, err = kafka.ReadAll(record.Key); err != nil {
		return letter, err
	}
	if letter.message.Value, err = kafka.ReadAll(record.Value); err != nil {
		return letter, err
	}
	var e events.Envelope
	if json.Unmarshal(letter.message.Value, &e) == nil {
		letter.Event, letter.ID, letter.At = e.Type, e.ID.String(), e.At
	}
	for _, header := range record.Headers {
		switch header.Key {
		case "group":
			letter.Group = string(header.Value)
		case "error":
			letter.Error = string(header.Value)
		}
	}
	return letter, nil
}

// Resolve takes the chosen dead letters off the list, and with retry sends them to
// their topic once more, where Tx.Seen keeps the groups that have handled them
// from a second effect. The others of a partition are written to its end first:
// when that is cut short, some are there twice, and none is lost.
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
				message.Headers = slices.DeleteFunc(slices.Clone(message.Headers), func(h kafka.Header) bool { return h.Key != signatureHeader })
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

package outbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/segmentio/kafka-go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

const (
	// fetchWait is how long the broker holds a request for messages while there
	// are none; it answers when the first comes.
	fetchWait = 10 * time.Second
	// commitInterval bounds how many events a process that is killed leaves to be
	// read again.
	commitInterval = 100 * time.Millisecond
)

// partition is one that the group has assigned to this process for a generation.
type partition struct {
	*consumer
	generation  *kafka.Generation
	topic       string
	number      int
	next        int64 // offset of the next message
	committed   int64 // the same, as the broker has it
	committedAt time.Time
}

// process handles the partition's messages until ctx ends. When an offset cannot
// be committed it ends the generation: another member may have the partition.
func (p *partition) process(ctx context.Context, end func()) {
	defer p.recordLag(ctx, 0) // the next member that reads it reports it
	defer func() { _ = p.commit() }()
	retry(ctx, "reading events", p.topic, func(ctx context.Context) error {
		for {
			messages, err := p.fetch(ctx)
			if err != nil {
				return err
			}
			for i, message := range messages {
				p.recordLag(ctx, message.HighWaterMark-message.Offset)
				if err := p.handle(ctx, message); err != nil {
					return err
				}
				p.next = message.Offset + 1
				if i < len(messages)-1 && time.Since(p.committedAt) < commitInterval {
					continue
				}
				if err := p.commit(); err != nil {
					end()
					return err
				}
				p.recordLag(ctx, message.HighWaterMark-p.next)
			}
		}
	})
}

// fetch waits a while for messages and returns at most about a megabyte of them.
// Where the broker does not have the next one, because it has deleted old
// messages or because the topic was made again and is shorter, reading continues
// at the first one that it has: Tx.Seen recognises those that were handled.
func (p *partition) fetch(ctx context.Context) (messages []kafka.Message, err error) {
	answer, err := p.client.Fetch(ctx, &kafka.FetchRequest{
		Topic: p.topic, Partition: p.number, Offset: p.next, MinBytes: 1, MaxBytes: 1 << 20, MaxWait: fetchWait,
	})
	if err == nil {
		err = answer.Error
	}
	if errors.Is(err, kafka.OffsetOutOfRange) && p.next != kafka.FirstOffset {
		slog.WarnContext(ctx, "offset out of range, reading the partition from its first event",
			"topic", p.topic, "partition", p.number, "offset", p.next)
		p.next = kafka.FirstOffset
		return nil, nil
	}
	for err == nil {
		var record *kafka.Record
		if record, err = answer.Records.ReadRecord(); err != nil {
			break
		}
		message := kafka.Message{
			Topic: p.topic, Partition: p.number, Offset: record.Offset, HighWaterMark: answer.HighWatermark, Headers: record.Headers,
		}
		if message.Key, err = kafka.ReadAll(record.Key); err != nil {
			break
		}
		if message.Value, err = kafka.ReadAll(record.Value); err != nil {
			break
		}
		if record.Offset >= p.next { // a broker sends whole batches
			messages = append(messages, message)
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("fetch from Kafka: %w", err)
	}
	return messages, nil
}

// commit stores the offset up to which the group has handled the partition.
func (p *partition) commit() error {
	if p.next == p.committed {
		return nil
	}
	if err := p.generation.CommitOffsets(map[string]map[int]int64{p.topic: {p.number: p.next}}); err != nil {
		return fmt.Errorf("commit the offset of %s/%d: %w", p.topic, p.number, err)
	}
	p.committed, p.committedAt = p.next, time.Now()
	return nil
}

func (p *partition) recordLag(ctx context.Context, events int64) {
	p.lag.Record(ctx, events, metric.WithAttributes(attribute.String("group", p.group),
		attribute.String("topic", p.topic), attribute.Int("partition", p.number)))
}

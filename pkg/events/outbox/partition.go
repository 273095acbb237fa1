package outbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
)

const (
	// fetchWait is how long the broker waits for a message before it answers a fetch request
	// with none (long polling).
	fetchWait = 20 * time.Second
	// commitInterval is how often offsets are committed while events arrive: after a kill, the
	// events since the last commit are delivered again.
	commitInterval = 100 * time.Millisecond
)

// partition is a partition that the group has assigned to this process, for one generation.
type partition struct {
	*consumer
	generation  *kafka.Generation
	topic       string
	number      int
	next        atomic.Int64 // offset of the next message
	end         atomic.Int64 // offset behind the last message, from the last answer of the broker
	fetching    atomic.Bool  // whether a fetch request is in flight: its answer tells the end
	committed   int64        // the last committed offset
	committedAt time.Time
}

// process handles the messages of the partition until ctx ends. If an offset cannot be committed, it
// calls end: another member may have the partition.
func (p *partition) process(ctx context.Context, end func()) {
	defer p.addToLag(ctx)()
	defer func() { _ = p.commit() }()
	retry(ctx, "reading events", p.topic, func(ctx context.Context) error {
		for {
			messages, err := p.fetch(ctx)
			if err != nil {
				return err
			}
			for i, message := range messages {
				p.recordLag(ctx)
				if err := p.handle(ctx, message); err != nil {
					return err
				}
				p.next.Store(message.Offset + 1)
				if i < len(messages)-1 && time.Since(p.committedAt) < commitInterval {
					continue
				}
				if err := p.commit(); err != nil {
					end()
					return err
				}
			}
			p.recordLag(ctx)
		}
	})
}

// fetch returns the next messages, about a megabyte at most, or none after fetchWait. If the broker
// does not have the next offset, because it has deleted old messages or the topic was recreated,
// reading continues at the first message of the broker: Tx.Seen recognises events that were
// handled before.
func (p *partition) fetch(ctx context.Context) (messages []kafka.Message, err error) {
	p.fetching.Store(true)
	defer p.fetching.Store(false)
	next := p.next.Load()
	answer, err := p.client.Fetch(ctx, &kafka.FetchRequest{
		Topic: p.topic, Partition: p.number, Offset: next, MinBytes: 1, MaxBytes: 1 << 20, MaxWait: fetchWait,
	})
	if err == nil {
		err = answer.Error
	}
	if errors.Is(err, kafka.OffsetOutOfRange) && next != kafka.FirstOffset {
		slog.WarnContext(ctx, "offset out of range, reading the partition from its first event",
			"topic", p.topic, "partition", p.number, "offset", next)
		p.next.Store(kafka.FirstOffset)
		return nil, nil
	}
	if err == nil {
		p.end.Store(answer.HighWatermark)
	}
	for err == nil {
		var record *kafka.Record
		if record, err = answer.Records.ReadRecord(); err != nil {
			break
		}
		message := kafka.Message{Topic: p.topic, Partition: p.number, Offset: record.Offset, Headers: record.Headers}
		if message.Key, err = kafka.ReadAll(record.Key); err != nil {
			break
		}
		if message.Value, err = kafka.ReadAll(record.Value); err != nil {
			break
		}
		if record.Offset >= next { // a broker sends whole batches, which may begin before next
			messages = append(messages, message)
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("fetch from Kafka: %w", err)
	}
	if next == kafka.FirstOffset && len(messages) == 0 {
		// The partition is empty. kafka-go resolves FirstOffset by an extra ListOffsets request before
		// each fetch; the real offset saves it.
		p.next.Store(answer.HighWatermark)
		p.committed = answer.HighWatermark
	}
	return messages, nil
}

// commit stores the offset up to which the group has handled the partition.
func (p *partition) commit() error {
	next := p.next.Load()
	if next == p.committed {
		return nil
	}
	if err := p.generation.CommitOffsets(map[string]map[int]int64{p.topic: {p.number: next}}); err != nil {
		return fmt.Errorf("commit the offset of %s/%d: %w", p.topic, p.number, err)
	}
	p.committed, p.committedAt = next, time.Now()
	return nil
}

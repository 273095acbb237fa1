package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/segmentio/kafka-go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/telemetry"
)

// fetchWait is how long the broker keeps a question for messages while there are
// none; it answers the first at once.
const fetchWait = 5 * time.Second

// errTaken says that another process reads the partition now. What this one did
// for its event is not committed.
var errTaken = errors.New("another process has taken the partition")

// place names a partition.
type place struct {
	topic  string
	number int
}

// name is the partition's own among all.
func (p place) name() string { return fmt.Sprintf("/%s/%d", p.topic, p.number) }

// compare orders partitions so that those that follow on each other are of all
// topics: then no replica has a busy topic to itself.
func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.number, q.number), cmp.Compare(p.topic, q.topic))
}

// partition is one that this process reads. Its row in the schema says how far
// it was read, and counts its owners: only the last of them may move it on. Thus
// a process that has lost its lock without knowing commits nothing more.
type partition struct {
	*consumer
	place
	owner     int64
	committed int64 // offset of the next message, as the row has it
	next      int64 // the same, with what was read since then
}

// follow reads on from the row until something fails.
func (p *partition) follow(ctx context.Context) error {
	p.next = p.committed
	for {
		if err := p.read(ctx); err != nil {
			return err
		}
	}
}

// read digests what comes next. Where that asked for nothing to be done, the
// row moves on at the end, once for all.
func (p *partition) read(ctx context.Context) error {
	messages, err := p.fetch(ctx)
	if err != nil {
		return err
	}
	for _, message := range messages {
		p.behind(ctx, message.HighWaterMark-message.Offset)
		p.next = message.Offset + 1
		if err := p.digest(ctx, p, message); err != nil {
			return err
		}
		p.behind(ctx, message.HighWaterMark-p.next)
	}
	return p.commit(ctx)
}

// fetch waits a while for messages and gives at most about a megabyte of them.
// Where the broker has the next one no more, or not yet, because it keeps
// messages for a time only or because the topic was made anew and is shorter,
// reading goes on at the first one there is: what was seen already is known by
// its id.
func (p *partition) fetch(ctx context.Context) (messages []kafka.Message, err error) {
	answer, err := p.client.Fetch(ctx, &kafka.FetchRequest{
		Topic: p.topic, Partition: p.number, Offset: p.next, MinBytes: 1, MaxBytes: 1 << 20, MaxWait: fetchWait,
	})
	if err == nil {
		err = answer.Error
	}
	if errors.Is(err, kafka.OffsetOutOfRange) && p.next != kafka.FirstOffset {
		slog.WarnContext(ctx, "the broker does not have the next event; the partition is read from its first", "topic", p.topic, "partition", p.number, "offset", p.next)
		p.next = kafka.FirstOffset
		return nil, nil
	}
	for err == nil {
		var record *kafka.Record
		if record, err = answer.Records.ReadRecord(); err != nil {
			break
		}
		message := kafka.Message{Topic: p.topic, Partition: p.number, Offset: record.Offset, HighWaterMark: answer.HighWatermark}
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

// behind shows how many events wait.
func (p *partition) behind(ctx context.Context, events int64) {
	p.lag.Record(ctx, events, metric.WithAttributes(attribute.String("group", p.outbox.topic),
		attribute.String("topic", p.topic), attribute.Int("partition", p.number)))
}

// commit moves the row on, where no transaction has done so.
func (p *partition) commit(ctx context.Context) error {
	if p.next == p.committed {
		return nil
	}
	if err := p.move(telemetry.Quiet(ctx), p.outbox.db); err != nil {
		return err
	}
	p.committed = p.next
	return nil
}

// move moves the row on. It is errTaken when the partition has another owner.
func (p *partition) move(ctx context.Context, q pg.Querier) error {
	n, err := pg.Exec(ctx, q, `UPDATE read_partitions SET next_offset = $4 WHERE topic = $1 AND partition = $2 AND owner = $3`,
		p.topic, p.number, p.owner, p.next)
	if err == nil && n == 0 {
		return errTaken
	}
	return err
}

package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/worktest"
)

// client speaks to the broker without the product.
func (b *bench) client() *kafka.Client {
	if b.kafka == nil {
		transport := &kafka.Transport{MetadataTTL: 100 * time.Millisecond}
		b.Cleanup(transport.CloseIdleConnections)
		b.kafka = &kafka.Client{Addr: kafka.TCP(b.cfg.Brokers...), Timeout: 10 * time.Second, Transport: transport}
	}
	return b.kafka
}

// relayed emits n events and returns when the broker has them.
func (b *bench) relayed(n int) []id.ID {
	b.Helper()
	accounts := b.emit(n)
	stop := worktest.Start(b, b.outbox.Relay(b.cfg))
	b.eventually("an empty outbox", func() bool {
		left, err := pg.Value[int](b.Context(), b.db, `SELECT count(*) FROM outbox`)
		return err == nil && left == 0
	})
	stop()
	return accounts
}

// committed returns the sum of the offsets that the group has committed.
func (b *bench) committed() (sum int) {
	b.Helper()
	partitions := make([]int, b.cfg.Partitions)
	for i := range partitions {
		partitions[i] = i
	}
	topic := outbox.Topic("sender")
	answer, err := b.client().OffsetFetch(b.Context(), &kafka.OffsetFetchRequest{GroupID: "doorward.reader", Topics: map[string][]int{topic: partitions}})
	if err != nil {
		b.Fatal(err)
	}
	for _, p := range answer.Topics[topic] {
		sum += max(0, int(p.CommittedOffset))
	}
	return sum
}

// commit sets the offset of each partition in the consumer group of reader, which has no member yet.
func (b *bench) commit(offset int64) {
	b.Helper()
	var offsets []kafka.OffsetCommit
	for n := range b.cfg.Partitions {
		offsets = append(offsets, kafka.OffsetCommit{Partition: n, Offset: offset})
	}
	if _, err := b.client().OffsetCommit(b.Context(), &kafka.OffsetCommitRequest{
		GroupID: "doorward.reader", GenerationID: -1, Topics: map[string][]kafka.OffsetCommit{outbox.Topic("sender"): offsets},
	}); err != nil {
		b.Fatal(err)
	}
}

func TestAnOffsetIsCommittedAfterTheEffect(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	accounts := b.relayed(30)
	rollback := fmt.Errorf("rolled back: %w", apierr.Unavailable)
	var tries atomic.Int32
	stop := worktest.Start(b, b.consume(events.On(func(ctx context.Context, e events.Envelope, event events.AccountDeleted) error {
		return b.outbox.InTx(ctx, func(tx *outbox.Tx) error {
			if err := effect(ctx, tx, e, event); err != nil {
				return err
			}
			tries.Add(1)
			return rollback
		})
	})))
	b.eventually("tries", func() bool { return tries.Load() > 12 })
	stop()
	if n, committed := len(b.effects()), b.committed(); n != 0 || committed != 0 {
		t.Fatalf("%d effects of transactions that rolled back, and the group has committed %d events", n, committed)
	}
	worktest.Start(b, b.consumer())
	b.want(accounts)
	b.eventually("the offsets", func() bool { return b.committed() == 30 })
}

func TestEventsWithoutAHandlerAreSkipped(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.relayed(30)
	worktest.Start(b, b.consume(events.On(func(context.Context, events.Envelope, events.AccountVerified) error { return nil })))
	b.eventually("the offsets", func() bool { return b.committed() == 30 })
}

// An event that comes when its tenant was purged would write a row that nothing purges.
func TestEventsOfAPurgedTenantAreSkipped(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if _, err := pg.Exec(t.Context(), b.db, `INSERT INTO purged_tenants (id) VALUES ($1)`, b.tenant); err != nil {
		t.Fatal(err)
	}
	b.relayed(3)
	worktest.Start(b, b.consumer())
	b.eventually("the offsets", func() bool { return b.committed() == 3 })
	if n := len(b.effects()); n != 0 {
		t.Errorf("%d events of a purged tenant had an effect", n)
	}
}

func TestAHandlerWithoutATransactionMovesOn(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.relayed(30)
	var calls atomic.Int32
	called := func(context.Context, events.Envelope, events.AccountDeleted) error {
		calls.Add(1)
		return nil
	}
	stop := worktest.Start(b, b.consume(events.On(called)))
	b.eventually("the offsets", func() bool { return b.committed() == 30 })
	stop()
	worktest.Start(b, b.consume(events.On(called)))
	b.relayed(30)
	b.eventually("the offsets", func() bool { return b.committed() == 60 })
	if n := calls.Load(); n != 60 {
		t.Errorf("the handler was called %d times for 60 events", n)
	}
}

func TestAnOffsetBeyondTheEndIsReadFromTheFirst(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.relayed(30)
	b.commit(1_000_000)
	worktest.Start(b, b.consumer())
	b.want(append(first, b.relayed(30)...))
	if n := len(b.effects()); n != 60 {
		t.Errorf("%d effects of 60 events", n)
	}
}

func TestATopicThatWasMadeAgainIsReadFromItsFirst(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.relayed(90)
	worktest.Start(b, b.consumer())
	b.want(first)
	if err := b.cluster.DeleteTopic(outbox.Topic("sender")); err != nil {
		t.Fatal(err)
	}
	b.want(append(first, b.relayed(3)...)) // each partition is shorter than it was
	if n := len(b.effects()); n != 93 {
		t.Errorf("%d effects of 93 events", n)
	}
}

func TestADeletedOffsetIsReadFromTheFirst(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.relayed(30)
	b.commit(0)
	for n := range int32(3) {
		if err := b.cluster.DeleteRecords(outbox.Topic("sender"), n, -1); err != nil {
			t.Fatal(err)
		}
	}
	kept := b.relayed(30)
	worktest.Start(b, b.consumer())
	b.want(kept)
	if n := len(b.effects()); n != 30 {
		t.Errorf("%d effects of the 30 events that the broker still had", n)
	}
}

func TestNewPartitionsAreReadToo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	worktest.Start(b, b.consumer())
	first := b.relayed(10)
	b.want(first)
	client := b.client()
	made, err := client.CreatePartitions(t.Context(), &kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{{Name: outbox.Topic("sender"), Count: 5}}})
	if err != nil || made.Errors[outbox.Topic("sender")] != nil {
		t.Fatal(err, made)
	}
	b.wantMembers(5)
	second := b.emit(1)
	envelope, err := pg.Value[[]byte](t.Context(), b.db, `DELETE FROM outbox RETURNING envelope`)
	if err != nil {
		t.Fatal(err)
	}
	// A writer tries again until the broker leads the new partition.
	topic, transport := outbox.Topic("sender"), &kafka.Transport{}
	defer transport.CloseIdleConnections()
	writer := &kafka.Writer{
		Addr: client.Addr, Topic: topic, BatchTimeout: time.Millisecond, RequiredAcks: kafka.RequireAll, Transport: transport,
		Balancer: kafka.BalancerFunc(func(kafka.Message, ...int) int { return 4 }),
	}
	defer func() { _ = writer.Close() }()
	message := kafka.Message{Value: envelope, Headers: []kafka.Header{outbox.Sign(b.cfg, topic, envelope)}}
	if err := writer.WriteMessages(t.Context(), message); err != nil {
		t.Fatal(err)
	}
	b.want(append(first, second...))
}

func TestThePartitionsOfATopicDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	accounts := b.relayed(60)
	var once sync.Once
	release := make(chan struct{})
	worktest.Start(b, b.consume(events.On(func(ctx context.Context, e events.Envelope, event events.AccountDeleted) error {
		first := false
		once.Do(func() { first = true })
		if first {
			select {
			case <-release:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return b.outbox.InTx(ctx, func(tx *outbox.Tx) error { return effect(ctx, tx, e, event) })
	})))
	b.eventually("the events of the other partitions", func() bool {
		left, n := 60-b.committed(), len(b.effects())
		return left < 40 && n == 60-left
	})
	close(release)
	b.want(accounts)
}

func TestAFetchThatFailsIsRetried(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var failures atomic.Int32
	b.cluster.ControlKey(int16(kmsg.Fetch), func(request kmsg.Request) (kmsg.Response, error, bool) {
		if failures.Add(1) > 10 {
			return nil, nil, false
		}
		b.cluster.KeepControl()
		return nil, errors.New("no answer"), true
	})
	accounts := b.relayed(10)
	worktest.Start(b, b.consumer())
	b.want(accounts)
}

package events_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/worktest"
)

// client speaks to the broker without the product.
func (b *bench) client() *kafka.Client {
	transport := &kafka.Transport{MetadataTTL: 100 * time.Millisecond}
	b.Cleanup(transport.CloseIdleConnections)
	return &kafka.Client{Addr: kafka.TCP(b.cfg.Brokers...), Timeout: 10 * time.Second, Transport: transport}
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

// rows gives the sum of a column of the partitions' rows.
func (b *bench) rows(column string) int {
	b.Helper()
	sum, err := pg.Value[int](b.Context(), b.db, `SELECT coalesce(sum(`+column+`), 0) FROM read_partitions`)
	if err != nil {
		b.Fatal(err)
	}
	return sum
}

func TestTheRowMovesOnWithTheEffect(t *testing.T) {
	b := newBench(t)
	accounts := b.relayed(30)
	refusal := errors.New("not this time")
	var tries atomic.Int32
	stop := worktest.Start(b, b.consume(events.On(func(ctx context.Context, e events.Envelope, event events.AccountDeleted) error {
		return b.outbox.InTx(ctx, func(tx *events.Tx) error {
			if err := effect(ctx, tx, e, event); err != nil {
				return err
			}
			tries.Add(1)
			return refusal // it rolls back
		})
	})))
	b.eventually("tries", func() bool { return tries.Load() > 6 })
	stop()
	if n := len(b.effects()); n != 0 {
		t.Fatalf("%d effects of transactions that rolled back", n)
	}
	aside := b.rows("greatest(next_offset, 0)")
	worktest.Start(b, b.consumer())
	b.eventually("the others", func() bool { return len(b.effects()) >= len(accounts)-aside })
	if read := b.rows("next_offset"); read != 30 {
		t.Errorf("the rows say that %d of 30 events were read", read)
	}
}

func TestWhatAsksForNothingIsPassedOver(t *testing.T) {
	b := newBench(t)
	b.relayed(30)
	worktest.Start(b, b.consume(events.On(func(context.Context, events.Envelope, events.AccountVerified) error { return nil })))
	b.eventually("the rows to move on", func() bool { return b.rows("greatest(next_offset, 0)") == 30 })
}

func TestAHandlerWithoutATransactionMovesOn(t *testing.T) {
	b := newBench(t)
	b.relayed(30)
	var calls atomic.Int32
	called := func(context.Context, events.Envelope, events.AccountDeleted) error {
		calls.Add(1)
		return nil
	}
	stop := worktest.Start(b, b.consume(events.On(called)))
	b.eventually("the rows to move on", func() bool { return b.rows("greatest(next_offset, 0)") == 30 })
	stop()
	worktest.Start(b, b.consume(events.On(called)))
	b.relayed(30)
	b.eventually("the rows to move on", func() bool { return b.rows("greatest(next_offset, 0)") == 60 })
	if n := calls.Load(); n != 60 {
		t.Errorf("the handler was called %d times for 60 events", n)
	}
}

func TestTheFirstOwnerGoesOnWhereTheConsumerGroupWas(t *testing.T) {
	b := newBench(t)
	first := b.relayed(30)
	group := kafka.NewReader(kafka.ReaderConfig{
		Brokers: b.cfg.Brokers, GroupID: "doorward.reader", GroupTopics: []string{events.Topic("sender")}, StartOffset: kafka.FirstOffset, MaxWait: 10 * time.Millisecond,
	})
	for range first {
		if _, err := group.ReadMessage(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := group.Close(); err != nil {
		t.Fatal(err)
	}
	second := b.relayed(30)
	worktest.Start(b, b.consumer())
	b.want(second)
	if n := len(b.effects()); n != 30 {
		t.Errorf("%d effects, want those of the 30 events that the group had not read", n)
	}
}

func TestAnOffsetBeyondTheEndIsReadFromTheFirst(t *testing.T) {
	b := newBench(t)
	first := b.relayed(30)
	stop := worktest.Start(b, b.consumer())
	b.want(first)
	stop()
	if _, err := pg.Exec(t.Context(), b.db, `UPDATE read_partitions SET next_offset = 1000000`); err != nil {
		t.Fatal(err)
	}
	worktest.Start(b, b.consumer())
	b.want(append(first, b.relayed(30)...))
	if n := len(b.effects()); n != 60 {
		t.Errorf("%d effects of 60 events", n)
	}
}

func TestATopicThatWasMadeAnewIsReadFromItsFirst(t *testing.T) {
	b := newBench(t)
	first := b.relayed(90)
	worktest.Start(b, b.consumer())
	b.want(first)
	if err := b.cluster.DeleteTopic(events.Topic("sender")); err != nil {
		t.Fatal(err)
	}
	b.want(append(first, b.relayed(3)...)) // each partition is shorter than it was
	if n := len(b.effects()); n != 93 {
		t.Errorf("%d effects of 93 events", n)
	}
}

func TestAnOffsetThatTheBrokerHasNoMoreIsReadFromTheFirst(t *testing.T) {
	b := newBench(t)
	b.relayed(30)
	if _, err := pg.Exec(t.Context(), b.db, `INSERT INTO read_partitions (topic, partition, owner, next_offset) SELECT $1, n, 7, 0 FROM generate_series(0, 2) AS n`, events.Topic("sender")); err != nil {
		t.Fatal(err)
	}
	for n := range int32(3) {
		if err := b.cluster.DeleteRecords(events.Topic("sender"), n, -1); err != nil {
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
	b := newBench(t)
	worktest.Start(b, b.consumer())
	first := b.relayed(10)
	b.want(first)
	client := b.client()
	made, err := client.CreatePartitions(t.Context(), &kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{{Name: events.Topic("sender"), Count: 5}}})
	if err != nil || made.Errors[events.Topic("sender")] != nil {
		t.Fatal(err, made)
	}
	b.eventually("owners of five partitions", func() bool { return b.rows("1") == 5 })
	second := b.emit(1)
	envelope, err := pg.Value[[]byte](t.Context(), b.db, `DELETE FROM outbox RETURNING envelope`)
	if err != nil {
		t.Fatal(err)
	}
	sent, err := client.Produce(t.Context(), &kafka.ProduceRequest{
		Topic: events.Topic("sender"), Partition: 4, RequiredAcks: kafka.RequireAll, Records: kafka.NewRecordReader(kafka.Record{Value: kafka.NewBytes(envelope)}),
	})
	if err != nil || sent.Error != nil {
		t.Fatal(err, sent)
	}
	b.want(append(first, second...))
}

func TestThePartitionsOfATopicDoNotWaitForEachOther(t *testing.T) {
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
		return b.outbox.InTx(ctx, func(tx *events.Tx) error { return effect(ctx, tx, e, event) })
	})))
	b.eventually("the events of the other partitions", func() bool {
		moving, err := pg.Value[int](t.Context(), b.db, `SELECT count(*) FROM read_partitions WHERE next_offset > 0`)
		return err == nil && moving == 2 && len(b.effects()) >= 20
	})
	close(release)
	b.want(accounts)
}

func TestAFetchThatFailsIsTriedAgain(t *testing.T) {
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

package outbox_test

import (
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/worktest"
)

// unhandled returns the events of a backup that begins now.
func (b *bench) unhandled() []outbox.SentEvent {
	b.Helper()
	inspector, err := outbox.NewInspector(b.cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer inspector.Close()
	sent, err := inspector.Unhandled(b.Context(), []string{"sender", "reader"}, time.Now())
	if err != nil {
		b.Fatal(err)
	}
	return sent
}

// A backup has what Kafka has and no group has handled; with another broker these events come again.
func TestEventsThatWereSentAndNotHandledArePutBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	stop := worktest.Start(b, b.consumer())
	accounts := b.relayed(2)
	b.want(accounts)
	stop()
	if sent := b.unhandled(); len(sent) != 0 {
		t.Errorf("%d events are unhandled after all were", len(sent))
	}
	accounts = append(accounts, b.relayed(3)...)
	writer := &kafka.Writer{Addr: kafka.TCP(b.cfg.Brokers...), Topic: outbox.Topic("sender"), RequiredAcks: kafka.RequireAll, BatchSize: 1}
	defer func() { _ = writer.Close() }()
	if err := writer.WriteMessages(t.Context(), kafka.Message{Value: []byte(`{"type":"AccountDeleted"}`)}); err != nil { // without a signature
		t.Fatal(err)
	}
	sent := b.unhandled()
	if len(sent) != 3 {
		t.Fatalf("%d events are unhandled, want 3: %v", len(sent), sent)
	}
	waiting := b.emit(1)

	b.startBroker()
	if err := b.db.InTx(t.Context(), func(tx *pg.Tx) error { return outbox.PutBack(t.Context(), tx, sent) }); err != nil {
		t.Fatal(err)
	}
	keys, err := pg.Values[id.ID](t.Context(), b.db, `SELECT key FROM outbox ORDER BY seq`)
	if err != nil || len(keys) != 4 || keys[3] != waiting[0] {
		t.Errorf("the outbox has %v, %v; want %v at the end", keys, err, waiting)
	}
	worktest.Start(b, b.consumer())
	worktest.Start(b, b.outbox.Relay(b.cfg))
	b.want(append(accounts, waiting...))
}

// Of a topic that no group has read yet, the events come again too.
func TestEventsThatNoGroupHasReadArePutBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.relayed(2)
	if sent := b.unhandled(); len(sent) != 2 {
		t.Errorf("%d events are unhandled, want 2", len(sent))
	}
}

// An event that leaves its outbox while the snapshot of a backup is taken would be in neither.
func TestRelaysAreHeldUntilTheirRelease(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	free := func() bool {
		is, err := pg.Value[bool](t.Context(), b.db,
			`SELECT pg_try_advisory_xact_lock(hashtextextended('doorward/relay/' || current_schema(), 0))`)
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	err := b.db.InTx(t.Context(), func(tx *pg.Tx) error {
		release, err := outbox.HoldRelays(t.Context(), tx, []string{"sender"})
		if err != nil {
			return err
		}
		if free() {
			t.Error("a relay may send while it is held")
		}
		if err := release(); err != nil {
			return err
		}
		if !free() {
			t.Error("no relay may send after the release")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

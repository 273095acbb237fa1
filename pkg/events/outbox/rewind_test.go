package outbox_test

import (
	"context"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/worktest"
)

// A database is restored as it was at a time: effects of events before it that came
// later are gone, and events after it are of transactions that never were.
func TestGroupsAreRewoundToTheTimeOfARestoredDatabase(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	stopRelay := worktest.Start(b, b.outbox.Relay(b.cfg))
	stop := worktest.Start(b, b.consumer())
	before := b.emit(1)
	b.want(before)
	kept, err := pg.Value[id.ID](t.Context(), b.db, `SELECT event_id FROM seen_events`)
	if err != nil {
		t.Fatal(err)
	}
	before = append(before, b.emit(1)...)
	b.want(before)
	at := time.Now()
	b.want(append(before, b.emit(3)...))
	stopRelay()
	stop()
	// As the restored database has it: one effect came after the time.
	if _, err := pg.Exec(t.Context(), b.db, `DELETE FROM effects WHERE account_id <> $1`, before[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := pg.Exec(t.Context(), b.db, `DELETE FROM seen_events WHERE event_id <> $1`, kept); err != nil {
		t.Fatal(err)
	}
	inspector, err := outbox.NewInspector(b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(inspector.Close)
	again, passed, err := inspector.Rewind(t.Context(), at, map[string]*pg.DB{"reader": b.db})
	if err != nil || again != 2 || passed != 3 {
		t.Fatalf("%d events are read again and %d passed over, %v; want 2 and 3", again, passed, err)
	}
	worktest.Start(b, b.outbox.Relay(b.cfg))
	// What is passed over reaches no handler, whether or not it would have asked.
	worktest.Start(b, b.consume(events.On(func(ctx context.Context, _ events.Envelope, event events.AccountDeleted) error {
		_, err := pg.Exec(ctx, b.db, `INSERT INTO effects (account_id) VALUES ($1)`, event.Account)
		return err
	})))
	b.want(append(before, b.emit(1)...))
	if n := len(b.effects()); n != 3 {
		t.Errorf("%d effects, want 3: an event of a transaction that is undone has had its effect", n)
	}
}

// A group that has read nothing of a partition has no offset there, and reads all of it
// from the beginning. What is undone has no effect then either.
func TestAGroupThatHasReadNothingYetPassesOverWhatIsUndone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	at := time.Now()
	b.emit(3)
	stopRelay := worktest.Start(b, b.outbox.Relay(b.cfg))
	b.eventually("the events are sent", func() bool {
		n, _, err := b.outbox.Waiting(t.Context())
		return err == nil && n == 0
	})
	stopRelay()
	inspector, err := outbox.NewInspector(b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(inspector.Close)
	again, passed, err := inspector.Rewind(t.Context(), at, map[string]*pg.DB{"reader": b.db})
	if err != nil || again != 0 || passed != 3 {
		t.Fatalf("%d events are read again and %d passed over, %v; want none and 3", again, passed, err)
	}
	worktest.Start(b, b.outbox.Relay(b.cfg))
	worktest.Start(b, b.consumer())
	b.want(b.emit(1))
	if n := len(b.effects()); n != 1 {
		t.Errorf("%d effects, want 1", n)
	}
}

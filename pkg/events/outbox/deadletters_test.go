package outbox_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/worktest"
)

func TestDeadLettersAreListedRetriedAndDropped(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	accounts := b.emit(3)
	worktest.Start(b, b.outbox.Relay(b.cfg))
	var fixed atomic.Bool
	var handled atomic.Int32
	worktest.Start(b, b.consume(events.On(func(context.Context, events.Envelope, events.AccountDeleted) error {
		if !fixed.Load() {
			return errors.New("a bug")
		}
		handled.Add(1)
		return nil
	})))
	inspector, err := outbox.NewInspector(b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(inspector.Close)
	list := func(want int) []outbox.DeadLetter {
		t.Helper()
		letters, err := inspector.DeadLetters(t.Context())
		if err != nil || len(letters) != want {
			t.Fatalf("%d dead letters, %v; want %d", len(letters), err, want)
		}
		return letters
	}
	b.eventually("three dead letters", func() bool {
		found, err := inspector.DeadLetters(t.Context())
		return err == nil && len(found) == 3
	})
	letters := list(3)
	for _, letter := range letters {
		if letter.Topic != outbox.Topic("sender") || letter.Group != "doorward.reader" || letter.Error != "a bug" || letter.Event != "AccountDeleted" {
			t.Errorf("the dead letter is %+v", letter)
		}
	}
	if lag, err := inspector.Lag(t.Context(), "reader"); err != nil || lag < 0 {
		t.Errorf("the consumer lag is %d, %v", lag, err)
	}
	resolve := func(retry bool, want int, chosen func(outbox.DeadLetter) bool) {
		t.Helper()
		if n, err := inspector.Resolve(t.Context(), retry, chosen); err != nil || n != want {
			t.Fatalf("%d resolved, %v; want %d", n, err, want)
		}
	}
	first := letters[0].ID
	resolve(false, 1, func(l outbox.DeadLetter) bool { return l.ID == first })
	for _, letter := range list(2) {
		if letter.ID == first {
			t.Error("what was dropped is there")
		}
	}
	fixed.Store(true)
	resolve(true, 2, func(outbox.DeadLetter) bool { return true })
	list(0)
	b.eventually("the retried events", func() bool { return int(handled.Load()) == len(accounts)-1 })
	resolve(true, 0, func(outbox.DeadLetter) bool { return true })
}

package secure

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
)

// waiters lets logins wait in a queue, one after the other, and reports in which
// order they receive a worker.
type waiters struct {
	t      *testing.T
	q      *queue
	served []string
	ended  map[string]error
}

func (w *waiters) wait(ctx context.Context, tenant id.ID, name string) {
	w.t.Helper()
	go func() {
		if err := w.q.acquire(ctx, tenant); err != nil {
			w.ended[name] = err
			return
		}
		w.served = append(w.served, name)
	}()
	synctest.Wait()
}

func (w *waiters) releaseAll(times int) []string {
	for range times {
		w.q.release()
		synctest.Wait()
	}
	return w.served
}

func busyQueue(t *testing.T, limit int) *waiters {
	w := &waiters{t: t, q: newQueue(1, limit), ended: map[string]error{}}
	if err := w.q.acquire(t.Context(), id.ID{}); err != nil {
		t.Fatal(err)
	}
	return w
}

var quiet, other = id.New(time.Unix(2, 0)), id.New(time.Unix(3, 0))

func TestTenantsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := busyQueue(t, 100)
		for _, name := range []string{"loud 1", "loud 2", "loud 3"} {
			w.wait(t.Context(), tenant, name)
		}
		w.wait(t.Context(), quiet, "quiet 1")
		w.wait(t.Context(), other, "other 1")
		w.wait(t.Context(), quiet, "quiet 2")
		want := []string{"loud 1", "quiet 1", "other 1", "loud 2", "quiet 2", "loud 3"}
		if got := w.releaseAll(len(want)); !slices.Equal(got, want) {
			t.Errorf("served %q, want %q", got, want)
		}
		w.q.release()
		if w.q.free != 1 || w.q.waiting != 0 || len(w.q.tenants) != 0 || len(w.q.order) != 0 {
			t.Errorf("afterwards: %+v", w.q)
		}
	})
}

func TestAFullQueueHasRoomForATenantThatWaitsWithLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := busyQueue(t, 3)
		for _, name := range []string{"loud 1", "loud 2", "loud 3", "loud 4"} {
			w.wait(t.Context(), tenant, name)
		}
		w.wait(t.Context(), quiet, "quiet 1") // in the place of loud 3
		w.wait(t.Context(), quiet, "quiet 2") // would only turn the two around
		want := []string{"loud 1", "quiet 1", "loud 2"}
		if got := w.releaseAll(3); !slices.Equal(got, want) {
			t.Errorf("served %q, want %q", got, want)
		}
		for _, name := range []string{"loud 3", "loud 4", "quiet 2"} {
			if err := w.ended[name]; !errors.Is(err, apierr.Unavailable) || apierr.From(err).RetryAfter == 0 {
				t.Errorf("%s: %v; want Unavailable with a time to wait", name, err)
			}
		}
	})
}

func TestALoginThatEndsWhileItWaitsLeavesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := busyQueue(t, 10)
		ctx, cancel := context.WithCancel(t.Context())
		w.wait(ctx, tenant, "gone")
		w.wait(t.Context(), quiet, "stays")
		cancel()
		synctest.Wait()
		if err := w.ended["gone"]; !errors.Is(err, apierr.Unavailable) {
			t.Errorf("the login that ended: %v", err)
		}
		if got := w.releaseAll(1); !slices.Equal(got, []string{"stays"}) {
			t.Errorf("served %q", got)
		}
	})
}

// A worker that is handed to a login at the moment in which that login ends goes on
// to the next.
func TestNoWorkerIsLost(t *testing.T) {
	for range 200 {
		q := newQueue(1, 100)
		done := make(chan bool)
		for range 8 {
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), 50*time.Microsecond)
				defer cancel()
				if q.acquire(ctx, tenant) == nil {
					q.release()
				}
				done <- true
			}()
		}
		for range 8 {
			<-done
		}
		if q.free != 1 || q.waiting != 0 {
			t.Fatalf("%d workers are free and %d wait", q.free, q.waiting)
		}
	}
}

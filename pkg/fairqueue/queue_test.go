package fairqueue

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/doorward/doorward/pkg/id"
)

// waiters lets logins wait in a queue, one after the other, and reports in which
// order they receive a worker.
type waiters struct {
	t       *testing.T
	q       *Queue
	served  []string
	holders []id.ID // of workers, the first one first
	ended   map[string]error
}

func (w *waiters) wait(ctx context.Context, tenant id.ID, name string) {
	w.t.Helper()
	go func() {
		if err := w.q.Acquire(ctx, tenant); err != nil {
			w.ended[name] = err
			return
		}
		w.served, w.holders = append(w.served, name), append(w.holders, tenant)
	}()
	synctest.Wait()
}

// releaseAll returns a worker so many times: that of the holder, and of each that
// was served meanwhile.
func (w *waiters) releaseAll(times int) []string {
	for range times {
		holder := w.holders[0]
		w.holders = w.holders[1:]
		w.q.Release(holder)
		synctest.Wait()
	}
	return w.served
}

func busyQueue(t *testing.T, limit int) *waiters {
	w := &waiters{t: t, q: New(1, 1, limit), holders: []id.ID{{}}, ended: map[string]error{}}
	if err := w.q.Acquire(t.Context(), id.ID{}); err != nil {
		t.Fatal(err)
	}
	return w
}

var tenant, quiet, other = id.New(time.Unix(1, 0)), id.New(time.Unix(2, 0)), id.New(time.Unix(3, 0))

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
		w.q.Release(w.holders[0])
		if w.q.free != 1 || w.q.waiting != 0 || len(w.q.tenants) != 0 || len(w.q.turns) != 0 {
			t.Errorf("after all were served the queue is %+v", w.q)
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
			if err := w.ended[name]; !errors.Is(err, ErrFull) {
				t.Errorf("%s: %v; want ErrFull", name, err)
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
		if err := w.ended["gone"]; !errors.Is(err, context.Canceled) {
			t.Errorf("the login that ended: %v", err)
		}
		if got := w.releaseAll(1); !slices.Equal(got, []string{"stays"}) {
			t.Errorf("the queue served %q", got)
		}
	})
}

// A worker that is handed to a login at the moment in which that login ends goes on
// to the next.
func TestNoWorkerIsLost(t *testing.T) {
	for round := range 200 {
		workers := 1 + round%3
		q := New(workers, max(1, workers-round%2), 100)
		done := make(chan bool)
		for n := range 8 {
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), 50*time.Microsecond)
				defer cancel()
				of := []id.ID{tenant, quiet}[n%2]
				if q.Acquire(ctx, of) == nil {
					q.Release(of)
				}
				done <- true
			}()
		}
		for range 8 {
			<-done
		}
		if q.free != workers || q.waiting != 0 || len(q.used) != 0 {
			t.Fatalf("of %d workers %d are free and %d wait; used: %v", workers, q.free, q.waiting, q.used)
		}
	}
}

// A tenant alone uses all workers. While another one is active it leaves one free,
// which the other receives without a wait.
func TestOneWorkerIsKeptFreeOfATenantWhileAnotherIsActive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &waiters{t: t, q: New(3, 3, 100), ended: map[string]error{}}
		for _, name := range []string{"1", "2", "3", "4", "5"} {
			w.wait(t.Context(), tenant, name)
		}
		if len(w.served) != 3 {
			t.Fatalf("a tenant alone has %q served; want 3", w.served)
		}
		w.wait(t.Context(), quiet, "quiet")
		if got := w.releaseAll(2); got[len(got)-1] != "quiet" && got[len(got)-2] != "quiet" {
			t.Fatalf("served %q; the other tenant waits longer than for its turn", got)
		}
		n := len(w.served)
		w.holders = slices.DeleteFunc(w.holders, func(t id.ID) bool { return t == quiet })
		w.q.Release(quiet)
		synctest.Wait()
		if used := w.q.used[tenant]; used != 2 || len(w.served) != n || w.q.free != 1 {
			t.Fatalf("%d workers of 3 are used by one tenant beside another, %d are free", used, w.q.free)
		}
		w.wait(t.Context(), quiet, "at once")
		if w.served[len(w.served)-1] != "at once" {
			t.Fatal("the worker that is kept free is not handed out")
		}
		w.q.Release(quiet)
		<-time.After(activeTenantTime + 1)
		w.wait(t.Context(), tenant, "alone again")
		if used := w.q.used[tenant]; used != 3 {
			t.Fatalf("a tenant that is alone again uses %d workers of 3", used)
		}
	})
}

func TestATenantAloneHasNoMoreWorkersThanItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &waiters{t: t, q: New(3, 1, 100), ended: map[string]error{}}
		for _, name := range []string{"1", "2", "3"} {
			w.wait(t.Context(), tenant, name)
		}
		w.wait(t.Context(), quiet, "quiet")
		if want := []string{"1", "quiet"}; !slices.Equal(w.served, want) {
			t.Errorf("served %q, want %q", w.served, want)
		}
		if got, want := w.releaseAll(4), []string{"1", "quiet", "2", "3"}; !slices.Equal(got, want) || w.q.free != 3 {
			t.Errorf("served %q, want %q; %d are free", got, want, w.q.free)
		}
	})
}

func TestClosingTakesTheWorkersOfAllTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(2, 1, 0)
		for _, of := range []id.ID{tenant, quiet} {
			if err := q.Acquire(t.Context(), of); err != nil {
				t.Fatal(err)
			}
		}
		closed := make(chan error)
		go func() { closed <- q.Close(t.Context()) }()
		q.Release(tenant)
		synctest.Wait()
		q.Release(quiet)
		if err := <-closed; err != nil {
			t.Fatal(err)
		}
	})
}

// Package worktest runs the workers of a service in its tests, and waits for what
// they do.
package worktest

import (
	"context"
	"sync"
	"testing"
	"time"
)

// Start runs a worker until the test ends, or until stop, which returns when the
// worker has ended and can be called again. A worker that fails fails the test.
func Start(t testing.TB, work func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- work(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// awaitLimit is the timeout of Await; no condition of a test takes so long.
const awaitLimit = time.Minute

// Await polls a condition until it is true, in the goroutine of the test, and fails the test after
// awaitLimit.
func Await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	limit, tick := time.NewTimer(awaitLimit), time.NewTicker(5*time.Millisecond)
	defer limit.Stop()
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("timeout: waited for %s", what)
		}
	}
}

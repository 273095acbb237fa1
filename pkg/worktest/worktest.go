// Package worktest runs the workers of a service in its tests.
package worktest

import (
	"context"
	"sync"
	"testing"
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

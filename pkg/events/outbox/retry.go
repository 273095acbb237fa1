package outbox

import (
	"context"
	"log/slog"
	"time"
)

// firstDelay is the delay after the first failure in a row; each further one
// doubles it, up to a hundredfold.
var firstBackoff = 100 * time.Millisecond

// backoff returns the delay after the n-th failure in a row, counted from 0: exponential
// backoff with an upper bound.
func backoff(n int) time.Duration {
	return min(firstBackoff<<min(n, 10), 100*firstBackoff)
}

// wait waits, or ends early with ctx.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// retry runs work again with a back-off whenever it fails, until ctx ends. Work
// that had lasted for a minute begins a new series of failures.
func retry(ctx context.Context, what, topic string, work func(context.Context) error) {
	for failures := 0; ; failures++ {
		started := time.Now()
		err := work(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(started) > time.Minute {
			failures = 0
		}
		slog.WarnContext(ctx, what+" failed, retrying", "topic", topic, "error", err.Error())
		if wait(ctx, backoff(failures)) != nil {
			return
		}
	}
}

package outbox

import (
	"context"
	"log/slog"
	"time"
)

// firstBackoff is the delay after the first failure in a row. Each further failure doubles the delay,
// up to 100 times firstBackoff.
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

// retry runs work, and again with back-off whenever it fails, until ctx ends. After work that ran
// for a minute or longer the back-off starts again.
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

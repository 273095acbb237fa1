package events

import (
	"context"
	"log/slog"
	"time"
)

// firstPause is the pause after the first failure in a row; each further one
// doubles it, up to a hundredfold.
var firstPause = 100 * time.Millisecond

// backoff gives the pause after the n-th failure in a row, counted from 0.
func backoff(n int) time.Duration {
	return min(firstPause<<min(n, 10), 100*firstPause)
}

// pause waits, or ends early with ctx.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// persist does work again whenever it fails, after a pause, until ctx ends. A
// failure is logged with what it means for a topic. Work that had lasted for a
// minute begins a new row of failures.
func persist(ctx context.Context, meaning, topic string, work func(context.Context) error) {
	for failures := 0; ; failures++ {
		started := time.Now()
		err := work(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(started) > time.Minute {
			failures = 0
		}
		slog.WarnContext(ctx, meaning, "topic", topic, "error", err.Error())
		if pause(ctx, backoff(failures)) != nil {
			return
		}
	}
}

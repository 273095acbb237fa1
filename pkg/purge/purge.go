// Package purge deletes expired rows (data retention, cleanup): Every is the periodic worker of a
// service, Drain deletes rows in batches, so that locks are held for a short time, and package purgesql
// deletes those of an age. No rule depends on a purge: queries ignore expired rows. What a service
// purges is in its purge.go.
package purge

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/doorward/doorward/pkg/telemetry"
)

// Every returns a worker that calls purge at its start and then after pauses of half to one and
// a half of pause (jitter: services and replicas purge at different times), until its ctx
// ends. A purge that fails is logged as a warning with the text failure; the next purge deletes
// the rows that are left.
func Every(pause time.Duration, failure string, purge func(context.Context) error) func(context.Context) error {
	return EveryOr(pause, nil, failure, purge)
}

// EveryOr is Every that also purges when wake receives a value.
func EveryOr(
	pause time.Duration, wake <-chan struct{}, failure string, purge func(context.Context) error,
) func(context.Context) error {
	return func(ctx context.Context) error {
		last, unregister := registerWorker()
		defer unregister()
		return repeat(ctx, pause, wake, failure, func(ctx context.Context) error {
			if err := purge(ctx); err != nil {
				return err
			}
			last.Store(time.Now().UnixNano())
			return nil
		})
	}
}

// Periodically is Every for other periodic work than a purge: the metric
// doorward_purge_age_seconds does not include it.
func Periodically(pause time.Duration, failure string, work func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error { return repeat(ctx, pause, nil, failure, work) }
}

func repeat(
	ctx context.Context, pause time.Duration, wake <-chan struct{}, failure string, work func(context.Context) error,
) error {
	ctx = telemetry.Untraced(ctx)
	for {
		if err := work(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, failure, "error", err.Error())
		}
		next := time.NewTimer(pause/2 + rand.N(pause))
		select {
		case <-ctx.Done():
		case <-next.C:
		case <-wake:
		}
		next.Stop()
		if ctx.Err() != nil {
			return nil
		}
	}
}

// Drain calls remove, which deletes a batch of rows, in one transaction after the other until it
// deletes none. Several replicas may do so at the same time if remove or inTx takes a lock.
func Drain[Tx any](ctx context.Context, inTx func(context.Context, func(Tx) error) error,
	remove func(Tx) (int64, error)) error {
	for {
		var n int64
		err := inTx(ctx, func(tx Tx) (err error) {
			n, err = remove(tx)
			return err
		})
		if err != nil || n == 0 {
			return err
		}
	}
}

// Package purge deletes expired rows: Every is the worker of a
// service that does so again and again, Drain deletes without holding locks for
// long. Nothing depends on a purge but the size of the tables.
package purge

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/doorward/doorward/pkg/telemetry"
)

// Every makes a worker that purges at its start and then after pauses of half to one and
// a half of pause (jitter: services and replicas purge at different times), until its ctx
// ends. A purge that fails is logged with what that means, and made up
// for by the next.
func Every(pause time.Duration, failure string, purge func(context.Context) error) func(context.Context) error {
	return EveryOr(pause, nil, failure, purge)
}

// EveryOr is Every that also purges when it is woken.
func EveryOr(pause time.Duration, wake <-chan struct{}, failure string, purge func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		last, forget := registerWorker()
		defer forget()
		return repeat(ctx, pause, wake, failure, func(ctx context.Context) error {
			err := purge(ctx)
			if err == nil {
				last.Store(time.Now().UnixNano())
			}
			return err
		})
	}
}

// Repeat is Every for work that purges nothing, and may pause for long:
// doorward_purge_age_seconds does not count it.
func EveryUnmetered(pause time.Duration, failure string, work func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error { return repeat(ctx, pause, nil, failure, work) }
}

func repeat(ctx context.Context, pause time.Duration, wake <-chan struct{}, failure string, work func(context.Context) error) error {
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

// Drain repeats a bounded deletion, each time in a transaction of its own, until
// it finds nothing. Several replicas may do it at once where each takes rows that the
// others have not.
func Drain[Tx any](ctx context.Context, inTx func(context.Context, func(Tx) error) error, remove func(Tx) (int64, error)) error {
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

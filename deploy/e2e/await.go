package e2e

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The interval between two probes is a twentieth of the time since the first,
// within these bounds: most things are there at once, and a slow one is not to be
// made slower by the probes.
const (
	firstInterval = 5 * time.Millisecond
	lastInterval  = 250 * time.Millisecond
)

// Await calls probe until it returns nil and then returns nil at once. When
// ctx ends first, or probe returns an error made by Final, it ends and
// says what was waited for, how long, and what the last look found.
func Await(ctx context.Context, what string, probe func(context.Context) error) error {
	began := time.Now()
	for {
		err := probe(ctx)
		if err == nil {
			return nil
		}
		var end final
		if errors.As(err, &end) {
			return fmt.Errorf("stopped waiting for %s after %s: %w", what, time.Since(began).Round(time.Millisecond), end.cause)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("timeout after %s: waited for %s; the last probe: %w", time.Since(began).Round(time.Millisecond), what, err)
		case <-time.After(min(max(firstInterval, time.Since(began)/20), lastInterval)):
		}
	}
}

// AwaitFor is Await with a time limit of its own.
func AwaitFor(ctx context.Context, limit time.Duration, what string, probe func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return Await(ctx, what, probe)
}

// Final marks an error of a probe as one that waiting does not change, such as the
// end of the process that was expected to become ready.
func Final(err error) error { return final{err} }

type final struct{ cause error }

func (f final) Error() string { return f.cause.Error() }
func (f final) Unwrap() error { return f.cause }

package e2e

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The interval between two probes is a twentieth of the time since the first probe,
// within these bounds (back-off): most conditions are met at once, and probes should not
// slow down what takes long.
const (
	minInterval = 5 * time.Millisecond
	maxInterval = 250 * time.Millisecond
)

// Await polls: it calls probe until that returns nil, and then returns nil at once. When
// ctx ends first, or probe returns an error made by Final, it returns an error that says
// what was waited for, how long, and the last error of probe.
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
		case <-time.After(min(max(minInterval, time.Since(began)/20), maxInterval)):
		}
	}
}

// AwaitFor is Await with a time limit of its own.
func AwaitFor(ctx context.Context, limit time.Duration, what string, probe func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return Await(ctx, what, probe)
}

// Final marks an error of a probe as permanent, such as the end of the process that was
// expected to become ready: Await does not retry.
func Final(err error) error { return final{err} }

type final struct{ cause error }

func (f final) Error() string { return f.cause.Error() }
func (f final) Unwrap() error { return f.cause }

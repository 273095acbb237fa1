package e2e

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The rest between two looks at a thing grows between these bounds: most things
// are there at once, and a slow one is not to be made slower by the looking.
// The bounds only say how late a thing is noticed; nothing relies on them.
const (
	firstRest = 5 * time.Millisecond
	lastRest  = 250 * time.Millisecond
)

// Await calls probe until it returns nil and then returns nil at once. When
// ctx ends first, or probe returns an error made by Final, it ends and
// says what was waited for, how long, and what the last look found.
func Await(ctx context.Context, what string, probe func(context.Context) error) error {
	began := time.Now()
	for rest := firstRest; ; rest = min(rest*3/2, lastRest) {
		err := probe(ctx)
		if err == nil {
			return nil
		}
		var end final
		if errors.As(err, &end) {
			return fmt.Errorf("gave up waiting for %s after %s: %w", what, time.Since(began).Round(time.Millisecond), end.cause)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited %s for %s in vain; the last look: %w", time.Since(began).Round(time.Millisecond), what, err)
		case <-time.After(rest):
		}
	}
}

// AwaitFor is Await with a time limit of its own.
func AwaitFor(ctx context.Context, limit time.Duration, what string, probe func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return Await(ctx, what, probe)
}

// Final marks an error of a probe as one that waiting cannot mend, such as the
// end of the process that was expected to become ready.
func Final(err error) error { return final{err} }

type final struct{ cause error }

func (f final) Error() string { return f.cause.Error() }
func (f final) Unwrap() error { return f.cause }

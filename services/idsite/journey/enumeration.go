package journey

// Protection against user enumeration: the answers that are hidden here, and the time that they take, do
// not tell whether an account exists. Wrong passwords are in services/directory/login.go.

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
)

// responseTimeStep is the multiple to which response times are rounded up, against timing
// attacks: for an account that exists the services write one row more.
const responseTimeStep = 50 * time.Millisecond

// hideAccountExistence calls fn, whose result depends on whether an account exists, and hides
// that: it returns nil unless fn has failed for another reason, and takes a multiple of
// responseTimeStep.
func hideAccountExistence(ctx context.Context, fn func() error) error {
	steps := time.NewTicker(responseTimeStep)
	defer steps.Stop()
	err := fn()
	waitForTimeStep(ctx, steps)
	if apierr.IsRefusal(err) && !errors.Is(err, apierr.TooMany) {
		return nil
	}
	return err
}

// waitForTimeStep waits for the next tick.
func waitForTimeStep(ctx context.Context, steps *time.Ticker) {
	select {
	case <-steps.C: // a tick that was due before
	default:
	}
	select {
	case <-steps.C:
	case <-ctx.Done():
	}
}

package signup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
)

// signUpTimeout bounds one attempt to create the first tenant.
const signUpTimeout = 30 * time.Second

// EnsureFirstTenant creates the first tenant with its first administrator (bootstrap admin) and its
// API key, unless they exist. It retries with back-off until it has succeeded or ctx ends, because
// the other services may start later than this one. For a configuration that a service refuses it
// fails at once, with what the operator has to change.
func (t *Tenants) EnsureFirstTenant(ctx context.Context, in Bootstrap) error {
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := t.attemptSignUp(ctx, in)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := configurationError(err); err != nil {
			return err
		}
		slog.WarnContext(ctx, "bootstrap of the first tenant failed, retrying", "error", err.Error())
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}

func (t *Tenants) attemptSignUp(ctx context.Context, in Bootstrap) error {
	ctx, cancel := context.WithTimeout(ctx, signUpTimeout)
	defer cancel()
	_, err := t.SignUpFirstTenant(ctx, in)
	return err
}

// configurationError returns an error that says what the operator has to change, or nil for a
// temporary failure.
func configurationError(err error) error {
	switch {
	case errors.Is(err, apierr.Exists):
		return fmt.Errorf(
			"%w; set DOORWARD_BOOTSTRAP_KEY_SECRET to the secret that the key was made with, or choose another "+
				"DOORWARD_BOOTSTRAP_KEY_ID", err)
	case apierr.From(err).Status == http.StatusBadRequest:
		return fmt.Errorf("%w; correct the variables DOORWARD_BOOTSTRAP_KEY_ID and DOORWARD_BOOTSTRAP_OWNER_EMAIL", err)
	}
	return nil
}

// Package usercode has the codes that the users of devices type (RFC 8628): their form, and the limits of guesses.
package usercode

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/oauth/store"
)

// The limits of guesses of user codes (RFC 8628, section 5.1) within Age. An address that has
// guessed wrong so often is refused, with a right code too. Once so many guesses at an application were wrong, an address
// is refused after its first one: a right code is not, where only others have guessed.
const (
	addressGuesses     = 10
	applicationGuesses = 300
)

// Age is how long a user code may be typed.
const Age = 10 * time.Minute

// Letters returns the letters of a user code as its user has typed it, in any letter case and with any separators.
func Letters(typed string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, strings.ToUpper(typed))
}

// Guess returns the device of an application whose user code was typed at the address of the request, apierr.NotFound
// for a wrong guess, or apierr.TooMany.
func Guess(ctx context.Context, s *store.Store, application id.Ref, typed string, now time.Time) (device store.Device,
	err error) {
	tenant, all := application.Tenant, "userCodes/application/"+application.ID.String()
	own := "userCodes/address/" + application.ID.String() + "/" + caller.From(ctx).Network().String()
	var refusal error
	err = s.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.LockGuesses(ctx, tenant, own); err != nil {
			return err
		}
		ofAddress, err := tx.Count(ctx, tenant, own, now)
		if err != nil {
			return err
		}
		ofApplication, err := tx.Count(ctx, tenant, all, now)
		if err != nil {
			return err
		}
		if ofAddress.Count >= addressGuesses || ofAddress.Count > 0 && ofApplication.Count >= applicationGuesses {
			refusal = apierr.TooMany.Because("too many wrong user codes came from this address").
				WithRetryAfter(ofAddress.EndsAt.Sub(now))
			return nil
		}
		if device, err = tx.PendingDevice(ctx, application, Letters(typed), now); !errors.Is(err, apierr.NotFound) {
			return err
		}
		refusal = err // and what was counted is committed
		for _, counter := range []string{own, all} {
			if _, err := tx.AddCount(ctx, tenant, counter, now, Age); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = refusal
	}
	return device, err
}

package openid_test

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/services/oauth/oauthtest"
	"github.com/doorward/doorward/services/oauth/relyingparty"
)

func TestGuessesOfUserCodes(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	p := newParty(t, d, d.Site, relyingparty.Change{GrantTypes: field.Some([]string{relyingparty.GrantDevice}),
		ResponseTypes: field.Some([]string{}), RedirectURIs: field.Some([]string{})})
	device, err := d.Service.AuthorizeDevice(t.Context(), p.call("/device_authorization"))
	if err != nil {
		t.Fatal(err)
	}
	const wrong = "BBBB-BBBB"
	guess := func(address, code string) error {
		ctx := caller.Into(t.Context(), caller.Caller{Address: netip.MustParseAddr(address)})
		_, err := d.Service.DeviceRequest(ctx, typedCode(d, code))
		return err
	}
	t.Run("of fifty at once from one network ten are answered", func(t *testing.T) {
		answered := atOnce(t, func() error {
			err := guess("2001:db8::1", wrong)
			if errors.Is(err, apierr.NotFound) {
				return nil
			}
			return err
		}, apierr.TooMany)
		if answered != addressGuesses {
			t.Errorf("%d guesses were answered", answered)
		}
		err := guess("2001:db8::2", device.UserCode)
		if !errors.Is(err, apierr.TooMany) || apierr.From(err).RetryAfter != 10*time.Minute {
			t.Errorf("then the right code is answered with %v", err)
		}
	})
	t.Run("a user elsewhere is not refused", func(t *testing.T) {
		if err := guess("192.0.2.1", device.UserCode); err != nil {
			t.Error(err)
		}
	})
	t.Run("many guesses at the application leave one to an address", func(t *testing.T) {
		for n := range applicationGuesses - addressGuesses {
			if err := guess(fmt.Sprintf("10.0.%d.%d", n/250, n%250), wrong); !errors.Is(err, apierr.NotFound) {
				t.Fatalf("the guess %d is answered with %v", n, err)
			}
		}
		if err := guess("10.0.0.1", wrong); !errors.Is(err, apierr.TooMany) {
			t.Errorf("a second guess is answered with %v", err)
		}
		if err := guess("10.9.9.9", wrong); !errors.Is(err, apierr.NotFound) {
			t.Errorf("the first guess of another address is answered with %v", err)
		}
		if err := guess("192.0.2.1", device.UserCode); err != nil {
			t.Errorf("the right code is answered with %v", err)
		}
	})
	t.Run("they are forgotten", func(t *testing.T) {
		d.Clock.Move(10 * time.Minute)
		if err := guess("10.0.0.1", wrong); !errors.Is(err, apierr.NotFound) {
			t.Errorf("a guess is answered with %v", err)
		}
	})
}

// The limits of package usercode (docs/interface/limits.md#login-throttle).
const addressGuesses, applicationGuesses = 10, 300

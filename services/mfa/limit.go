package mfa

import (
	"context"
	"fmt"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/services/mfa/store"
)

// Wrong codes are counted for the challenge, and for the factor and the account
// across challenges. A right code takes nothing back: whoever has one factor of
// an account gets no more tries at another.
const (
	challengeFailures = 5
	factorFailures    = 10
	factorWindow      = time.Hour
	accountFailures   = 30
	accountWindow     = 24 * time.Hour

	messageWindow = time.Hour
)

// Config is how many messages may be sent within an hour on behalf of a tenant.
type Config struct {
	NumberMessages  int // to one number
	CountryMessages int // to the numbers of one country
	TenantMessages  int // in all
}

// failures is a count of wrong codes with its limit.
type failures struct {
	subject string
	most    int
	window  time.Duration
}

func failuresOf(f store.Factor) []failures {
	return []failures{
		{"failures/account/" + f.AccountID.String(), accountFailures, accountWindow},
		{"failures/factor/" + f.ID.String(), factorFailures, factorWindow},
	}
}

// mayTry refuses a factor that is out of tries, with apierr.ChallengeFailures.
func (s *Service) mayTry(ctx context.Context, tx *store.Tx, f store.Factor) error {
	now := s.now()
	for _, limit := range failuresOf(f) {
		count, err := tx.Count(ctx, f.TenantID, limit.subject, now)
		if err != nil {
			return err
		}
		if count.Count >= limit.most {
			return apierr.ChallengeFailures.Because("%d codes were wrong; the next is accepted after %s", count.Count, count.EndsAt.UTC().Format(time.RFC3339)).
				Saying("Too many wrong codes. Please try again later.").After(count.EndsAt.Sub(now))
		}
	}
	return nil
}

// countFailure counts a wrong code.
func (s *Service) countFailure(ctx context.Context, tx *store.Tx, f store.Factor) error {
	for _, limit := range failuresOf(f) {
		if _, err := tx.AddCount(ctx, f.TenantID, limit.subject, s.now(), limit.window); err != nil {
			return err
		}
	}
	return nil
}

// countMessage counts a message to a phone, or refuses it with apierr.TooMany
// where there have been enough. What is refused is not counted, because its
// transaction ends.
func (s *Service) countMessage(ctx context.Context, tx *store.Tx, phone store.Phone) error {
	now := s.now()
	for _, limit := range []struct {
		subject, of string
		most        int
	}{
		{"messages/number/" + phone.Number, "to " + phone.Number, s.cfg.NumberMessages},
		{"messages/country/" + country(phone.Number), "to numbers of that country", s.cfg.CountryMessages},
		{"messages", "of this tenant", s.cfg.TenantMessages},
	} {
		count, err := tx.AddCount(ctx, phone.TenantID, limit.subject, now, messageWindow)
		if err != nil {
			return fmt.Errorf("count a message: %w", err)
		}
		if count.Count > limit.most {
			return apierr.TooMany.Because("%d messages %s within an hour are as many as are sent", limit.most, limit.of).After(count.EndsAt.Sub(now))
		}
	}
	return nil
}

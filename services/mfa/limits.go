package mfa

import (
	"context"
	"fmt"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/services/mfa/store"
)

// The limits of wrong codes, for a challenge, and for a factor and an account across
// challenges. A correct code resets none: one factor of an account must not add
// more attempts at another.
const (
	challengeFailures = 5
	factorFailures    = 10
	factorWindow      = time.Hour
	accountFailures   = 30
	accountWindow     = 24 * time.Hour

	messageWindow = time.Hour

	// maxEnrolled is how many factors, and how many phones, an account may have for
	// its user to enroll another.
	maxEnrolled = 50
)

// Config limits the messages that a tenant sends within an hour.
type Config struct {
	AccountMessages int // for one account
	NumberMessages  int // to one number
	CountryMessages int // to the numbers of one country
	TenantMessages  int // in all
}

// failures is a counter of wrong codes with its limit.
type failures struct {
	subject string
	limit   int
	window  time.Duration
}

func failuresOf(f store.Factor) []failures {
	return []failures{
		{"failures/account/" + f.AccountID.String(), accountFailures, accountWindow},
		{"failures/factor/" + f.ID.String(), factorFailures, factorWindow},
	}
}

// mayTry returns apierr.ChallengeFailures for a factor that has used up its attempts.
func (s *Service) mayTry(ctx context.Context, tx *store.Tx, f store.Factor) error {
	now := s.now()
	for _, of := range failuresOf(f) {
		count, err := tx.Count(ctx, f.TenantID, of.subject, now)
		if err != nil {
			return err
		}
		if count.Count >= of.limit {
			return apierr.ChallengeFailures.Because("%d codes were wrong; the next is accepted after %s", count.Count,
				count.EndsAt.UTC().Format(time.RFC3339)).
				Saying("Too many wrong codes. Please try again later.").After(count.EndsAt.Sub(now))
		}
	}
	return nil
}

// countFailure counts a wrong code.
func (s *Service) countFailure(ctx context.Context, tx *store.Tx, f store.Factor) error {
	for _, of := range failuresOf(f) {
		if _, err := tx.AddCount(ctx, f.TenantID, of.subject, s.now(), of.window); err != nil {
			return err
		}
	}
	return nil
}

// countMessage counts a message to a phone, or returns apierr.TooMany at a limit.
// The rollback takes the count of a refused message back. The limit of an account
// is the first, so that no user can use up the limits that all share.
func (s *Service) countMessage(ctx context.Context, tx *store.Tx, phone store.Phone) error {
	now := s.now()
	for _, of := range []struct {
		subject, name string
		limit         int
	}{
		{"messages/account/" + phone.AccountID.String(), "of this account", s.cfg.AccountMessages},
		{"messages/number/" + phone.Number, "to " + phone.Number, s.cfg.NumberMessages},
		{"messages/country/" + country(phone.Number), "to numbers of that country", s.cfg.CountryMessages},
		{"messages", "of this tenant", s.cfg.TenantMessages},
	} {
		count, err := tx.AddCount(ctx, phone.TenantID, of.subject, now, messageWindow)
		if err != nil {
			return fmt.Errorf("count a message: %w", err)
		}
		if count.Count > of.limit {
			return apierr.TooMany.Because("the limit of %d messages %s within an hour is reached", of.limit, of.name).After(count.EndsAt.Sub(now))
		}
	}
	return nil
}

// mayEnroll returns apierr.Forbidden for an account of too many factors or phones. The
// transaction has locked the account.
func (s *Service) mayEnroll(ctx context.Context, tx *store.Tx, f store.Factor) error {
	factors, phones, err := tx.CountEnrolled(ctx, f.TenantID, f.AccountID)
	if err == nil && (factors >= maxEnrolled || f.Type == store.SMS && phones >= maxEnrolled) {
		err = apierr.Forbidden.Because("the account has %d factors and %d phones; a user enrolls none beyond %d", factors, phones, maxEnrolled).
			Saying("This account has too many second factors. Please contact support.")
	}
	return err
}

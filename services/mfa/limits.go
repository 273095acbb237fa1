package mfa

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/services/mfa/store"
)

// The limits of wrong codes (throttling, brute force protection): of a challenge, and of a factor and an
// account across their challenges. A correct code resets no counter: the owner of one factor
// must not get more attempts at another by it.
const (
	maxChallengeFailures = 5
	maxFactorFailures    = 10
	factorFailureWindow  = time.Hour
	maxAccountFailures   = 30
	accountFailureWindow = 24 * time.Hour

	// messageWindow is the time in which text messages are counted (Config).
	messageWindow = time.Hour

	// maxEnrolled is how many factors, and how many phones, an account can have by the
	// enrollment of its user. An API key of the tenant can add more.
	maxEnrolled = 50
)

// Config has the rate limits of text messages (SMS): how many a tenant sends within an hour. Those of
// an account, a number and a country hold for verified factors, and once more for enrollments.
type Config struct {
	AccountMessages int // for one account
	NumberMessages  int // to one number
	CountryMessages int // to the numbers of one country
	TenantMessages  int // in all to verified factors

	EnrollTenantMessages  int // in all to factors that are not verified
	EnrollAddressMessages int // to those that the users of one client address enroll
}

// attemptLimit is the limit of a counter of wrong codes.
type attemptLimit struct {
	counter string
	max     int
	window  time.Duration
}

// attemptLimits are the limits that apply to a wrong code of a factor.
func attemptLimits(f store.Factor) []attemptLimit {
	return []attemptLimit{
		{"failures/account/" + f.AccountID.String(), maxAccountFailures, accountFailureWindow},
		{"failures/factor/" + f.ID.String(), maxFactorFailures, factorFailureWindow},
	}
}

// checkAttemptLimits returns apierr.ChallengeFailures, with the time after which the next
// code is accepted, where the factor or its account has used up the attempts.
func (s *Service) checkAttemptLimits(ctx context.Context, tx *store.Tx, f store.Factor) error {
	now := s.now()
	for _, limit := range attemptLimits(f) {
		count, err := tx.Count(ctx, f.TenantID, limit.counter, now)
		if err != nil {
			return err
		}
		if count.Count >= limit.max {
			return apierr.ChallengeFailures.Because("%d codes were wrong; the next is accepted after %s", count.Count,
				count.EndsAt.UTC().Format(time.RFC3339)).
				Saying("Too many wrong codes. Please try again later.").WithRetryAfter(count.EndsAt.Sub(now))
		}
	}
	return nil
}

// countWrongCode adds a wrong code to the counters of the factor and of its account.
func (s *Service) countWrongCode(ctx context.Context, tx *store.Tx, f store.Factor) error {
	for _, limit := range attemptLimits(f) {
		if _, err := tx.AddCount(ctx, f.TenantID, limit.counter, s.now(), limit.window); err != nil {
			return err
		}
	}
	return nil
}

// messageLimit is the limit of a counter of text messages.
type messageLimit struct {
	counter, name string
	max           int
}

// countMessage counts a text message to a phone, or returns apierr.TooMany where a rate limit
// is reached. The caller's transaction then rolls back, and the message is not counted. The
// limit of the account comes first, so that no user can use up what all of the tenant share.
//
// A factor that is not verified has counters of its own: anybody can register and enroll the phones of
// strangers, which must not use up what users need to log in.
func (s *Service) countMessage(ctx context.Context, tx *store.Tx, f store.Factor, phone store.Phone) error {
	now := s.now()
	counter, tenantMessages := "messages", s.cfg.TenantMessages
	if f.VerificationStatus != store.Verified || phone.VerificationStatus != store.Verified {
		counter, tenantMessages = "enrollments", s.cfg.EnrollTenantMessages
	}
	limits := []messageLimit{
		{counter + "/account/" + phone.AccountID.String(), "of this account", s.cfg.AccountMessages},
		{counter + "/number/" + phone.Number, "to " + phone.Number, s.cfg.NumberMessages},
		{counter + "/country/" + countryOf(phone.Number), "to numbers of that country", s.cfg.CountryMessages},
		{counter, "of this tenant", tenantMessages},
	}
	if network := caller.From(ctx).Network(); counter == "enrollments" && network.IsValid() {
		limits = slices.Insert(limits, 1, messageLimit{counter + "/address/" + network.String(),
			"for users of this address",
			s.cfg.EnrollAddressMessages})
	}
	for _, limit := range limits {
		count, err := tx.AddCount(ctx, phone.TenantID, limit.counter, now, messageWindow)
		if err != nil {
			return fmt.Errorf("count a message: %w", err)
		}
		if count.Count > limit.max {
			return apierr.TooMany.Because("the limit of %d messages %s within an hour is reached", limit.max,
				limit.name).
				WithRetryAfter(count.EndsAt.Sub(now))
		}
	}
	return nil
}

// checkEnrollmentLimit returns apierr.Forbidden where the account has so many factors or
// phones that its user may enroll no other (maxEnrolled). The transaction must have locked
// the account.
func (s *Service) checkEnrollmentLimit(ctx context.Context, tx *store.Tx, f store.Factor) error {
	factors, phones, err := tx.CountEnrolled(ctx, f.TenantID, f.AccountID)
	if err == nil && (factors >= maxEnrolled || f.Type == store.SMS && phones >= maxEnrolled) {
		err = apierr.Forbidden.Because("the account has %d factors and %d phones; a user enrolls none beyond %d",
			factors, phones, maxEnrolled).
			Saying("This account has too many second factors. Please contact support.")
	}
	return err
}

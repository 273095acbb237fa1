package application

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"slices"
	"time"

	"github.com/doorward/doorward/pkg/alias"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/application/store"
)

// Config is what a deployment sets: the domain of Client APIs, and the login
// throttle (rate limit of logins, lockout, brute-force protection): how many logins may
// fail before the next are refused.
type Config struct {
	Suffix   string        // domain of the applications' Client APIs
	Alias    alias.Alias   // names identity providers; empty: alias.Neutral
	LoginKey secure.Secret // of the HMACs under which logins and addresses are counted

	Pair    Limit // of one login at one address
	Account Limit // of one login at all addresses that are not known for it
	Address Limit // of all logins at one address that is not known for them
	// AddressShare raises Address, in percent of the logins that succeeded at the
	// address within a day.
	AddressShare int
	// KnownFor is how long after a success an address is known for a login.
	KnownFor time.Duration
}

// Limit is a number of failures and the window in which they are counted. A
// window begins with its first failure.
type Limit struct {
	Failures int
	Within   time.Duration
}

const (
	// renewAfter is the age of a recorded success that the next one renews, so that
	// most logins write nothing.
	renewAfter = 12 * time.Hour
	// shareWithin is the age of the successes that AddressShare counts, and maxShare
	// bounds their number.
	shareWithin = 24 * time.Hour
	maxShare    = 50_000
)

// limitReasons explain a limit to a developer. They are true of logins without an
// account as of any other.
var limitReasons = map[string]string{
	resultPair:    "too many logins of this user name or email failed at this address",
	resultAccount: "too many logins of this user name or email failed at addresses where it has not logged in before",
	resultAddress: "too many logins failed at this address, and this user name or email has not logged in there before",
}

// attempt is one login attempt. Whether an account of the login exists has no
// influence on it until the attempt is recorded.
type attempt struct {
	tenant                 id.ID
	pair, account, address store.CounterKey
	known                  bool // the login has succeeded at the address lately
}

// newAttempt returns the attempt of a login at the address of the request.
func (s *Service) newAttempt(ctx context.Context, tenant id.ID, login string) attempt {
	name, address := s.hash(tenant, "login", field.Fold(login)), s.hash(tenant, "address", caller.From(ctx).Network().String())
	return attempt{
		tenant: tenant, pair: store.CounterKey{Login: name, Address: address},
		account: store.CounterKey{Login: name}, address: store.CounterKey{Address: address},
	}
}

// hash returns what is stored of a login or an address.
func (s *Service) hash(tenant id.ID, of, text string) string {
	mac := hmac.New(sha256.New, []byte(s.cfg.LoginKey))
	mac.Write(tenant[:])
	mac.Write([]byte(of + "\x00" + text))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}

// throttle is the lockout: it returns apierr.TooMany when a login, or an address, has failed too
// often, before any work that depends on the account. At an address that is
// known for the login only the failures of this login there count, so that
// neither attempts from elsewhere nor other users of the address lock the owner
// out.
func (s *Service) throttle(ctx context.Context, a *attempt, counters []store.Counter) error {
	a.known = slices.ContainsFunc(counters, func(c store.Counter) bool {
		return c.CounterKey == a.pair && c.SucceededAt != nil && c.SucceededAt.Add(s.cfg.KnownFor).After(s.now())
	})
	result, until := "", s.now()
	for _, c := range counters {
		if c.Failures >= c.FailureLimit && c.EndsAt.After(until) && (c.CounterKey == a.pair || !a.known) {
			result, until = a.limit(c.CounterKey), c.EndsAt
		}
	}
	if result == "" {
		return nil
	}
	return s.tooMany(ctx, result, until)
}

// tooMany counts a refusal and returns it.
func (s *Service) tooMany(ctx context.Context, result string, until time.Time) error {
	s.count(ctx, result)
	return apierr.TooMany.Because("%s; the next is accepted after %s", limitReasons[result], until.UTC().Format(time.RFC3339)).
		Saying("Too many logins have failed. Please try again later.").After(until.Sub(s.now()))
}

// limit returns the result that a login has which a counter of the attempt
// refuses.
func (a attempt) limit(key store.CounterKey) string {
	switch key {
	case a.account:
		return resultAccount
	case a.address:
		return resultAddress
	}
	return resultPair
}

// afterPassword are the refusals of a login whose password is right.
var afterPassword = []error{
	apierr.AccountDisabled, apierr.AccountUnverified, apierr.AccountLocked, apierr.GroupDisabled, apierr.DirectoryDisabled,
	apierr.OrganizationDisabled,
}

// record counts the outcome of an attempt and returns the error for the client.
// Where parallel attempts have reached a limit meanwhile, that is TooMany, for the
// right password too: parallel attempts learn no more than one after the other.
// Errors that reveal nothing about the password are returned as they are.
func (s *Service) record(ctx context.Context, a attempt, outcome error) error {
	switch {
	case errors.Is(outcome, apierr.WrongPassword), errors.Is(outcome, apierr.NoSuchAccount):
		return s.recordFailure(ctx, a, outcome)
	case outcome == nil, is(outcome, afterPassword):
		return s.recordPassword(ctx, a, outcome)
	}
	return outcome
}

// recordFailure counts a failure before the client is answered.
func (s *Service) recordFailure(ctx context.Context, a attempt, outcome error) error {
	result, until := "", time.Time{}
	err := s.store.Tx(ctx, func(tx *store.Tx) error {
		result, until = "", s.now()
		counters, err := s.addFailure(ctx, tx, a)
		for _, c := range counters {
			if c.Failures > c.FailureLimit && c.EndsAt.After(until) {
				result, until = a.limit(c.CounterKey), c.EndsAt
			}
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case result != "":
		return s.tooMany(ctx, result, until)
	}
	s.count(ctx, resultFailure)
	return outcome
}

// addFailure adds a failure to the counters of an attempt; at a known address
// there is one.
func (s *Service) addFailure(ctx context.Context, tx *store.Tx, a attempt) ([]store.Counter, error) {
	now := s.now()
	first := func(key store.CounterKey, limit Limit) store.Counter {
		return store.Counter{CounterKey: key, FailureLimit: limit.Failures, EndsAt: now.Add(limit.Within)}
	}
	added := []store.Counter{first(a.pair, s.cfg.Pair)}
	if !a.known {
		added = append(added, first(a.account, s.cfg.Account), first(a.address, s.cfg.Address))
	}
	counters, err := tx.AddFailures(ctx, a.tenant, now, added)
	for i, c := range counters {
		if err == nil && c.CounterKey == a.address && c.Failures >= c.FailureLimit {
			counters[i].FailureLimit, err = s.raiseLimit(ctx, tx, a)
		}
	}
	return counters, err
}

// raiseLimit allows more failures at an address where many logins succeed, so that
// a server which logs its users in stays open to new ones. The last failure that
// the limit allows asks for it, because the next are refused.
func (s *Service) raiseLimit(ctx context.Context, tx *store.Tx, a attempt) (limit int, err error) {
	succeeded, err := tx.CountSucceeded(ctx, a.tenant, a.address.Address, s.now().Add(-shareWithin), maxShare)
	if err != nil {
		return 0, err
	}
	limit = s.cfg.Address.Failures + succeeded*s.cfg.AddressShare/100
	return limit, tx.SetFailureLimit(ctx, a.tenant, a.address, limit)
}

// recordPassword checks the limits again for an attempt with the right password,
// and records a success. outcome is the refusal of its account, if any.
func (s *Service) recordPassword(ctx context.Context, a attempt, outcome error) error {
	counters, err := s.store.LoginCounters(ctx, a.tenant, a.pair)
	if err == nil {
		err = s.throttle(ctx, &a, counters)
	}
	if err != nil {
		return err
	}
	if outcome != nil {
		s.count(ctx, resultRejected)
		return outcome
	}
	s.count(ctx, resultSuccess)
	isRecent := slices.ContainsFunc(counters, func(c store.Counter) bool {
		return c.CounterKey == a.pair && c.Failures == 0 && c.SucceededAt != nil && c.SucceededAt.Add(renewAfter).After(s.now())
	})
	if a.known && isRecent {
		return nil
	}
	return s.recordSuccess(ctx, a)
}

// recordSuccess makes the addresses of attempts known for their logins, and resets the
// failures of those logins there.
func (s *Service) recordSuccess(ctx context.Context, attempts ...attempt) error {
	now := s.now()
	return s.store.Tx(ctx, func(tx *store.Tx) error {
		for _, a := range attempts {
			if err := tx.AddSuccess(ctx, a.tenant, a.pair, now, now.Add(s.cfg.KnownFor)); err != nil {
				return err
			}
		}
		return nil
	})
}

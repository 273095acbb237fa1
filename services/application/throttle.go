package application

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"slices"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/application/store"
)

// Limit is a number of failed logins and the time window in which they are counted (lockout, against
// brute force and credential stuffing). A window begins with its first failure.
type Limit struct {
	Failures int
	Within   time.Duration
}

const (
	// renewSuccessAfter is the age at which a recorded success is renewed by the next success.
	// Most logins therefore write no row.
	renewSuccessAfter = 12 * time.Hour
	// successesWithin is the greatest age of the successes that AddressShare counts, and
	// maxSuccesses the limit of their number.
	successesWithin = 24 * time.Hour
	maxSuccesses    = 50_000
)

// limitReasons are the texts of the limits for developers. They do not tell whether the login
// name has an account (user enumeration).
var limitReasons = map[string]string{
	resultPair:    "too many logins of this user name or email failed at this address",
	resultAccount: "too many logins of this user name or email failed at addresses where it has not logged in before",
	resultAddress: "too many logins failed at this address, and this user name or email has not logged in there before",
	resultApplication: "too many logins failed at this application by an API key that does not name the address of the " +
		"user, and this " +
		"user name or email has not logged in there before",
}

// attempt is a login attempt with the keys of its counters of failed logins. It is the same
// whether or not the login name has an account.
type attempt struct {
	tenant                       id.ID
	loginAndIP, account, address store.LoginCounterKey
	known                        bool // the login name has succeeded at the address within KnownFor
	isAddressed                  bool // the address is that of the user, and not an application in its place

	stores    []directoryapi.Store // in which the login name is looked up
	refusedBy string               // the limit that has refused it, one of limitNames; empty: none
	until     time.Time            // when that limit ends
}

// limitNames are the limits in the audit log and in the rows of failed logins, by their results. Where an
// application is counted in place of an address, its limit is that of the address.
var limitNames = map[string]string{
	resultPair: "LOGIN_AND_ADDRESS", resultAccount: "LOGIN", resultAddress: "ADDRESS", resultApplication: "ADDRESS",
}

// newAttempt returns the attempt of a login name at the address of the user. Where a client with an
// API key does not name that address (docs/interface/limits.md#login-throttle), the application is
// counted in its place: the address of the client is that of a server, which all its users share.
func (s *Service) newAttempt(ctx context.Context, application directoryapi.Ref, login string) attempt {
	tenant, network := application.Tenant, caller.From(ctx).Network()
	name, address := s.loginHash(tenant, login), s.counterHash(tenant, "address", network.String())
	if !network.IsValid() {
		address = s.counterHash(tenant, "application", application.ID.String())
	}
	return attempt{
		tenant: tenant, loginAndIP: store.LoginCounterKey{Login: name, Address: address}, isAddressed: network.IsValid(),
		account: store.LoginCounterKey{Login: name}, address: store.LoginCounterKey{Address: address},
	}
}

// loginHash returns the HMAC of a login name.
func (s *Service) loginHash(tenant id.ID, login string) string {
	return s.counterHash(tenant, "login", field.LoginName(login))
}

// counterHash returns the HMAC by which a login name, an address or an application is stored in a
// counter. kind is "login", "address" or "application".
func (s *Service) counterHash(tenant id.ID, kind, text string) string {
	mac := hmac.New(sha256.New, []byte(s.cfg.LoginKey))
	mac.Write(tenant[:])
	mac.Write([]byte(kind + "\x00" + text))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}

// throttle is the lockout after failed logins (rate limit of logins, brute-force and
// credential-stuffing protection): it returns apierr.TooMany when a login name, or an address,
// has failed too often, before any work that depends on the account. At an address that is
// known for the login name, only the failures of this login name at this address count: neither
// attempts from other addresses nor other users of the address lock the user out. The limits
// are in Config (service.go), the counters in store/logincounter.go.
func (s *Service) throttle(ctx context.Context, a *attempt, counters []store.LoginCounter) error {
	a.known = s.isKnown(*a, counters)
	result, until := a.reachedLimit(counters, s.now())
	if result == "" {
		return nil
	}
	return s.tooMany(ctx, a, result, until)
}

// isKnown reports whether the login name has succeeded at the address within KnownFor.
func (s *Service) isKnown(a attempt, counters []store.LoginCounter) bool {
	return slices.ContainsFunc(counters, func(c store.LoginCounter) bool {
		return c.LoginCounterKey == a.loginAndIP && c.SucceededAt != nil && c.SucceededAt.Add(s.cfg.KnownFor).After(s.now())
	})
}

// reachedLimit returns the result of the limit that is reached and ends last, with that end; empty where none is.
func (a *attempt) reachedLimit(counters []store.LoginCounter, now time.Time) (result string, until time.Time) {
	until = now
	for _, c := range counters {
		if c.Failures >= c.FailureLimit && c.EndsAt.After(until) && (c.LoginCounterKey == a.loginAndIP || !a.known) {
			result, until = a.limitResult(c.LoginCounterKey), c.EndsAt
		}
	}
	return result, until
}

// tooMany returns the error of a limit, counts it in the metrics and notes the limit in the attempt.
func (s *Service) tooMany(ctx context.Context, a *attempt, result string, until time.Time) error {
	s.countLogin(ctx, result)
	a.refusedBy, a.until = limitNames[result], until
	return s.limitError(result, until)
}

// limitError returns apierr.TooMany (429 with Retry-After) for a limit.
func (s *Service) limitError(result string, until time.Time) error {
	return apierr.TooMany.Because("%s; the next is accepted after %s", limitReasons[result],
		until.UTC().Format(time.RFC3339)).
		Saying("Too many logins have failed. Please try again later.").WithRetryAfter(until.Sub(s.now()))
}

// limitResult returns the result, for the metrics, of a login that the counter with a key
// refuses.
func (a attempt) limitResult(key store.LoginCounterKey) string {
	switch key {
	case a.account:
		return resultAccount
	case a.address:
		if !a.isAddressed {
			return resultApplication
		}
		return resultAddress
	}
	return resultPair
}

// refusalsAfterPassword are the errors of a login whose password is right.
var refusalsAfterPassword = []error{
	apierr.AccountDisabled, apierr.AccountUnverified, apierr.AccountLocked, apierr.GroupDisabled, apierr.DirectoryDisabled,
	apierr.OrganizationDisabled, apierr.OutsideDomains,
}

// recordOutcome counts the outcome of a login attempt, and returns the error for the client.
// Where concurrent attempts have reached a limit since throttle was called, that is
// apierr.TooMany, also for the right password: an attacker learns no more from concurrent
// attempts than from sequential ones. A check that the agent of a directory did not answer counts as a
// failure: it holds the agent up like a wrong password. Any other error that tells nothing about the
// password, such as a failure of a service, is returned unchanged and not counted.
func (s *Service) recordOutcome(ctx context.Context, a *attempt, outcome error) error {
	switch {
	case errors.Is(outcome, apierr.WrongPassword), errors.Is(outcome, apierr.NoSuchAccount),
		errors.Is(outcome, apierr.AgentSlow), errors.Is(outcome, apierr.ServerSlow):
		return s.recordFailure(ctx, a, outcome)
	case outcome == nil, isOneOf(outcome, refusalsAfterPassword):
		return s.recordRightPassword(ctx, a, outcome)
	}
	return outcome
}

// recordFailure counts a failed login before the client gets the answer.
func (s *Service) recordFailure(ctx context.Context, a *attempt, outcome error) error {
	result, until := "", time.Time{}
	err := s.store.Tx(ctx, func(tx *store.Tx) error {
		result, until = "", s.now()
		counters, err := s.addFailure(ctx, tx, *a)
		for _, c := range counters {
			if c.Failures > c.FailureLimit && c.EndsAt.After(until) {
				result, until = a.limitResult(c.LoginCounterKey), c.EndsAt
			}
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case result != "":
		return s.tooMany(ctx, a, result, until)
	}
	s.countLogin(ctx, resultFailure)
	return outcome
}

// addFailure adds a failure to the counters of an attempt, and returns these. At an address
// that is known for the login name only the counter of the login name at the address is used.
func (s *Service) addFailure(ctx context.Context, tx *store.Tx, a attempt) ([]store.LoginCounter, error) {
	now := s.now()
	newWindow := func(key store.LoginCounterKey, limit Limit) store.LoginCounter {
		return store.LoginCounter{LoginCounterKey: key, FailureLimit: limit.Failures, EndsAt: now.Add(limit.Within)}
	}
	added := []store.LoginCounter{newWindow(a.loginAndIP, s.cfg.Pair)}
	if !a.known {
		added = append(added, newWindow(a.account, s.cfg.Account), newWindow(a.address, s.addressLimit(a)))
	}
	counters, err := tx.AddFailures(ctx, a.tenant, now, added)
	for i, c := range counters {
		if err == nil && c.LoginCounterKey == a.address && c.Failures >= c.FailureLimit {
			counters[i].FailureLimit, err = s.raiseLimit(ctx, tx, a)
		}
	}
	return counters, err
}

// addressLimit is the limit of all logins at the address of an attempt.
func (s *Service) addressLimit(a attempt) Limit {
	if !a.isAddressed {
		return s.cfg.Application
	}
	return s.cfg.Address
}

// raiseLimit raises the limit of an address by AddressShare of the logins that succeeded there,
// and returns the new limit: a server that logs its users in has one address, and must not be
// locked out for new users. It is called when the limit is reached, because the next logins
// would be refused.
func (s *Service) raiseLimit(ctx context.Context, tx *store.Tx, a attempt) (limit int, err error) {
	succeeded, err := tx.CountSucceeded(ctx, a.tenant, a.address.Address, s.now().Add(-successesWithin), maxSuccesses)
	if err != nil {
		return 0, err
	}
	limit = s.addressLimit(a).Failures + succeeded*s.cfg.AddressShare/100
	return limit, tx.SetFailureLimit(ctx, a.tenant, a.address, limit)
}

// recordRightPassword checks the limits again for an attempt with the right password, and
// records a success. outcome is the error of the account, such as apierr.AccountDisabled, or
// nil.
func (s *Service) recordRightPassword(ctx context.Context, a *attempt, outcome error) error {
	counters, err := s.store.LoginCounters(ctx, a.tenant, a.loginAndIP)
	if err != nil {
		return err
	}
	if err := s.throttle(ctx, a, counters); err != nil {
		return err
	}
	if outcome != nil {
		s.countLogin(ctx, resultRejected)
		return outcome
	}
	s.countLogin(ctx, resultSuccess)
	isRecent := slices.ContainsFunc(counters, func(c store.LoginCounter) bool {
		return c.LoginCounterKey == a.loginAndIP && c.Failures == 0 && c.SucceededAt != nil &&
			c.SucceededAt.Add(renewSuccessAfter).After(s.now())
	})
	if a.known && isRecent {
		return nil
	}
	return s.recordSuccess(ctx, *a)
}

// recordSuccess records the addresses of attempts as known for their login names, and resets
// the failures of these login names at these addresses.
func (s *Service) recordSuccess(ctx context.Context, attempts ...attempt) error {
	now := s.now()
	return s.store.Tx(ctx, func(tx *store.Tx) error {
		for _, a := range attempts {
			if err := tx.AddSuccess(ctx, a.tenant, a.loginAndIP, now, now.Add(s.cfg.KnownFor)); err != nil {
				return err
			}
		}
		return nil
	})
}

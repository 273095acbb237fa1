// Package throttle is the lockout after failed logins (rate limit of logins, protection against brute force and
// credential stuffing; docs/interface/limits.md#login-throttle). It is a part of the application service; its counters
// are in services/application/store/logincounter.go, its numbers are variables of services/application/app/config.go.
// The status LOCKED of an account is something else: an administrator sets it.
package throttle

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
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
	resultApplication: "too many logins failed at this application by an API key that does not name the address of " +
		"the user, and this user name or email has not logged in there before",
}

// Config has the limits of failed logins.
type Config struct {
	LoginKey secure.Secret // key of the HMACs under which login names and addresses are stored

	Pair    Limit // of one login name at one address
	Account Limit // of one login name at all addresses that are not known for it
	Address Limit // of all login names at one address that is not known for them
	// Application is the limit of all login names at one application by clients with an API key that
	// do not name the address of the user. It is one that no honest site reaches.
	Application Limit
	// AddressShare raises Address, and Application, by a percentage of the logins that succeeded at the
	// address, or the application, within a day.
	AddressShare int
	// KnownFor is how long an address is known for a login name after a successful login.
	KnownFor time.Duration
}

// Throttle counts failed logins, and refuses logins after too many.
type Throttle struct {
	Config
	store  *store.Store
	now    func() time.Time
	logins metric.Int64Counter
}

// New returns a Throttle.
func New(s *store.Store, now func() time.Time, cfg Config) *Throttle {
	return &Throttle{Config: cfg, store: s, now: now, logins: newLoginCounter()}
}

// Attempt is a login attempt with the keys of its counters of failed logins. It is the same
// whether or not the login name has an account.
type Attempt struct {
	tenant                 id.ID
	Pair, account, address store.LoginCounterKey
	known                  bool // the login name has succeeded at the address within KnownFor
	IsAddressed            bool // the address is that of the user, and not an application in its place

	Stores    []directoryapi.Store // in which the login name is looked up
	RefusedBy string               // the limit that has refused it, one of limitNames; empty: none
	Until     time.Time            // when that limit ends
}

// limitNames are the limits in the audit log and in the rows of failed logins, by their results. Where an
// application is counted in place of an address, its limit is that of the address.
var limitNames = map[string]string{
	resultPair: "LOGIN_AND_ADDRESS", resultAccount: "LOGIN", resultAddress: "ADDRESS", resultApplication: "ADDRESS",
}

// NewAttempt returns the attempt of a login name at the address of the user. Where a client with an
// API key does not name that address (docs/interface/limits.md#login-throttle), the application is
// counted in its place: the address of the client is that of a server, which all its users share.
func (s *Throttle) NewAttempt(ctx context.Context, application directoryapi.Ref, login string) Attempt {
	tenant, network := application.Tenant, caller.From(ctx).Network()
	name, address := s.LoginHash(tenant, login), s.counterHash(tenant, "address", network.String())
	if !network.IsValid() {
		address = s.counterHash(tenant, "application", application.ID.String())
	}
	return Attempt{
		tenant: tenant, Pair: store.LoginCounterKey{Login: name, Address: address}, IsAddressed: network.IsValid(),
		account: store.LoginCounterKey{Login: name}, address: store.LoginCounterKey{Address: address},
	}
}

// LoginHash returns the HMAC of a login name.
func (s *Throttle) LoginHash(tenant id.ID, login string) string {
	return s.counterHash(tenant, "login", field.LoginName(login))
}

// counterHash returns the HMAC by which a login name, an address or an application is stored in a
// counter. kind is "login", "address" or "application".
func (s *Throttle) counterHash(tenant id.ID, kind, text string) string {
	mac := hmac.New(sha256.New, []byte(s.LoginKey))
	mac.Write(tenant[:])
	mac.Write([]byte(kind + "\x00" + text))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}

// Check returns apierr.TooMany when a login name, or an address,
// has failed too often, before any work that depends on the account. At an address that is
// known for the login name, only the failures of this login name at this address count: neither
// attempts from other addresses nor other users of the address lock the user out.
func (s *Throttle) Check(ctx context.Context, a *Attempt, counters []store.LoginCounter) error {
	a.known = s.isKnown(*a, counters)
	result, until := a.reachedLimit(counters, s.now())
	if result == "" {
		return nil
	}
	return s.tooMany(ctx, a, result, until)
}

// Explain is Check, which counts nothing: it returns the name of the limit that refuses the attempt, empty where none
// does, and whether the login name is known at the address.
func (s *Throttle) Explain(a *Attempt, counters []store.LoginCounter) (limit string, known bool, err error) {
	a.known = s.isKnown(*a, counters)
	result, until := a.reachedLimit(counters, s.now())
	if result == "" {
		return "", a.known, nil
	}
	a.RefusedBy, a.Until = limitNames[result], until
	return a.RefusedBy, a.known, s.limitError(result, until)
}

// LimitName returns the name of the limit of a counter.
func (a *Attempt) LimitName(key store.LoginCounterKey) string { return limitNames[a.limitResult(key)] }

// isKnown reports whether the login name has succeeded at the address within KnownFor.
func (s *Throttle) isKnown(a Attempt, counters []store.LoginCounter) bool {
	return slices.ContainsFunc(counters, func(c store.LoginCounter) bool {
		return c.LoginCounterKey == a.Pair && c.SucceededAt != nil && c.SucceededAt.Add(s.KnownFor).After(s.now())
	})
}

// reachedLimit returns the result of the limit that is reached and ends last, with that end; empty where none is.
func (a *Attempt) reachedLimit(counters []store.LoginCounter, now time.Time) (result string, until time.Time) {
	until = now
	for _, c := range counters {
		if c.Failures >= c.FailureLimit && c.EndsAt.After(until) && (c.LoginCounterKey == a.Pair || !a.known) {
			result, until = a.limitResult(c.LoginCounterKey), c.EndsAt
		}
	}
	return result, until
}

// tooMany returns the error of a limit, counts it in the metrics and notes the limit in the attempt.
func (s *Throttle) tooMany(ctx context.Context, a *Attempt, result string, until time.Time) error {
	s.countLogin(ctx, result)
	a.RefusedBy, a.Until = limitNames[result], until
	return s.limitError(result, until)
}

// limitError returns apierr.TooMany (429 with Retry-After) for a limit.
func (s *Throttle) limitError(result string, until time.Time) error {
	return apierr.TooMany.Because("%s; the next is accepted after %s", limitReasons[result],
		until.UTC().Format(time.RFC3339)).
		Saying("Too many logins have failed. Please try again later.").WithRetryAfter(until.Sub(s.now()))
}

// limitResult returns the result, for the metrics, of a login that the counter with a key
// refuses.
func (a Attempt) limitResult(key store.LoginCounterKey) string {
	switch key {
	case a.account:
		return resultAccount
	case a.address:
		if !a.IsAddressed {
			return resultApplication
		}
		return resultAddress
	}
	return resultPair
}

// AfterPassword are the errors of a login whose password is right.
var AfterPassword = []error{
	apierr.AccountDisabled, apierr.AccountUnverified, apierr.AccountLocked, apierr.GroupDisabled,
	apierr.DirectoryDisabled, apierr.OrganizationDisabled, apierr.OutsideDomains,
}

// RecordOutcome counts the outcome of a login attempt, and returns the error for the client.
// Where concurrent attempts have reached a limit since Check was called, that is
// apierr.TooMany, also for the right password: an attacker learns no more from concurrent
// attempts than from sequential ones. A check that the agent of a directory did not answer counts as a
// failure: it holds the agent up like a wrong password. Any other error that tells nothing about the
// password, such as a failure of a service, is returned unchanged and not counted.
func (s *Throttle) RecordOutcome(ctx context.Context, a *Attempt, outcome error) error {
	switch {
	case errors.Is(outcome, apierr.WrongPassword), errors.Is(outcome, apierr.NoSuchAccount),
		errors.Is(outcome, apierr.AgentSlow), errors.Is(outcome, apierr.ServerSlow):
		return s.recordFailure(ctx, a, outcome)
	case outcome == nil, apierr.IsOneOf(outcome, AfterPassword):
		return s.recordRightPassword(ctx, a, outcome)
	}
	return outcome
}

// recordFailure counts a failed login before the client gets the answer.
func (s *Throttle) recordFailure(ctx context.Context, a *Attempt, outcome error) error {
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
func (s *Throttle) addFailure(ctx context.Context, tx *store.Tx, a Attempt) ([]store.LoginCounter, error) {
	now := s.now()
	newWindow := func(key store.LoginCounterKey, limit Limit) store.LoginCounter {
		return store.LoginCounter{LoginCounterKey: key, FailureLimit: limit.Failures, EndsAt: now.Add(limit.Within)}
	}
	added := []store.LoginCounter{newWindow(a.Pair, s.Pair)}
	if !a.known {
		added = append(added, newWindow(a.account, s.Account), newWindow(a.address, s.addressLimit(a)))
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
func (s *Throttle) addressLimit(a Attempt) Limit {
	if !a.IsAddressed {
		return s.Application
	}
	return s.Address
}

// raiseLimit raises the limit of an address by AddressShare of the logins that succeeded there,
// and returns the new limit: a server that logs its users in has one address, and must not be
// locked out for new users. It is called when the limit is reached, because the next logins
// would be refused.
func (s *Throttle) raiseLimit(ctx context.Context, tx *store.Tx, a Attempt) (limit int, err error) {
	succeeded, err := tx.CountSucceeded(ctx, a.tenant, a.address.Address, s.now().Add(-successesWithin), maxSuccesses)
	if err != nil {
		return 0, err
	}
	limit = s.addressLimit(a).Failures + succeeded*s.AddressShare/100
	return limit, tx.SetFailureLimit(ctx, a.tenant, a.address, limit)
}

// recordRightPassword checks the limits again for an attempt with the right password, and
// records a success. outcome is the error of the account, such as apierr.AccountDisabled, or
// nil.
func (s *Throttle) recordRightPassword(ctx context.Context, a *Attempt, outcome error) error {
	counters, err := s.store.LoginCounters(ctx, a.tenant, a.Pair)
	if err != nil {
		return err
	}
	if err := s.Check(ctx, a, counters); err != nil {
		return err
	}
	if outcome != nil {
		s.countLogin(ctx, resultRejected)
		return outcome
	}
	s.countLogin(ctx, resultSuccess)
	isRecent := slices.ContainsFunc(counters, func(c store.LoginCounter) bool {
		return c.LoginCounterKey == a.Pair && c.Failures == 0 && c.SucceededAt != nil &&
			c.SucceededAt.Add(renewSuccessAfter).After(s.now())
	})
	if a.known && isRecent {
		return nil
	}
	return s.RecordSuccess(ctx, *a)
}

// RecordSuccess records the addresses of attempts as known for their login names, and resets
// the failures of these login names at these addresses.
func (s *Throttle) RecordSuccess(ctx context.Context, attempts ...Attempt) error {
	now := s.now()
	return s.store.Tx(ctx, func(tx *store.Tx) error {
		for _, a := range attempts {
			if err := tx.AddSuccess(ctx, a.tenant, a.Pair, now, now.Add(s.KnownFor)); err != nil {
				return err
			}
		}
		return nil
	})
}

package application

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/netip"
	"slices"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/application/store"
)

// Config is what a deployment decides: the domain of Client APIs, and how many
// logins may fail before the next are refused.
type Config struct {
	Suffix   string        // domain of the applications' Client APIs
	LoginKey secure.Secret // logins and addresses are stored as digests under it

	Pair    Limit // of one login at one address
	Account Limit // of one login at all addresses that are not known for it
	Address Limit // of all logins at one address that is not known for them
	// AddressShare is how many failures besides those of Address there is room for,
	// in percent of the logins that succeed at the address within a day.
	AddressShare int
	// KnownFor is how long after a success an address is known for a login.
	KnownFor time.Duration
}

// Limit is a number of failures and the time in which they are counted. The
// window begins with the first failure.
type Limit struct {
	Failures int
	Within   time.Duration
}

const (
	// successAge is how old the note of a success grows before the next one
	// renews it: so most logins write nothing.
	successAge = 12 * time.Hour
	// busyWithin is when a login has succeeded that counts for AddressShare.
	busyWithin = 24 * time.Hour
	// maxBusy bounds the logins that are counted for it.
	maxBusy = 50_000
)

// The results of a login, by which logins are counted. The last three are named
// after the limit that refused one.
const (
	resultSuccess  = "success"
	resultFailure  = "failure"  // the password or the login is wrong
	resultRejected = "rejected" // the password is right, and the account may not log in
	resultPair     = "pair_limit"
	resultAccount  = "account_limit"
	resultAddress  = "address_limit"
)

// reasons say to a developer what a limit is about. They hold for logins that
// nobody has as for any other.
var reasons = map[string]string{
	resultPair:    "too many logins of this user name or email failed at this address",
	resultAccount: "too many logins of this user name or email failed at addresses where it has not logged in before",
	resultAddress: "too many logins failed at this address, and this user name or email has not logged in there before",
}

// guess is one try to log in. Until it is settled nobody asks whether an account
// of that login exists.
type guess struct {
	tenant                 id.ID
	pair, account, address store.Subject
	known                  bool // the login has succeeded at the address lately
}

// guess gives the try of a login at the address that the request comes from.
func (s *Service) guess(ctx context.Context, tenant id.ID, login string) guess {
	name, address := s.digest(tenant, "login", field.Fold(login)), s.digest(tenant, "address", network(caller.From(ctx).Address))
	return guess{
		tenant: tenant, pair: store.Subject{Login: name, Address: address},
		account: store.Subject{Login: name}, address: store.Subject{Address: address},
	}
}

// digest is what is stored of a login or an address.
func (s *Service) digest(tenant id.ID, of, text string) string {
	mac := hmac.New(sha256.New, []byte(s.cfg.LoginKey))
	mac.Write(tenant[:])
	mac.Write([]byte(of + "\x00" + text))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}

// network is what counts as one address: whoever has one address of an IPv6
// network of 64 bits can have them all.
func network(address netip.Addr) string {
	address = address.Unmap().WithZone("")
	if address.Is6() {
		prefix, _ := address.Prefix(64) // fails for more bits than an address has
		address = prefix.Addr()
	}
	return address.String()
}

// look reads what the tallies say of a guess. It refuses the guess with
// apierr.TooMany where enough have failed, before anything is done for it that
// depends on the account. At an address where the login has succeeded nothing
// counts but what fails of this login there: neither guesses from elsewhere nor
// those of others who share the address lock the owner out.
func (s *Service) look(ctx context.Context, g *guess, tallies []store.Tally) error {
	g.known = slices.ContainsFunc(tallies, func(t store.Tally) bool {
		return t.Subject == g.pair && t.SucceededAt != nil && t.SucceededAt.Add(s.cfg.KnownFor).After(s.now())
	})
	result, until := "", s.now()
	for _, t := range tallies {
		if t.Failures >= t.Most && t.EndsAt.After(until) && (t.Subject == g.pair || !g.known) {
			result, until = g.limit(t.Subject), t.EndsAt
		}
	}
	if result == "" {
		return nil
	}
	return s.refuse(ctx, result, until)
}

// refuse counts a refusal and gives it.
func (s *Service) refuse(ctx context.Context, result string, until time.Time) error {
	s.count(ctx, result)
	return apierr.TooMany.Because("%s; the next is accepted after %s", reasons[result], until.UTC().Format(time.RFC3339)).
		Saying("Too many logins have failed. Please try again later.").After(until.Sub(s.now()))
}

// limit names the limit that a tally of the guess is held to.
func (g guess) limit(of store.Subject) string {
	switch of {
	case g.account:
		return resultAccount
	case g.address:
		return resultAddress
	}
	return resultPair
}

// proofs are the refusals that only who knows the password gets to see.
var proofs = []error{apierr.AccountDisabled, apierr.AccountUnverified, apierr.GroupDisabled, apierr.DirectoryDisabled, apierr.OrganizationDisabled}

// settle counts how a guess ended and gives what the client hears of it. Where
// others at the same time have used up what was left, that is a refusal like
// that of look, also for the right password: parallel guesses learn no more
// than one after the other. Errors that say nothing of the password stay as they
// are.
func (s *Service) settle(ctx context.Context, g guess, outcome error) error {
	switch {
	case errors.Is(outcome, apierr.WrongPassword), errors.Is(outcome, apierr.NoSuchAccount):
		return s.settleFailure(ctx, g, outcome)
	case outcome == nil:
		return s.settleProof(ctx, g, nil)
	}
	if slices.ContainsFunc(proofs, func(proof error) bool { return errors.Is(outcome, proof) }) {
		return s.settleProof(ctx, g, outcome)
	}
	return outcome
}

// settleFailure counts a failure before the client hears of it.
func (s *Service) settleFailure(ctx context.Context, g guess, outcome error) error {
	over, until := "", time.Time{}
	err := s.store.Tx(ctx, func(tx *store.Tx) error {
		over, until = "", s.now()
		tallies, err := s.addFailure(ctx, tx, g)
		for _, t := range tallies {
			if t.Failures > t.Most && t.EndsAt.After(until) {
				over, until = g.limit(t.Subject), t.EndsAt
			}
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case over != "":
		return s.refuse(ctx, over, until)
	}
	s.count(ctx, resultFailure)
	return outcome
}

// addFailure counts a failure in each tally that it belongs to, which for a known
// address is one.
func (s *Service) addFailure(ctx context.Context, tx *store.Tx, g guess) ([]store.Tally, error) {
	now := s.now()
	of := func(subject store.Subject, limit Limit) store.Tally {
		return store.Tally{Subject: subject, Most: limit.Failures, EndsAt: now.Add(limit.Within)}
	}
	begun := []store.Tally{of(g.pair, s.cfg.Pair)}
	if !g.known {
		begun = append(begun, of(g.account, s.cfg.Account), of(g.address, s.cfg.Address))
	}
	tallies, err := tx.AddFailures(ctx, g.tenant, now, begun)
	for i, t := range tallies {
		if err == nil && t.Subject == g.address && t.Failures >= t.Most {
			tallies[i].Most, err = s.makeRoom(ctx, tx, g)
		}
	}
	return tallies, err
}

// makeRoom lets more logins fail at an address where many succeed: a server which
// logs its users in is not closed to new ones because some mistype their name. It
// is asked for with the last failure that there was room for, because what comes
// after that is refused.
func (s *Service) makeRoom(ctx context.Context, tx *store.Tx, g guess) (most int, err error) {
	busy, err := tx.CountSucceeded(ctx, g.tenant, g.address.Address, s.now().Add(-busyWithin), maxBusy)
	if err != nil {
		return 0, err
	}
	most = s.cfg.Address.Failures + busy*s.cfg.AddressShare/100
	return most, tx.SetMost(ctx, g.tenant, g.address, most)
}

// settleProof looks once more whether a guess with the right password is let
// through, and notes a success.
func (s *Service) settleProof(ctx context.Context, g guess, outcome error) error {
	tallies, err := s.store.Tallies(ctx, g.tenant, g.pair)
	if err == nil {
		err = s.look(ctx, &g, tallies)
	}
	if err != nil {
		return err
	}
	if outcome != nil {
		s.count(ctx, resultRejected)
		return outcome
	}
	s.count(ctx, resultSuccess)
	noted := slices.ContainsFunc(tallies, func(t store.Tally) bool {
		return t.Subject == g.pair && t.Failures == 0 && t.SucceededAt != nil && t.SucceededAt.Add(successAge).After(s.now())
	})
	if g.known && noted {
		return nil
	}
	return s.know(ctx, g)
}

// know makes the address of a guess known for its login, and takes back what has
// failed of that login there.
func (s *Service) know(ctx context.Context, guesses ...guess) error {
	now := s.now()
	return s.store.Tx(ctx, func(tx *store.Tx) error {
		for _, g := range guesses {
			if err := tx.AddSuccess(ctx, g.tenant, g.pair, now, now.Add(s.cfg.KnownFor)); err != nil {
				return err
			}
		}
		return nil
	})
}

// newLogins makes the counter of logins.
func newLogins() metric.Int64Counter {
	counter, err := otel.Meter("application").Int64Counter("doorward_application_logins_total",
		metric.WithDescription("logins by password, by result: success, failure, rejected, or the limit that refused one: pair_limit, account_limit, address_limit"))
	if err != nil {
		otel.Handle(err)
	}
	return counter
}

func (s *Service) count(ctx context.Context, result string) {
	s.logins.Add(ctx, 1, metric.WithAttributes(attribute.String("result", result)))
}

package mfatest

import (
	"cmp"
	"context"
	"encoding/base32"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/fault"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/clocktest"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/mfa"
	"github.com/doorward/doorward/services/mfa/store"
)

// Config is the configuration of the service's database, for pgtest.OpenAll.
var Config = store.Config

// Service is the mfa service as its peers call it, through an Injector. Its other methods do what a user or
// an administrator does, and are not broken with the calls.
type Service struct {
	mfaapi.Contract
	fault.Injector

	Rules *mfa.Service // the service itself
	DB    *pg.DB

	t     testing.TB
	base  href.Base
	ring  *secure.Keyring
	clock *clocktest.Clock
	shown map[id.ID]string // the last code of an authenticator, by account
}

// New starts the service on a database, beside a directory service. Its limits of text messages are out of
// the way of the tests of other services.
func New(t testing.TB, db *pg.DB, directories directoryapi.API, base href.Base, clock *clocktest.Clock) *Service {
	t.Helper()
	s := &Service{DB: db, t: t, base: base, clock: clock, shown: map[id.ID]string{}}
	var err error
	if s.ring, err = secure.ParseKeyring(secure.NewMasterKey("k1")); err != nil {
		t.Fatal(err)
	}
	const many = 1000
	s.Rules = mfa.New(store.New(db, clock.Now), directories, s.ring, base, clock.Now, mfa.Config{
		AccountMessages: many, NumberMessages: many, CountryMessages: many, TenantMessages: many,
		EnrollTenantMessages: many, EnrollAddressMessages: many,
	})
	s.Contract = fault.Inject(&s.Injector, "mfa", mfaapi.Client, mfaapi.Serve, mfaapi.Contract(s.Rules))
	return s
}

// seed is the secret of the authenticators.
var seed = base32.StdEncoding.EncodeToString([]byte("the seed of all tests"[:20]))

// Enroll adds a verified factor to an account, whose hint is the end of a telephone number (by default
// xxx-xxx-0959), or the issuer of an authenticator, and returns its id.
func (s *Service) Enroll(account id.Ref, kind, hint string) id.ID {
	s.t.Helper()
	s.clock.Tick() // factors are listed in the order of their making
	hint = cmp.Or(hint, "xxx-xxx-0959")
	in := mfa.NewFactor{Type: field.Some(kind), WithChallenge: kind == mfaapi.SMS}
	if kind == mfaapi.SMS {
		in.Phone = field.Some(mfa.FactorPhone{PhoneBody: mfa.PhoneBody{Number: field.Some("+1888391" +
			hint[len(hint)-4:])}})
	} else {
		in.Issuer, in.Secret, in.Verified = field.Some(hint), field.Some(secure.Secret(seed)),
			field.Some(store.Verified)
	}
	f, err := s.Rules.CreateFactor(context.Background(), account, in)
	if err != nil {
		s.t.Fatal(err)
	}
	if kind == mfaapi.SMS {
		at := id.Ref{Tenant: account.Tenant, ID: f.ChallengeID}
		if _, err := s.Rules.AnswerChallenge(context.Background(), at,
			mfa.Answer{Code: field.Some(s.Sent(account))}); err != nil {
			s.t.Fatal(err)
		}
	}
	return f.ID
}

// Show returns a code that the authenticators show; the clock moves so that it is a new one.
func (s *Service) Show(account id.Ref) string {
	s.t.Helper()
	for {
		code, err := totp.GenerateCode(seed, s.clock.Now())
		if err != nil {
			s.t.Fatal(err)
		}
		if code != s.shown[account.ID] {
			s.shown[account.ID] = code
			return code
		}
		s.clock.Move(30 * time.Second)
	}
}

// HasAuthenticator reports whether an account has an authenticator.
func (s *Service) HasAuthenticator(account id.Ref) bool {
	s.t.Helper()
	for _, f := range s.factors(account) {
		if strings.ToLower(f.Type) == mfaapi.Authenticator {
			return true
		}
	}
	return false
}

// HasFactor reports whether an account has a factor.
func (s *Service) HasFactor(account id.Ref) bool { return len(s.factors(account)) > 0 }

func (s *Service) factors(account id.Ref) []store.Factor {
	s.t.Helper()
	page, err := s.Rules.AccountFactors(context.Background(), account, list.Query{Limit: list.MaxLimit})
	if err != nil {
		s.t.Fatal(err)
	}
	return page.Items
}

// Sent returns the code that was sent to an account last, or "".
func (s *Service) Sent(account id.Ref) (code string) {
	s.t.Helper()
	for _, event := range emitted[events.ChallengeCreated](s.t, s.DB, "ChallengeCreated") {
		if event.Account != account.ID {
			continue
		}
		opened, err := s.ring.Open(event.Code, events.CodePurpose(event.Challenge))
		if err != nil {
			s.t.Fatal(err)
		}
		code = opened.Reveal()
	}
	return code
}

// Challenge makes a challenge of the account's newest factor, outside of a login.
func (s *Service) Challenge(account id.Ref) href.Link {
	s.t.Helper()
	factors := s.factors(account)
	at := id.Ref{Tenant: account.Tenant, ID: factors[len(factors)-1].ID}
	c, err := s.Rules.CreateChallenge(context.Background(), at, mfa.NewChallenge{})
	if err != nil {
		s.t.Fatal(err)
	}
	return s.base.Link("challenges", c.ID)
}

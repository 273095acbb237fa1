// Package mfafake is the mfa service in memory, for the tests of the services that
// call it, with calls that a test can break (fault.Injector). It asks a directory
// service for accounts, and passes the contract's own suite.
package mfafake

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/fault"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

const (
	// maxFailures are the wrong codes that a challenge allows.
	maxFailures = 5
	// lifetime is how long a code is good.
	lifetime = 5 * time.Minute
)

// Service keeps factors and challenges in memory.
type Service struct {
	fault.Injector
	directories directoryapi.API
	base        href.Base
	now         func() time.Time

	mu         sync.Mutex
	factors    map[directoryapi.Ref][]*factor // by their accounts, the oldest first
	challenges []*challenge
	demands    []mfaapi.BeginSecondStep
	codes      int // that were made
}

type factor struct {
	mfaapi.Factor
	id   id.ID
	code string // the last that was sent or shown
	used string // the last that was accepted
	// unverified factors wait for the answer of their first challenge.
	unverified bool
}

// challenge is a second step, of a login where it has a state.
type challenge struct {
	mfaapi.BeginSecondStep
	id       id.ID
	factor   *factor // nil: the user is to enrol one
	state    secure.Secret
	isOpen   bool // a code can answer it
	madeAt   time.Time
	failures int
	refusal  error // nil: it has not ended

	loggedIn     bool // a user who is logged in adds a factor
	secondFactor bool // the user has passed another one
}

// stepsUp reports whether the challenge is of a factor that its login does not allow.
func (c *challenge) stepsUp() bool {
	return len(c.Types) > 0 && !slices.Contains(c.Types, c.factor.Type)
}

var _ mfaapi.Contract = (*Service)(nil)

// New makes an empty service beside a directory service. base is what the hrefs of
// challenges begin with.
func New(directories directoryapi.API, base href.Base, now func() time.Time) *Service {
	return &Service{directories: directories, base: base, now: now, factors: map[directoryapi.Ref][]*factor{}}
}

// BeginSecondStep begins a second step.
func (s *Service) BeginSecondStep(ctx context.Context, in mfaapi.BeginSecondStep) (mfaapi.SecondStep, error) {
	return fault.Call(&s.Injector, &s.mu, "BeginSecondStep", func() (mfaapi.SecondStep, error) {
		types := mfaapi.Types
		for _, kind := range in.Types {
			if !slices.Contains(types, kind) {
				return mfaapi.SecondStep{}, apierr.Invalid
			}
		}
		if len(in.Types) > 0 {
			types = in.Types
		}
		at := directoryapi.Ref{Tenant: in.Tenant, ID: in.Account}
		if _, err := s.directories.Account(ctx, at); err != nil {
			return mfaapi.SecondStep{}, err
		}
		s.demands = append(s.demands, in)
		in.Types = types
		var usable []*factor
		for _, f := range s.factors[at] {
			if !f.unverified {
				usable = append(usable, f)
			}
		}
		stepUp := usable // where the login allows none of them
		usable = slices.DeleteFunc(slices.Clone(usable), func(f *factor) bool { return !slices.Contains(types, f.Type) })
		if len(usable) == 0 {
			usable = stepUp
		}
		switch len(usable) {
		case 0:
			return s.demandEnrollment(in, false), nil
		case 1:
			c := s.begin(in, usable[0], true)
			return mfaapi.SecondStep{Action: mfaapi.Challenge, State: c.state, Factors: []mfaapi.Factor{usable[0].Factor}}, nil
		}
		out := mfaapi.SecondStep{Action: mfaapi.Select}
		for _, f := range usable {
			shown := f.Factor
			shown.State = s.begin(in, f, f.Type == mfaapi.Authenticator).state
			out.Factors = append(out.Factors, shown)
		}
		return out, nil
	})
}

// demandEnrollment demands a factor, after a step-up too.
func (s *Service) demandEnrollment(in mfaapi.BeginSecondStep, secondFactor bool) mfaapi.SecondStep {
	c := s.begin(in, nil, false)
	c.secondFactor = secondFactor
	return mfaapi.SecondStep{Action: mfaapi.Enroll, State: c.state, AllowedFactorTypes: in.Types}
}

// begin makes a challenge, and sends the code of one that is open.
func (s *Service) begin(in mfaapi.BeginSecondStep, f *factor, isOpen bool) *challenge {
	c := &challenge{
		BeginSecondStep: in, factor: f, isOpen: isOpen, madeAt: s.now(), id: id.New(s.now()),
		state: secure.Secret(rand.Text() + "." + rand.Text() + "." + rand.Text()),
	}
	if isOpen && f.Type == mfaapi.SMS {
		f.code = s.newCode()
	}
	s.challenges = append(s.challenges, c)
	return c
}

func (s *Service) newCode() string {
	s.codes++
	return fmt.Sprintf("%06d", 123456+s.codes)
}

// VerifySecondStep checks a code, once.
func (s *Service) VerifySecondStep(_ context.Context, in mfaapi.VerifySecondStep) (mfaapi.CompletedLogin, error) {
	return fault.Call(&s.Injector, &s.mu, "VerifySecondStep", func() (mfaapi.CompletedLogin, error) {
		c := s.asked(in)
		switch {
		case c == nil || !c.isOpen:
			return mfaapi.CompletedLogin{}, apierr.Reference
		case !s.mayPass(c, c.factor):
			return mfaapi.CompletedLogin{}, apierr.CodeExpired
		}
		if right, err := s.check(c, in.Code); err != nil || !right {
			return mfaapi.CompletedLogin{}, cmp.Or(err, error(apierr.CodeWrong))
		}
		c.factor.unverified = false
		if c.stepsUp() {
			next := s.demandEnrollment(c.BeginSecondStep, true)
			return mfaapi.CompletedLogin{Next: &next}, nil
		}
		return mfaapi.CompletedLogin{Account: c.Account, Organization: c.Organization}, nil
	})
}

// check compares a code with a challenge.
func (s *Service) check(c *challenge, code string) (right bool, err error) {
	switch {
	case c.refusal != nil:
		return false, c.refusal
	case s.now().Sub(c.madeAt) > lifetime:
		return false, apierr.CodeExpired
	case code != c.factor.code || code == c.factor.used:
		if c.failures++; c.failures == maxFailures {
			c.refusal = apierr.ChallengeFailures
		}
		return false, nil
	}
	c.refusal, c.factor.used = apierr.ChallengeFinished, code
	return true, nil
}

// asked returns the challenge of a state or an href, or nil.
func (s *Service) asked(in mfaapi.VerifySecondStep) *challenge {
	i := slices.IndexFunc(s.challenges, func(c *challenge) bool {
		if in.State != "" {
			return c.state == in.State && c.Tenant == in.Tenant && c.Application == in.Application
		}
		return in.Challenge.Href == s.base.To("challenges", c.id) && c.Tenant == in.Tenant
	})
	if i < 0 {
		return nil
	}
	return s.challenges[i]
}

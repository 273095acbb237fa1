package mfafake

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/fault"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
)

// FactorsOf returns the factors of an account.
func (s *Service) FactorsOf(_ context.Context, in id.Ref) (mfaapi.AccountFactors, error) {
	return fault.Call(&s.Injector, &s.mu, "FactorsOf", func() (out mfaapi.AccountFactors, err error) {
		for _, f := range s.factors[in] {
			out.Items = append(out.Items, f.shown())
		}
		return out, nil
	})
}

func (f *factor) shown() mfaapi.AccountFactor {
	out := mfaapi.AccountFactor{ID: f.id, Type: f.Type, Status: directoryapi.Enabled, VerificationStatus: directoryapi.Verified, Usable: true}
	if f.unverified {
		out.VerificationStatus, out.Usable = directoryapi.Unverified, false
	}
	return out
}

// EnrollFactor creates a factor that its first challenge verifies.
func (s *Service) EnrollFactor(_ context.Context, in mfaapi.EnrollFactor) (mfaapi.EnrolledFactor, error) {
	return fault.Call(&s.Injector, &s.mu, "EnrollFactor", func() (out mfaapi.EnrolledFactor, err error) {
		begun := direct(in.Tenant, in.Application, in.Account, in.Types, in.SecondFactor)
		if in.State != "" {
			if begun = s.asked(mfaapi.VerifySecondStep{Tenant: in.Tenant, Application: in.Application, State: in.State}); begun == nil {
				return out, apierr.Reference
			}
			if begun.factor != nil && !begun.secondFactor {
				return out, apierr.Forbidden
			}
		}
		if !s.mayPass(begun, nil) {
			return out, apierr.Forbidden
		}
		f := &factor{id: id.New(s.now()), Factor: mfaapi.Factor{Type: strings.ToLower(in.Type)}, unverified: true}
		switch {
		case f.Type == mfaapi.SMS && in.Number == "":
			return out, apierr.Required
		case !slices.Contains(begun.Types, f.Type):
			return out, apierr.Unsupported
		}
		at := directoryapi.Ref{Tenant: in.Tenant, ID: begun.Account}
		s.factors[at] = append(s.factors[at], f)
		out.Factor = f.shown()
		c := s.begin(begun.BeginSecondStep, f, in.Challenge)
		c.loggedIn, c.secondFactor = begun.loggedIn, begun.secondFactor
		if len(in.Types) == 0 {
			out.State = c.state
		}
		if in.Challenge {
			out.Challenge = c.id
		}
		return out, nil
	})
}

// ChallengeFactor creates a challenge of a factor, or answers that of a state.
func (s *Service) ChallengeFactor(_ context.Context, in mfaapi.ChallengeFactor) (mfaapi.Challenged, error) {
	return fault.Call(&s.Injector, &s.mu, "ChallengeFactor", func() (out mfaapi.Challenged, err error) {
		of, demand := (*factor)(nil), direct(in.Tenant, in.Application, in.Account, in.Types, in.SecondFactor)
		if in.State != "" {
			begun := s.asked(mfaapi.VerifySecondStep{Tenant: in.Tenant, Application: in.Application, State: in.State})
			switch {
			case begun == nil || begun.factor == nil:
				return out, apierr.Reference
			case !s.mayPass(begun, begun.factor):
				return out, apierr.CodeExpired
			case in.Code != "" && begun.isOpen:
				return s.answer(begun, in.Code)
			}
			of, demand = begun.factor, begun
		}
		for _, f := range s.factors[directoryapi.Ref{Tenant: in.Tenant, ID: in.Account}] {
			if f.id == in.Factor {
				of = cmp.Or(of, f)
			}
		}
		if of == nil {
			return out, apierr.NotFound
		}
		if !s.mayPass(demand, of) {
			return out, apierr.Forbidden
		}
		c := s.begin(demand.BeginSecondStep, of, true)
		c.loggedIn, c.secondFactor = demand.loggedIn, demand.secondFactor
		if in.Code != "" && of.Type == mfaapi.Authenticator {
			return s.answer(c, in.Code)
		}
		return c.shown("CREATED"), nil
	})
}

// AnswerFactor compares a code with a challenge of an account.
func (s *Service) AnswerFactor(_ context.Context, in mfaapi.AnswerFactor) (mfaapi.Challenged, error) {
	return fault.Call(&s.Injector, &s.mu, "AnswerFactor", func() (mfaapi.Challenged, error) {
		i := slices.IndexFunc(s.challenges, func(c *challenge) bool {
			return c.id == in.Challenge && c.Tenant == in.Tenant && c.Account == in.Account
		})
		if i < 0 {
			return mfaapi.Challenged{}, apierr.NotFound
		}
		c := s.challenges[i]
		if !s.mayPass(direct(in.Tenant, id.ID{}, in.Account, in.Types, in.SecondFactor), c.factor) {
			return mfaapi.Challenged{}, apierr.Forbidden
		}
		return s.answer(c, in.Code)
	})
}

// direct returns the login of a request without a state: without types of factor it is that of
// a user who is logged in.
func direct(tenant, application, account id.ID, types []string, secondFactor bool) *challenge {
	c := &challenge{BeginSecondStep: mfaapi.BeginSecondStep{Tenant: tenant, Application: application, Account: account, Types: types}}
	c.secondFactor = secondFactor
	if len(types) == 0 {
		c.Types, c.loggedIn = mfaapi.Types, true
	}
	return c
}

// mayPass reports whether a factor, or a new one (nil), can be used in a login: it is verified, or
// the account has no other that is, or the user has passed one. One that the login does not allow
// must be verified, and the only way.
func (s *Service) mayPass(in *challenge, of *factor) bool {
	isVerified := of != nil && !of.unverified
	isAllowed := of == nil || slices.Contains(in.Types, of.Type)
	switch {
	case !isVerified && !isAllowed:
		return false
	case isVerified && isAllowed, in.secondFactor:
		return true
	}
	return !slices.ContainsFunc(s.factors[directoryapi.Ref{Tenant: in.Tenant, ID: in.Account}], func(f *factor) bool {
		return !f.unverified && (isAllowed || slices.Contains(in.Types, f.Type))
	})
}

func (s *Service) answer(c *challenge, code string) (mfaapi.Challenged, error) {
	right, err := s.check(c, code)
	if !right || err != nil {
		return c.shown("FAILED"), err
	}
	c.factor.unverified = false
	shown := c.shown("SUCCESS")
	switch {
	case c.loggedIn:
		c.secondFactor = true
	case c.stepsUp():
		shown.State = s.demandEnrollment(c.BeginSecondStep, true).State
	}
	return shown, nil
}

func (c *challenge) shown(status string) mfaapi.Challenged {
	return mfaapi.Challenged{
		ID: c.id, Factor: c.factor.id, Status: status, State: c.state, Account: c.Account, Type: c.factor.Type, StepUp: c.stepsUp(),
	}
}

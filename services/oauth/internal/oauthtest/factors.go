package oauthtest

import (
	"context"

	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// Code is the code that every factor of the world shows.
const Code = "123456"

// maxTries are the wrong codes that a second step stands.
const maxTries = 5

// step is the second step of a login.
type step struct {
	mfaapi.Demand
	challenge string // its href; empty: none was sent
	failures  int
	refusal   error // nil: the step is open
}

// Enroll gives an account a factor.
func (w *World) Enroll(account id.ID, kind, hint string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.factors[account] = append(w.factors[account], mfaapi.Factor{Type: kind, Hint: hint})
}

// Demands gives the second steps that were begun.
func (w *World) Demands() []mfaapi.Demand {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.demands
}

// Challenge sends a code to an account, without a login, and gives its href.
func (w *World) Challenge(tenant, application, account id.ID) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	state := w.begin(mfaapi.Demand{Tenant: tenant, Application: application, Account: account})
	w.steps[state].challenge = w.base.To("challenges", id.New(w.now()))
	return w.steps[state].challenge
}

// FailMFA lets every question to the mfa service fail, until it is told nil.
func (w *World) FailMFA(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mfaFailure = err
}

// End lets the second steps that are open refuse their codes.
func (w *World) End(refusal error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.steps {
		s.refusal = refusal
	}
}

func (w *World) begin(in mfaapi.Demand) secure.Secret {
	state := secure.Token(20)
	w.steps[state] = &step{Demand: in}
	return state
}

// MFAAPI is the world as its mfa service.
func (w *World) MFAAPI() mfaapi.API { return factors{w} }

type factors struct{ *World }

// Demand begins a second step.
func (f factors) Demand(_ context.Context, in mfaapi.Demand) (mfaapi.Demanded, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mfaFailure != nil {
		return mfaapi.Demanded{}, f.mfaFailure
	}
	f.demands = append(f.demands, in)
	types := in.Types
	if len(types) == 0 {
		types = []string{mfaapi.SMS, mfaapi.Authenticator}
	}
	var usable []mfaapi.Factor
	for _, factor := range f.World.factors[in.Account] {
		for _, kind := range types {
			if factor.Type == kind {
				usable = append(usable, factor)
			}
		}
	}
	switch len(usable) {
	case 0:
		return mfaapi.Demanded{Action: mfaapi.Enroll, State: f.begin(in), AllowedFactorTypes: types}, nil
	case 1:
		return mfaapi.Demanded{Action: mfaapi.Challenge, State: f.begin(in), Factors: usable}, nil
	}
	for i := range usable {
		usable[i].State = f.begin(in)
	}
	return mfaapi.Demanded{Action: mfaapi.Select, Factors: usable}, nil
}

// Redeem checks the code of a second step, once.
func (f factors) Redeem(_ context.Context, in mfaapi.Redeem) (mfaapi.Redeemed, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.steps[in.State]
	for _, other := range f.steps {
		if in.Challenge.Href != "" && other.challenge == in.Challenge.Href {
			s = other
		}
	}
	switch {
	case f.mfaFailure != nil:
		return mfaapi.Redeemed{}, f.mfaFailure
	case s == nil || s.Tenant != in.Tenant || in.State != "" && s.Application != in.Application:
		return mfaapi.Redeemed{}, apierr.Reference
	case s.refusal != nil:
		return mfaapi.Redeemed{}, s.refusal
	case in.Code != Code:
		if s.failures++; s.failures == maxTries {
			s.refusal = apierr.ChallengeFailures
		}
		return mfaapi.Redeemed{}, apierr.CodeWrong
	}
	s.refusal = apierr.ChallengeFinished
	return mfaapi.Redeemed{Account: s.Account, Organization: s.Organization}, nil
}

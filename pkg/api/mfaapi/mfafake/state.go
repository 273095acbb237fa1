package mfafake

import (
	"slices"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
)

// What follows are the changes of state that the contract has no method for.

// Enroll adds a verified factor to an account, and returns its id.
func (s *Service) Enroll(account directoryapi.Ref, kind, hint string) id.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &factor{id: id.New(s.now()), Factor: mfaapi.Factor{Type: kind, Hint: hint}}
	s.factors[account] = append(s.factors[account], f)
	return f.id
}

// Show returns the next code of the account's newest authenticator.
func (s *Service) Show(account directoryapi.Ref) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range slices.Backward(s.factors[account]) {
		if f.Type == mfaapi.Authenticator {
			f.code = s.newCode()
			return f.code
		}
	}
	return ""
}

// Sent returns the code that was sent to the account's newest phone last, or "".
func (s *Service) Sent(account directoryapi.Ref) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range slices.Backward(s.factors[account]) {
		if f.Type == mfaapi.SMS {
			return f.code
		}
	}
	return ""
}

// Challenge makes a challenge of the account's newest factor, outside of a login.
func (s *Service) Challenge(account directoryapi.Ref) href.Link {
	s.mu.Lock()
	defer s.mu.Unlock()
	factors := s.factors[account]
	c := s.begin(mfaapi.BeginSecondStep{Tenant: account.Tenant, Account: account.ID}, factors[len(factors)-1], true)
	c.state = ""
	return s.base.Link("challenges", c.id)
}

// Demands returns the second steps that were begun.
func (s *Service) Demands() []mfaapi.BeginSecondStep {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.demands)
}

// End makes the challenges that are open refuse their codes.
func (s *Service) End(refusal error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.challenges {
		c.refusal = refusal
	}
}

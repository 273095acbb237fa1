// Package mfaapi is the contract of the mfa service: the second step of a login
// (docs/interface/oauth.md#second-factors).
package mfaapi

import (
	"context"

	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// API is the contract of the mfa service.
type API interface {
	// BeginSecondStep begins the second step of a login whose first one succeeded, and
	// returns what the user has to do. Where one factor is usable and it is a phone,
	// the code is sent at once. It returns apierr.NotFound for the account, Invalid
	// for an unknown type, and the errors of a new challenge: TooMany where the limit
	// of messages is reached, ChallengeFailures where every factor has used up its
	// attempts.
	BeginSecondStep(context.Context, BeginSecondStep) (SecondStep, error)

	// Redeem checks the code of a second step, once, and returns the account whose
	// login it completes. It returns apierr.CodeWrong, CodeExpired,
	// ChallengeFinished, ChallengeFailures, FactorDisabled, PhoneDisabled, and
	// Reference for a state that is not one of this application and its tenant or
	// that has no challenge yet, and for a challenge of another tenant. A caller that
	// redeems a challenge without a state must have checked the first step.
	Redeem(context.Context, Redeem) (Redeemed, error)
}

// The types of factor, as clients write them.
const (
	SMS           = "sms"
	Authenticator = "google-authenticator"
)

// The actions that a login can demand.
const (
	Challenge = "factor_challenge" // one factor is usable
	Select    = "factor_select"    // several are
	Enroll    = "factor_enroll"    // none is
)

// BeginSecondStep is the request for a second step.
type BeginSecondStep struct {
	Tenant      id.ID `json:"tenant"`
	Application id.ID `json:"application"`
	Account     id.ID `json:"account"`
	// Organization is the one that the login named, if any.
	Organization id.ID `json:"organization,omitzero"`
	// Types are the types of factor that are allowed; empty means all.
	Types []string `json:"types,omitempty"`
}

// SecondStep is what the user has to do. State is set unless there are several
// factors to select from, each of which has its own.
type SecondStep struct {
	Action             string        `json:"action"` // Challenge, Select or Enroll
	State              secure.Secret `json:"state,omitempty"`
	Factors            []Factor      `json:"factors,omitempty"` // one for Challenge, several for Select
	AllowedFactorTypes []string      `json:"allowedFactorTypes,omitempty"`
}

// Factor is a factor as it is shown after the first step of a login, before the second.
type Factor struct {
	Type  string        `json:"type"` // SMS or Authenticator
	Hint  string        `json:"hint"` // xxx-xxx-0959, or the issuer of an authenticator
	State secure.Secret `json:"state,omitempty"`
}

// Redeem is the request to check the code of a second step, which the state of a
// BeginSecondStep or a challenge names.
type Redeem struct {
	Tenant      id.ID         `json:"tenant"`
	Application id.ID         `json:"application"`
	State       secure.Secret `json:"state,omitempty"`
	Challenge   href.Link     `json:"challenge,omitzero"`
	Code        string        `json:"code"`
}

// Redeemed is a completed login.
type Redeemed struct {
	Account      id.ID `json:"account"`
	Organization id.ID `json:"organization,omitzero"`
}

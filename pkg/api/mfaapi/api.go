// Package mfaapi is the contract of the mfa service (multi-factor authentication, MFA): the second
// step of a login (docs/interface/oauth.md#second-factors), and in hosted.go the enrollment of
// factors by users.
package mfaapi

import (
	"context"

	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

//go:generate go run ../internal/generate mfa Contract

// Contract has all methods of the mfa service that other services call.
type Contract interface {
	API
	Hosted
}

// API is the contract of the mfa service.
type API interface {
	// BeginSecondStep begins the second step of a login whose first step has succeeded, and
	// returns what the user has to do. Where the only usable factor is a phone, the code is
	// sent at once. An account whose usable factors are of other types than the login allows is
	// challenged for these, as a step-up. It returns apierr.NotFound for the account, Invalid for an unknown type
	// of factor, and the errors of a new challenge: TooMany where the limit of text messages
	// is reached, ChallengeFailures where every factor has used up its attempts.
	BeginSecondStep(context.Context, BeginSecondStep) (SecondStep, error)

	// VerifySecondStep verifies the code of a second step and returns the account whose login it
	// completes. The code of a step-up completes none: the answer is Next alone, the demand to
	// enroll a factor. A state is accepted once. It returns apierr.CodeWrong, CodeExpired,
	// ChallengeFinished, ChallengeFailures, FactorDisabled and PhoneDisabled, and
	// Reference for a state of another application or tenant, for a state that has no
	// challenge yet, and for a challenge of another tenant. A caller that names a
	// challenge in place of a state must have checked the first step itself.
	VerifySecondStep(context.Context, VerifySecondStep) (CompletedLogin, error)
}

// The types of factor, as clients write them.
const (
	SMS           = "sms"
	Authenticator = "google-authenticator"
)

// Types are all types of factor, in the order in which they are offered.
var Types = []string{SMS, Authenticator}

// The actions that a login can demand of its user.
const (
	Challenge = "factor_challenge" // answer the challenge of the only usable factor
	Select    = "factor_select"    // select one of several usable factors
	Enroll    = "factor_enroll"    // enroll a factor, because none is usable
)

// BeginSecondStep is the request for a second step.
type BeginSecondStep struct {
	Tenant      id.ID `json:"tenant"`
	Application id.ID `json:"application"`
	Account     id.ID `json:"account"`
	// Organization is the organization that the login named, if any.
	Organization id.ID `json:"organization,omitzero"`
	// Types are the types of factor that are allowed; empty means all.
	Types []string `json:"types,omitempty"`
}

// SecondStep is what the user has to do. With Select each factor has a State of its own;
// otherwise State is set.
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

// VerifySecondStep is the request to verify the code of a second step. State or Challenge says
// which challenge the code answers.
type VerifySecondStep struct {
	Tenant      id.ID         `json:"tenant"`
	Application id.ID         `json:"application"`
	State       secure.Secret `json:"state,omitempty"`
	Challenge   href.Link     `json:"challenge,omitzero"`
	Code        string        `json:"code"`
}

// CompletedLogin has the account of a login whose second step has succeeded, or Next alone where
// the login goes on.
type CompletedLogin struct {
	Account      id.ID       `json:"account,omitzero"`
	Organization id.ID       `json:"organization,omitzero"`
	Next         *SecondStep `json:"next,omitempty"` // the user has passed a step-up, and has to enroll a factor
}

// Package mfaapi is the contract of the mfa service: the second step of a login
// (resolutions, section 8.6).
package mfaapi

import (
	"context"

	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// API is what peers ask of the mfa service.
type API interface {
	// Demand begins the second step of a login whose first one succeeded, and
	// says what the user is to do. Where one factor is usable and it is a phone,
	// the code is sent at once. It returns apierr.NotFound for the account,
	// Invalid for a type that is not one, and the errors of a new challenge:
	// TooMany where enough messages were sent, ChallengeFailures where every
	// factor is out of tries.
	Demand(context.Context, Demand) (Demanded, error)

	// Redeem checks the code of a second step, once, and tells whose login it
	// completes. It returns apierr.CodeWrong, CodeExpired, ChallengeFinished,
	// ChallengeFailures, FactorDisabled, PhoneDisabled, and Reference for a state
	// that is not one of this application and its tenant or that no code can
	// answer yet, and for a challenge that is not one of the tenant and of an SMS
	// factor. Who redeems a challenge alone answers for the first step.
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

// Demand asks for a second step.
type Demand struct {
	Tenant      id.ID `json:"tenant"`
	Application id.ID `json:"application"`
	Account     id.ID `json:"account"`
	// Organization is the one that the login named, if any.
	Organization id.ID `json:"organization,omitzero"`
	// Types are the types of factor that are allowed; empty means all.
	Types []string `json:"types,omitempty"`
}

// Demanded is what the user is to do. State is there unless several factors are
// to be selected from, each of which has its own.
type Demanded struct {
	Action             string        `json:"action"` // Challenge, Select or Enroll
	State              secure.Secret `json:"state,omitempty"`
	Factors            []Factor      `json:"factors,omitempty"` // one for Challenge, several for Select
	AllowedFactorTypes []string      `json:"allowedFactorTypes,omitempty"`
}

// Factor is a factor as it is shown to who has passed the first step alone.
type Factor struct {
	Type  string        `json:"type"` // SMS or Authenticator
	Hint  string        `json:"hint"` // xxx-xxx-0959, or the issuer of an authenticator
	State secure.Secret `json:"state,omitempty"`
}

// Redeem shows the code of a second step, by the state of a Demand or by the
// challenge of an SMS factor.
type Redeem struct {
	Tenant      id.ID         `json:"tenant"`
	Application id.ID         `json:"application"`
	State       secure.Secret `json:"state,omitempty"`
	Challenge   href.Link     `json:"challenge,omitzero"`
	Code        string        `json:"code"`
}

// Redeemed is a login that is complete.
type Redeemed struct {
	Account      id.ID `json:"account"`
	Organization id.ID `json:"organization,omitzero"`
}

package mfaapi

import (
	"context"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// Hosted is what the hosted login and the Client API ask of the mfa service for
// a user that has passed the first step, or is logged in. A login in progress is
// named by a State of BeginSecondStep, a logged-in user by Account.
type Hosted interface {
	// FactorsOf returns the factors of an account, at most 100. Nothing of an
	// authenticator that would pass its challenge is in them.
	FactorsOf(context.Context, id.Ref) (AccountFactors, error)

	// EnrollFactor creates a factor, and a challenge of it where it is asked for.
	// A State must be one that allows enrolment, and the account must not have too many
	// factors: apierr.Forbidden otherwise. It
	// returns apierr.CodeExpired for a State that is too old, Reference for one
	// that is foreign, and the errors of a new factor.
	EnrollFactor(context.Context, EnrollFactor) (EnrolledFactor, error)

	// ChallengeFactor creates a challenge of a factor, or with a code answers it
	// at once. A State names the factor. It returns the errors of a new challenge,
	// and of State as EnrollFactor does. In the second step of a login, a factor that was
	// never verified is apierr.Forbidden, with a State CodeExpired, where the account has
	// another that can be used: whoever knew the password earlier may have enrolled it.
	ChallengeFactor(context.Context, ChallengeFactor) (Challenged, error)

	// AnswerFactor compares a code with a challenge of the account. A wrong
	// code is Challenged.Status FAILED and no error. It returns apierr.NotFound
	// for a challenge that is not the account's, CodeExpired, ChallengeFinished,
	// ChallengeFailures, FactorDisabled and PhoneDisabled, and Forbidden as
	// ChallengeFactor does.
	AnswerFactor(context.Context, AnswerFactor) (Challenged, error)
}

// AccountFactor is a factor as its owner sees it after the first step.
type AccountFactor struct {
	ID                 id.ID   `json:"id"`
	Type               string  `json:"type"` // SMS or Authenticator
	Status             string  `json:"status"`
	VerificationStatus string  `json:"verificationStatus"`
	PhoneID            id.ID   `json:"phoneId,omitzero"` // of SMS
	Number             string  `json:"number,omitempty"` // of SMS, E.164
	AccountName        *string `json:"accountName,omitempty"`
	Issuer             *string `json:"issuer,omitempty"`
	Usable             bool    `json:"usable"` // enabled and verified, and so is its phone
}

// AccountFactors are the factors of an account.
type AccountFactors struct {
	Items []AccountFactor `json:"items"`
}

// EnrollFactor asks for a factor.
type EnrollFactor struct {
	Tenant      id.ID         `json:"tenant"`
	Application id.ID         `json:"application,omitzero"` // that State was made for
	State       secure.Secret `json:"state,omitempty"`
	Account     id.ID         `json:"account,omitzero"` // where State is empty
	Type        string        `json:"type"`             // in any letter case
	Number      string        `json:"number,omitempty"` // of SMS
	AccountName *string       `json:"accountName,omitempty"`
	Issuer      *string       `json:"issuer,omitempty"`
	Challenge   bool          `json:"challenge,omitempty"` // send a code, or open a challenge
}

// EnrolledFactor is a new factor. Secret, KeyURI and QRImage (Base64 of a PNG)
// are those of an authenticator, shown this once.
type EnrolledFactor struct {
	Factor    AccountFactor `json:"factor"`
	State     secure.Secret `json:"state,omitempty"`    // leads to the challenge, where there is one
	Challenge id.ID         `json:"challenge,omitzero"` // zero: none was asked for
	Secret    secure.Secret `json:"secret,omitempty"`
	KeyURI    secure.Secret `json:"keyUri,omitempty"`
	QRImage   secure.Secret `json:"qrImage,omitempty"`
}

// ChallengeFactor asks for a challenge.
type ChallengeFactor struct {
	Tenant      id.ID         `json:"tenant"`
	Application id.ID         `json:"application,omitzero"`
	State       secure.Secret `json:"state,omitempty"`
	Account     id.ID         `json:"account,omitzero"` // where State is empty
	Factor      id.ID         `json:"factor,omitzero"`  // where State is empty
	Code        string        `json:"code,omitempty"`   // with a State that has a challenge: answers that
	Types       []string      `json:"types,omitempty"`  // of factors that the login allows; empty without one, or with a State
}

// AnswerFactor answers a challenge.
type AnswerFactor struct {
	Tenant    id.ID    `json:"tenant"`
	Account   id.ID    `json:"account"`
	Challenge id.ID    `json:"challenge"`
	Code      string   `json:"code"`
	Types     []string `json:"types,omitempty"` // as in ChallengeFactor
}

// Challenged is a challenge after a call.
type Challenged struct {
	ID     id.ID         `json:"id"`
	Factor id.ID         `json:"factor"`
	Status string        `json:"status"`          // CREATED, SUCCESS, FAILED, …
	State  secure.Secret `json:"state,omitempty"` // leads to it, where the call had a State
	// Account is whose challenge it is.
	Account id.ID `json:"account"`
}

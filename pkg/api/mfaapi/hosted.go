package mfaapi

import (
	"context"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// Hosted is the part of the contract by which users enroll factors and answer challenges: the
// idsite service calls it for hosted logins and the Client API. State, of BeginSecondStep, names a
// login that has passed its first step; Account names a user who is logged in, or with Types the
// user of a hosted login. SecondFactor says that the user has passed a factor of the account: in
// the login of the access token, or as a step-up in this hosted login.
type Hosted interface {
	// FactorsOf returns the factors of an account, at most 100, without their secrets.
	FactorsOf(context.Context, id.Ref) (AccountFactors, error)

	// EnrollFactor creates a factor, and a challenge of that factor if Challenge is true. It
	// returns apierr.Forbidden for an account that has a usable factor, of whatever type, unless the
	// user has passed one: with SecondFactor, with the State of a step-up that succeeded, or with
	// that of a successful challenge of a user who is logged in. It returns apierr.Unsupported for a
	// type that the login does not allow. It returns apierr.Forbidden for an account with too many factors too,
	// CodeExpired for a State that has expired, Reference for a State of another application or tenant, and the
	// errors of a new factor.
	EnrollFactor(context.Context, EnrollFactor) (EnrolledFactor, error)

	// ChallengeFactor creates a challenge of a factor, or with a code answers a challenge. A
	// State names the factor. It returns the errors of a new challenge, and those of a State as
	// EnrollFactor does. It refuses a factor that was never verified, if the account has another
	// one that is usable, of whatever type, unless the user has passed one: apierr.Forbidden, or
	// CodeExpired with a State. Somebody who knew only the password may have enrolled that factor.
	// A verified factor of a type that the login does not allow is a step-up (Challenged.StepUp).
	ChallengeFactor(context.Context, ChallengeFactor) (Challenged, error)

	// AnswerFactor verifies the code of a challenge of the account. A wrong code is no error:
	// Challenged.Status is FAILED. It returns apierr.NotFound for a challenge of another
	// account, CodeExpired, ChallengeFinished, ChallengeFailures, FactorDisabled and
	// PhoneDisabled, and Forbidden as ChallengeFactor does.
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

// EnrollFactor is the request to create a factor.
type EnrollFactor struct {
	Tenant      id.ID         `json:"tenant"`
	Application id.ID         `json:"application,omitzero"` // of State
	State       secure.Secret `json:"state,omitempty"`
	Account     id.ID         `json:"account,omitzero"` // where State is empty
	Type        string        `json:"type"`             // in any letter case
	Number      string        `json:"number,omitempty"` // of SMS
	AccountName *string       `json:"accountName,omitempty"`
	Issuer      *string       `json:"issuer,omitempty"`
	Challenge   bool          `json:"challenge,omitempty"` // also create a challenge, which for SMS sends a code
	// of factor that a hosted login allows; empty: the user is logged in
	Types []string `json:"types,omitempty"`

	SecondFactor bool `json:"secondFactor,omitempty"` // the user has passed a factor already
}

// EnrolledFactor is a new factor. Secret, KeyURI and QRImage (Base64 of a PNG)
// are those of an authenticator, shown this once.
type EnrolledFactor struct {
	Factor    AccountFactor `json:"factor"`
	State     secure.Secret `json:"state,omitempty"`    // leads to the challenge, if there is one
	Challenge id.ID         `json:"challenge,omitzero"` // zero: no challenge was requested
	Secret    secure.Secret `json:"secret,omitempty"`
	KeyURI    secure.Secret `json:"keyUri,omitempty"`
	QRImage   secure.Secret `json:"qrImage,omitempty"`
}

// ChallengeFactor is the request to create or answer a challenge.
type ChallengeFactor struct {
	Tenant      id.ID         `json:"tenant"`
	Application id.ID         `json:"application,omitzero"`
	State       secure.Secret `json:"state,omitempty"`
	Account     id.ID         `json:"account,omitzero"` // where State is empty
	Factor      id.ID         `json:"factor,omitzero"`  // where State is empty
	Code        string        `json:"code,omitempty"`   // answers the challenge of State, if that has one
	// of factor that a hosted login allows; empty: the user is logged in
	Types []string `json:"types,omitempty"`

	SecondFactor bool `json:"secondFactor,omitempty"` // as in EnrollFactor
}

// AnswerFactor is the request to answer a challenge.
type AnswerFactor struct {
	Tenant    id.ID    `json:"tenant"`
	Account   id.ID    `json:"account"`
	Challenge id.ID    `json:"challenge"`
	Code      string   `json:"code"`
	Types     []string `json:"types,omitempty"` // as in ChallengeFactor

	SecondFactor bool `json:"secondFactor,omitempty"` // as in EnrollFactor
}

// Challenged is a challenge after a call.
type Challenged struct {
	ID     id.ID         `json:"id"`
	Factor id.ID         `json:"factor"`
	Status string        `json:"status"`          // CREATED, SUCCESS, FAILED, …
	State  secure.Secret `json:"state,omitempty"` // leads to the challenge; empty in a hosted login
	// Account is the account of the challenge.
	Account id.ID  `json:"account"`
	Type    string `json:"type"` // of the factor: SMS or Authenticator
	// StepUp says that the login does not allow the type: SUCCESS does not complete the login, but
	// lets its user enroll a factor of a type that it allows, by State or with SecondFactor.
	StepUp bool `json:"stepUp,omitempty"`
}

package directoryapi

import (
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// Authenticate is a login with a password.
type Authenticate struct {
	Tenant   id.ID         `json:"tenant"`
	Stores   []Store       `json:"stores"` // in the order of login
	Login    string        `json:"login"`  // user name or email
	Password secure.Secret `json:"password"`
	// Anonymous says that the login does not come from a client with an API key. While the agent of a
	// store does not answer, such a client gets the same answer for every login that no store before
	// settles, which is apierr.Unavailable.
	Anonymous bool `json:"anonymous,omitempty"`
}

// Authenticated is the account of a login, and the account store in which the account was found.
type Authenticated struct {
	Account Account `json:"account"`
	Store   Store   `json:"store"`
}

// LinkedAccountRequest is the request of API.LinkedAccount.
type LinkedAccountRequest struct {
	Tenant  id.ID `json:"tenant"`
	Account id.ID `json:"account"` // that has authenticated
	Store   Store `json:"store"`   // default account store of the application of the login
	// ByEmail links the account to the account of the store with the same email, where both have
	// verified that email.
	ByEmail bool `json:"byEmail,omitempty"`
	// Provision creates a copy of the account in the store, and links it.
	Provision bool `json:"provision,omitempty"`
	// DryRun reports the outcome and creates nothing.
	DryRun bool `json:"dryRun,omitempty"`
}

// LinkOutcome is the outcome of account linking at a login.
type LinkOutcome string

// The outcomes.
const (
	Unchanged   LinkOutcome = "UNCHANGED"   // the account itself logs in
	Followed    LinkOutcome = "FOLLOWED"    // the linked account logs in
	Linked      LinkOutcome = "LINKED"      // a link to the account of the same email was created
	Provisioned LinkOutcome = "PROVISIONED" // a copy and a link to the copy were created
)

// LinkedAccount is the account that logs in.
type LinkedAccount struct {
	Account Account     `json:"account"` // in a dry run, a copy has no id
	Outcome LinkOutcome `json:"outcome"`
	Reason  string      `json:"reason"` // for the developer
}

// ExplainLogin is the request of API.ExplainLogin.
type ExplainLogin struct {
	Tenant id.ID   `json:"tenant"`
	Stores []Store `json:"stores"` // in the order of login
	Login  string  `json:"login"`  // user name or email
}

// ExplainedLogin is what Authenticate would do with a login.
type ExplainedLogin struct {
	Stores []NamedStore `json:"stores"` // those of the request that exist, in no order
	// Found is the account whose password would be checked, and the account store in which it was
	// found; nil where no store has the login.
	Found *Authenticated `json:"found,omitempty"`
	// Refusal is an error of Authenticate: NoSuchAccount where Found is nil, otherwise the error of
	// the login with the right password, which is WrongPassword for an account without a password.
	// It is nil where the login succeeds.
	Refusal *apierr.Error `json:"refusal,omitempty"`
}

// Package journey has the way of a user into an application, once for all doors: registration, login by
// password, at a provider or by the session of single sign-on, second factors, password resets, and the
// verification of email addresses.
//
// A door is where such a way begins: the pages of a hosted login (pageapi.go, sso.go and saml.go of the package
// idsite), the Client API (clientapi.go), the mailed links (link.go). A door proves who calls, asks the journey,
// and shapes the answer. It calls no other service for what is done here, which a test of the package idsite
// holds, and repeats none of the rules.
//
// What a door must prove:
//
//   - the tenant and the application: by a signed request, by the DNS label of a Client API, by a mailed token
//   - the organization or the account store, where the door has proved one (store.Flow, LoginTarget); what the
//     browser names besides, the journey judges (Target)
//   - the browser that has begun the login: its cookies (BrowserTokens), or the token of a page
//   - the client address: caller.Caller of the context, for the limit of logins that begin without a key
//
// A login in progress is a row, store.Flow. A door begins it with Begin or BeginAnonymous, and each step changes
// it and returns a Result: what the login still wants, or that it has ended. From then on the flow says who has
// logged in: AccountID, OrganizationID, Methods, ProvedAt, and AssertionID, which CreateSession takes for the
// session of the browser. The account of the Result has the directory, and IsNew says whether it has registered.
// A client with pages of its own gets tokens in place of a flow (Client). Any other outcome is an error of the
// catalogue (pkg/apierr).
//
// Its files:
//
//   - login.go: the login in progress, the limit of those that begin without a key, the password; factor.go: the
//     second step; session.go: single sign-on
//   - registration.go: registration; mail.go: password resets, verification of email addresses, mailed links;
//     enumeration.go: protection against user enumeration
//   - target.go: which account store, and what a form shows of it
//   - provider.go: social login; saml.go, relaystate.go: login at a SAML identity provider
//   - client.go: clients with pages of their own, which get tokens
package journey

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/store"
)

// Peers are the services that the idsite service calls, each by its whole contract: the interfaces API and
// Hosted.
type Peers struct {
	Directory   directoryapi.Contract
	Application applicationapi.Contract
	OAuth       oauthapi.Contract
	MFA         mfaapi.Contract
}

// Journey is the way of users into applications.
type Journey struct {
	store *store.Store
	peers Peers
	ring  *secure.Keyring
	now   func() time.Time
	base  href.Base

	tenants *directoryapi.TenantGate
}

// New makes a journey. base is the address of the management API.
func New(s *store.Store, peers Peers, ring *secure.Keyring, now func() time.Time, base href.Base) *Journey {
	return &Journey{s, peers, ring, now, base, directoryapi.NewTenantGate("idsite.tenants", peers.Directory, now)}
}

// CheckTenant returns apierr.TenantSuspended for a suspended tenant. Each door asks as soon as it has proved its tenant.
func (j *Journey) CheckTenant(ctx context.Context, tenant id.ID) error {
	return j.tenants.Check(ctx, tenant)
}

var (
	// ErrEnded is the error for a hosted login that has ended or timed out.
	ErrEnded = apierr.SessionTimedOut.Because("the hosted login of the Bearer token has ended or has timed out")
	// ErrNotAllowed is the error for what a hosted login may not do.
	ErrNotAllowed = apierr.Forbidden.Because(
		"a hosted login may call nothing but its own application and, after the password, its own account")
)

// change writes to the row of a login in progress. It returns ErrEnded where the write finds none: the login has
// ended, or has gone on with another account.
func (j *Journey) change(ctx context.Context, write func(*store.Tx) error) error {
	err := j.store.Tx(ctx, write)
	if errors.Is(err, apierr.NotFound) {
		return ErrEnded
	}
	return err
}

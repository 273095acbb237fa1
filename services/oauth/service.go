// Package oauth is the OAuth service. It stores API keys, issues, validates and
// revokes access and refresh tokens, and stores their lifetimes. Its rules are
// methods of Service: one file per noun (apikey.go, token.go, revocation.go,
// assertion.go, policy.go, webconfig.go) and one per grant type (grant_*.go), with
// what the grants have in common in grant.go and secondstep.go. Its SQL is under
// store, its HTTP under rest, and its wiring under app.
package oauth

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/doorward/doorward/pkg/alias"
	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/outbound"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/openid"
	"github.com/doorward/doorward/services/oauth/store"
)

// Service is the OAuth service.
type Service struct {
	*OpenID

	store *store.Store
	peers Peers
	ring  *secure.Keyring
	now   func() time.Time
	cfg   Config
	dummy store.APIKey // in place of a key that does not exist, so that its check takes the same time

	keyDerivations keyDerivations
	accesses       *accesses
	tokens         metric.Int64Counter

	nonceInserts          groupCommit[store.Nonce]
	accessTokenInserts    groupCommit[store.Token] // of the client credentials grant
	refreshedTokenInserts groupCommit[store.Token]
}

// OpenID are the rules of the OpenID providers.
type OpenID = openid.Service

// Peers are the services that the OAuth service calls.
type Peers struct {
	Directory   directoryapi.API
	Application applicationapi.API
	MFA         mfaapi.Contract
}

// Config has the addresses and the alias of the deployment, as clients know them.
type Config struct {
	Base   href.Base // in the claims of tokens
	Alias  alias.Alias
	Suffix string // domain of the applications' Client APIs
	// Outbound is the guard of connections to addresses that clients have named.
	Outbound outbound.Guard
}

// New returns the service.
func New(s *store.Store, peers Peers, ring *secure.Keyring, now func() time.Time, cfg Config) *Service {
	svc := &Service{store: s, peers: peers, ring: ring, now: now, cfg: cfg,
		accesses: newAccesses(peers, now), keyDerivations: newKeyDerivations(), tokens: newTokenCounter()}
	svc.OpenID = openid.New(openid.Config{Store: s, Directory: peers.Directory, Application: peers.Application,
		Factors: peers.MFA, Ring: ring, Now: now, Base: cfg.Base,
		Outbound: cfg.Outbound, Authenticate: svc.Authenticate, Count: svc.countGrant,
		CheckLogin: func(ctx context.Context, request applicationapi.CheckAccess, login time.Time) error {
			return svc.checkLogin(ctx, request, login, svc.checkAccess)
		}})
	svc.nonceInserts.write = svc.useNonces
	svc.accessTokenInserts.write = svc.insertAccessTokens
	svc.refreshedTokenInserts.write = svc.insertRefreshedTokens
	svc.dummy.SecretSealed = ring.Seal(secure.Token(secretLength), apiKeyPurpose(""))
	return svc
}

var _ oauthapi.Contract = (*Service)(nil)

// notFoundOr returns apierr.NotFound where the tenant has no such application, and err
// otherwise. It makes no call where err is nil or a failure of the server (5xx).
func (s *Service) notFoundOr(ctx context.Context, tenant, application id.ID, err error) error {
	if !apierr.IsRefusal(err) {
		return err
	}
	_, lookupErr := s.peers.Application.Application(ctx, directoryapi.Ref{Tenant: tenant, ID: application})
	if errors.Is(lookupErr, apierr.NotFound) {
		return apierr.NotFound
	}
	return err
}

// Package oauth keeps API keys, issues and checks tokens, and holds how long
// they live. Its rules are methods of Service: one file per noun (apikey.go,
// token.go, assertion.go, policy.go, webconfig.go) and per grant (grant_*.go),
// with what every grant shares in grant.go and secondstep.go. Its SQL is under
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
	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/store"
)

// Service is the OAuth service.
type Service struct {
	store *store.Store
	peers Peers
	ring  *secure.Keyring
	now   func() time.Time
	cfg   Config
	dummy store.Key // stands in for a key that does not exist, so that the work is the same

	derivations    derivations
	keys           *cache.Cache[keyName, store.Key] // that sign tokens
	signers        *cache.Cache[string, store.Key]  // that sign requests, by id; the dummy where there is none
	administrators *cache.Cache[string, struct{}]   // ids of keys whose account administers its tenant
	accesses       *accessView
	tokens         metric.Int64Counter

	nonces    groupCommit[store.Nonce]
	access    groupCommit[store.Token] // of client credentials
	refreshed groupCommit[store.Token]
}

// Peers are the services that this one calls.
type Peers struct {
	Directory   directoryapi.API
	Application applicationapi.API
	MFA         mfaapi.API

	Remote bool // they run in other processes, so that a call of them is expensive (access.go)
}

// Config is what clients see of the deployment.
type Config struct {
	Base   href.Base // in the claims of tokens
	Alias  alias.Alias
	Suffix string // domain of the applications' Client APIs
}

// New returns the service.
func New(s *store.Store, peers Peers, ring *secure.Keyring, now func() time.Time, cfg Config) *Service {
	svc := &Service{store: s, peers: peers, ring: ring, now: now, cfg: cfg,
		keys: newKeyCache[keyName, store.Key]("keys", now), signers: newKeyCache[string, store.Key]("signers", now),
		administrators: newKeyCache[string, struct{}]("administrators", now),
		accesses:       newAccessView(peers, now),
		derivations:    newDerivations(), tokens: newTokenCounter()}
	svc.nonces.write, svc.access.write, svc.refreshed.write = svc.useNonces, svc.insertAccess, svc.insertRefreshed
	svc.nonces.ungrouped, svc.access.ungrouped, svc.refreshed.ungrouped = s.IsSharded(), s.IsSharded(), s.IsSharded()
	svc.dummy.SecretSealed = ring.Seal(secure.Token(secretLength), keyPurpose(""))
	return svc
}

var _ oauthapi.Contract = (*Service)(nil)

// refusal returns the error of a request to an application: apierr.NotFound where the
// tenant has no such application, else err. A request that succeeded needs no check.
func (s *Service) refusal(ctx context.Context, tenant, application id.ID, err error) error {
	if err == nil || apierr.From(err).Status >= 500 {
		return err
	}
	if _, gone := s.peers.Application.Application(ctx, directoryapi.Ref{Tenant: tenant, ID: application}); errors.Is(gone, apierr.NotFound) {
		return apierr.NotFound
	}
	return err
}

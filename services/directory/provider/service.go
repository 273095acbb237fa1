// Package provider has the providers of mirror directories, beside LDAP: social login, OpenID Connect and
// SAML, the mapping of their claims, the accounts of their users, and account linking. What a directory and
// an account are is decided in services/directory, on which it builds.
package provider

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/outbound"
	"github.com/doorward/doorward/pkg/saml"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory"
	"github.com/doorward/doorward/services/directory/connect"
	"github.com/doorward/doorward/services/directory/store"
)

// Service has the rules of providers.
type Service struct {
	core     *directory.Service
	store    *store.Store
	ring     *secure.Keyring
	base     href.Base
	client   *connect.Client
	now      func() time.Time
	keyPairs *cache.Cache[id.ID, saml.KeyPair] // of SAML directories, by certificate id
}

// New makes the service. client fetches the users of logins from the providers; nil means one that calls
// the public addresses.
func New(core *directory.Service, s *store.Store, ring *secure.Keyring, base href.Base, client *connect.Client,
	now func() time.Time) *Service {
	if client == nil {
		client = connect.New(outbound.Guard{}, nil, now)
	}
	return &Service{
		core: core, store: s, ring: ring, base: base, client: client, now: now,
		keyPairs: cache.New(cache.Config[id.ID, saml.KeyPair]{
			Name: "directory.keyPairs", Size: maxKeyPairs, MaxAge: keyPairMaxAge, Now: now,
		}),
	}
}

// Sealed are the columns of providers whose values are sealed under the master key.
var Sealed = []secure.SealedColumn[id.ID]{
	{Table: "providers", Key: "directory_id", Column: "client_secret_sealed", Purpose: clientSecretPurpose},
	{Table: "saml_service_providers", Key: "id", Column: "private_key_sealed", Purpose: samlKeyPurpose},
	{Table: "provider_data", Key: "account_id", Column: "tokens_sealed", Purpose: providerTokensPurpose},
}

// Purge deletes SAML assertions that have expired.
func (s *Service) Purge(ctx context.Context) error {
	return s.store.Purge(ctx, store.ExpiringSAMLAssertions, s.now())
}

package oauth

import (
	"context"
	"crypto/subtle"
	"errors"
	"slices"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/store"
)

// errBadAPIKey refuses an API key without telling which check has failed.
var errBadAPIKey = apierr.Unauthorized.Because("the API key is not accepted: its id or its secret, or the signature by it, is wrong, " +
	"it is disabled, or its account is no enabled administrator of the tenant")

// Authenticate verifies an API key and its secret as a management credential
// (docs/interface/authentication.md#what-a-key-may-do): the key must be enabled, and its
// account an administrator. An unknown id takes the same time as a wrong secret. The keys
// of LDAP agents are verified by the directory service. Signed requests (SAuthc1), which
// do not send the secret, are verified in signature.go.
func (s *Service) Authenticate(ctx context.Context, in oauthapi.Authenticate) (oauthapi.Key, error) {
	if directoryapi.IsAgentKey(in.ID) {
		k, err := s.peers.Directory.AuthenticateAgent(ctx, directoryapi.AuthenticateAgent{ID: in.ID, Secret: in.Secret})
		return oauthapi.Key{TenantID: k.TenantID, ID: k.ID, Status: directoryapi.Enabled, Name: k.Name, CreatedAt: k.CreatedAt,
			ModifiedAt: k.CreatedAt, DependsOn: []id.ID{k.AgentID}}, err
	}
	if !isAPIKeyID(in.ID) {
		in.ID = "" // the id of no key, for the same query
	}
	k, err := s.store.FindAPIKey(ctx, in.ID)
	if k, err = s.verifySecret(in.Secret, k, err); err != nil {
		return oauthapi.Key{}, err
	}
	return s.managementKey(ctx, k)
}

// managementKey returns an API key whose account is an administrator, with what that depends on, or
// errBadAPIKey.
func (s *Service) managementKey(ctx context.Context, k store.APIKey) (oauthapi.Key, error) {
	access, err := s.checkAdministrator(ctx, k)
	if err != nil {
		return oauthapi.Key{}, err
	}
	k.DependsOn = append(slices.Clone(access.DependsOn), store.APIKeyResource(k.ID))
	return k.Key, nil
}

// AccessChanges returns the API keys that have changed since a position, so that the gateways can
// invalidate the answers that they keep (cache.Answers).
func (s *Service) AccessChanges(_ context.Context, after cache.Position) (cache.Page, error) {
	return s.store.APIKeyChanges(after), nil
}

// FindKey returns an API key of any tenant by its id alone, whatever its status, or apierr.NotFound.
func (s *Service) FindKey(ctx context.Context, in oauthapi.ManagementKey) (oauthapi.Key, error) {
	k, err := s.store.FindAPIKey(ctx, in.ID)
	return k.Key, err
}

// verifySecret verifies the secret of an API key and that the key is enabled, and returns
// the key with its secret. k and err are the result of the look-up of the key: where err is
// apierr.NotFound, a dummy key is compared, so that the answer takes the same time.
func (s *Service) verifySecret(secret secure.Secret, k store.APIKey, err error) (store.APIKey, error) {
	notFound := errors.Is(err, apierr.NotFound)
	if notFound {
		k, err = s.dummy, nil
	}
	if err == nil && k.Secret == "" {
		k, err = s.unsealSecret(k, err)
	}
	if err != nil {
		return k, err
	}
	if !equalSecrets(k.Secret, secret) || notFound || k.Status != directoryapi.Enabled {
		return k, errBadAPIKey
	}
	return k, nil
}

// equalSecrets compares two secrets in constant time (no timing attack).
func equalSecrets(a, b secure.Secret) bool {
	return subtle.ConstantTimeCompare(secure.Digest(a), secure.Digest(b)) == 1
}

package oauth

import (
	"context"
	"crypto/subtle"
	"errors"
	"net/http"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/store"
)

// errBadKey refuses a management credential without telling what is wrong with it.
var errBadKey = apierr.Unauthorized.Because("the API key is not accepted: its id or its secret, or the signature by it, is wrong, " +
	"it is disabled, or its account is no enabled administrator of the tenant")

// Authenticate verifies an API key as a management credential
// (docs/interface/authentication.md#what-a-key-may-do): the key must be enabled,
// and its account an administrator. An unknown id costs the same work as a wrong
// secret. The directory service has the keys of agents.
func (s *Service) Authenticate(ctx context.Context, in oauthapi.Authenticate) (oauthapi.Key, error) {
	if directoryapi.IsAgentKey(in.ID) {
		k, err := s.peers.Directory.AuthenticateAgent(ctx, directoryapi.AuthenticateAgent{ID: in.ID, Secret: in.Secret})
		return oauthapi.Key{TenantID: k.TenantID, ID: k.ID, Status: directoryapi.Enabled, Name: k.Name, CreatedAt: k.CreatedAt,
			ModifiedAt: k.CreatedAt}, err
	}
	if !isKeyID(in.ID) {
		in.ID = "" // no key has it; the query costs the same
	}
	k, err := s.store.FindKey(ctx, in.ID)
	if k, err = s.proven(in.Secret, k, err); err != nil {
		return oauthapi.Key{}, err
	}
	administers, err := s.administers(ctx, k)
	if err != nil {
		return oauthapi.Key{}, err
	}
	if !administers {
		return oauthapi.Key{}, errBadKey
	}
	return k.Key, nil
}

// checkCaller refuses a request whose API key was disabled or deleted, as of at most keyMaxAge
// ago. The gateway has checked the key, but a gateway that missed the notification uses a
// cached answer for up to a second.
func (s *Service) checkCaller(ctx context.Context, tenant id.ID) error {
	key := caller.From(ctx).Key
	if key == "" {
		return nil
	}
	k, err := s.signingKey(ctx, tenant, key)
	if errors.Is(err, apierr.NotFound) || err == nil && k.Status != directoryapi.Enabled {
		return errBadKey
	}
	return err
}

// administers reports whether the account of a key is an administrator of its
// tenant. A peer that does not answer is an error, not a wrong key.
func (s *Service) administers(ctx context.Context, k store.Key) (bool, error) {
	_, err := s.peers.Application.Administrator(caller.WithTenant(ctx, k.TenantID), directoryapi.Ref{Tenant: k.TenantID, ID: k.AccountID})
	if err != nil && apierr.From(err).Status < http.StatusInternalServerError {
		return false, nil
	}
	return err == nil, err
}

// proven checks a secret against that of a key that was looked up, and that the
// key is enabled. It takes the same time where the key was not found.
func (s *Service) proven(secret secure.Secret, k store.Key, err error) (store.Key, error) {
	absent := errors.Is(err, apierr.NotFound)
	if absent {
		k, err = s.dummy, nil
	}
	if err == nil && k.Secret == "" {
		k, err = s.unsealed(k, err)
	}
	if err != nil {
		return k, err
	}
	if !equal(k.Secret, secret) || absent || k.Status != directoryapi.Enabled {
		return k, errBadKey
	}
	return k, nil
}

// equal compares secrets in constant time.
func equal(a, b secure.Secret) bool {
	return subtle.ConstantTimeCompare(secure.Digest(a), secure.Digest(b)) == 1
}

package oauth

import (
	"context"
	"crypto/subtle"
	"errors"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/store"
)

// errBadKey refuses a management credential. It does not say what is wrong with
// it.
var errBadKey = apierr.Unauthorized.Because("the API key is unknown, its secret is wrong, or it may not be used here")

// Authenticate checks an API key as a management credential (resolutions,
// section 11.1): the key, its account and the administrators directory that
// holds the account must be enabled. An unknown id costs the same work as a
// wrong secret; only who has the secret gets further than that.
func (s *Service) Authenticate(ctx context.Context, in oauthapi.Authenticate) (oauthapi.Key, error) {
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

// administers tells whether a key is that of an account which may act for its
// tenant. A directory that does not answer is an error, and no wrong key.
func (s *Service) administers(ctx context.Context, k store.Key) (bool, error) {
	account, err := s.peers.Directory.Account(ctx, directoryapi.Ref{Tenant: k.TenantID, ID: k.AccountID})
	var directory directoryapi.Directory
	if err == nil {
		directory, err = s.peers.Directory.Directory(ctx, directoryapi.Ref{Tenant: k.TenantID, ID: account.DirectoryID})
	}
	if errors.Is(err, apierr.NotFound) {
		return false, nil
	}
	return account.Status == directoryapi.Enabled && directory.Builtin && directory.Status == directoryapi.Enabled, err
}

// proven checks the secret that was sent against that of a key as it was looked
// up, and that the key is enabled. It works as long for one that was not found.
func (s *Service) proven(secret secure.Secret, k store.Key, err error) (store.Key, error) {
	absent := errors.Is(err, apierr.NotFound)
	if absent {
		k, err = s.dummy, nil
	}
	if k, err = s.unsealed(k, err); err != nil {
		return k, err
	}
	if !equal(k.Secret, secret) || absent || k.Status != directoryapi.Enabled {
		return k, errBadKey
	}
	return k, nil
}

// equal compares secrets in a time that depends on neither.
func equal(a, b secure.Secret) bool {
	return subtle.ConstantTimeCompare(secure.Digest(a), secure.Digest(b)) == 1
}

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
		in.ID = "" // no key has it, and finding none costs the same query
	}
	k, err := s.store.FindKey(ctx, in.ID)
	if k, err = s.proven(in.Secret, k, err); err != nil {
		return oauthapi.Key{}, err
	}
	if err := s.manages(ctx, k); err != nil {
		return oauthapi.Key{}, err
	}
	return k.Key, nil
}

// manages checks that the account of a key and the administrators directory
// that holds it are enabled.
func (s *Service) manages(ctx context.Context, k store.Key) error {
	account, err := s.peers.Directory.Account(ctx, directoryapi.Ref{Tenant: k.TenantID, ID: k.AccountID})
	if err != nil {
		return unlessNotFound(err)
	}
	directory, err := s.peers.Directory.Directory(ctx, directoryapi.Ref{Tenant: k.TenantID, ID: account.DirectoryID})
	if err != nil {
		return unlessNotFound(err)
	}
	if account.Status != directoryapi.Enabled || !directory.Builtin || directory.Status != directoryapi.Enabled {
		return errBadKey
	}
	return nil
}

// unlessNotFound turns the absence of what a key belongs to into the refusal of
// the key. Other errors stay: a directory that does not answer is no wrong key.
func unlessNotFound(err error) error {
	if errors.Is(err, apierr.NotFound) {
		return errBadKey
	}
	return err
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

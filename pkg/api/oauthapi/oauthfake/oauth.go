// Package oauthfake is the OAuth service's API keys in memory, for the tests of the
// services that call it, with calls that a test can break (fault.Injector). It asks
// an application service for the administrators of a tenant, and passes the contract's own
// suite.
package oauthfake

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/fault"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/api/oauthapi/apitest"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/secure"
)

// ahead and behind are how far the time of a signed request may be off, and
// nonceAge is how long its nonce is remembered.
const (
	ahead    = 15 * time.Minute
	behind   = 60 * time.Minute
	nonceAge = ahead + behind
)

// Service keeps API keys in memory.
type Service struct {
	fault.Injector
	applications applicationapi.API
	now          func() time.Time

	mu     sync.Mutex
	keys   map[string]key
	nonces map[[2]string]time.Time // when a nonce of a key was seen
	tokens map[secure.Secret]token // access tokens
}

type key struct {
	oauthapi.Key
	secret secure.Secret
}

var _ oauthapi.Contract = (*Service)(nil)

// New makes an empty service beside an application service.
func New(applications applicationapi.API, now func() time.Time) *Service {
	return &Service{
		applications: applications, now: now, keys: map[string]key{}, nonces: map[[2]string]time.Time{},
		tokens: map[secure.Secret]token{},
	}
}

// call runs a method under the lock, unless it is broken.
func call[T any](s *Service, method string, do func() (T, error)) (T, error) {
	return fault.Call(&s.Injector, &s.mu, method, do)
}

// Authenticate checks a key.
func (s *Service) Authenticate(ctx context.Context, in oauthapi.Authenticate) (oauthapi.Key, error) {
	return call(s, "Authenticate", func() (oauthapi.Key, error) {
		if k, ok := s.keys[in.ID]; !ok || k.secret != in.Secret {
			return oauthapi.Key{}, apierr.Unauthorized
		}
		return s.good(ctx, in.ID)
	})
}

// ManagementKey returns a key without a proof of its secret.
func (s *Service) ManagementKey(ctx context.Context, in oauthapi.ManagementKey) (oauthapi.Key, error) {
	return call(s, "ManagementKey", func() (oauthapi.Key, error) { return s.good(ctx, in.ID) })
}

// good returns an enabled key of an administrator.
func (s *Service) good(ctx context.Context, name string) (oauthapi.Key, error) {
	k, ok := s.keys[name]
	if !ok || k.Status != directoryapi.Enabled {
		return oauthapi.Key{}, apierr.Unauthorized
	}
	_, err := s.applications.Administrator(ctx, directoryapi.Ref{Tenant: k.TenantID, ID: k.AccountID})
	for _, refusal := range []error{apierr.TokenAccountDisabled, apierr.TokenStoreDisabled, apierr.TokenAccountUnreachable, apierr.NotFound} {
		if errors.Is(err, refusal) {
			return oauthapi.Key{}, apierr.Unauthorized
		}
	}
	if err != nil {
		return oauthapi.Key{}, err
	}
	return k.Key, nil
}

// VerifySignature checks a signed request.
func (s *Service) VerifySignature(ctx context.Context, in oauthapi.VerifySignature) (oauthapi.Key, error) {
	return call(s, "VerifySignature", func() (oauthapi.Key, error) {
		k, ok := s.keys[in.ID]
		at, err := time.Parse("20060102T150405Z", in.Timestamp)
		off := at.Sub(s.now().Truncate(time.Second))
		nonce := [2]string{in.ID, in.Nonce}
		seen, wasSeen := s.nonces[nonce]
		switch {
		case !ok, err != nil, off > ahead, off < -behind:
		case len(in.Timestamp) != len("20060102T150405Z"), len(in.Nonce) > 128, in.Nonce == "", strings.ContainsAny(in.Nonce, "/\x00"):
		case apitest.Sign(in, k.secret).Signature != in.Signature:
		case wasSeen && s.now().Sub(seen) <= nonceAge:
		default:
			good, err := s.good(ctx, in.ID)
			if err == nil {
				s.nonces[nonce] = s.now()
			}
			return good, err
		}
		return oauthapi.Key{}, apierr.Unauthorized
	})
}

// EnsureKey makes a key.
func (s *Service) EnsureKey(_ context.Context, in oauthapi.EnsureKey) (oauthapi.Key, error) {
	return call(s, "EnsureKey", func() (oauthapi.Key, error) {
		const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_"
		switch {
		case in.ID == "" || strings.Trim(in.ID, letters) != "":
			return oauthapi.Key{}, apierr.Format
		case in.Secret == "":
			return oauthapi.Key{}, apierr.Required
		}
		k, ok := s.keys[in.ID]
		if !ok {
			k = key{secret: in.Secret, Key: oauthapi.Key{
				TenantID: in.Tenant, ID: in.ID, AccountID: in.Account, Status: directoryapi.Enabled, CreatedAt: s.now(), ModifiedAt: s.now(),
			}}
			s.keys[in.ID] = k
		}
		if k.TenantID != in.Tenant || k.AccountID != in.Account || k.secret != in.Secret {
			return oauthapi.Key{}, apierr.Exists
		}
		return k.Key, nil
	})
}

// SetStatus sets the status of a key.
func (s *Service) SetStatus(name, status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.keys[name]
	k.Status, k.ModifiedAt = status, s.now()
	s.keys[name] = k
}

// Keys returns what was asked of EnsureKey, by the ids of the keys.
func (s *Service) Keys() map[string]oauthapi.EnsureKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := map[string]oauthapi.EnsureKey{}
	for name, k := range s.keys {
		keys[name] = oauthapi.EnsureKey{Tenant: k.TenantID, Account: k.AccountID, ID: name, Secret: k.secret}
	}
	return keys
}

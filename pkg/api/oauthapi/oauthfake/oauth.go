// Package oauthfake is a fake of the OAuth service in memory, for the tests of services that call
// it. A test can make its calls fail (fault.Injector). It calls an application service for the
// administrators of a tenant, and passes the part of the contract's suite for hosted logins.
package oauthfake

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/fault"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/secure"
)

// Service keeps API keys in memory.
type Service struct {
	fault.Injector
	oauthapi.API // nil: the fake has EnsureKey only; the gateway alone calls the other methods
	applications applicationapi.API
	now          func() time.Time

	mu     sync.Mutex
	keys   map[string]key
	tokens map[secure.Secret]token // access tokens
}

type key struct {
	oauthapi.Key
	secret secure.Secret
}

var _ oauthapi.Contract = (*Service)(nil)

// New returns a fake without API keys, which calls an application service.
func New(applications applicationapi.API, now func() time.Time) *Service {
	return &Service{applications: applications, now: now, keys: map[string]key{}, tokens: map[secure.Secret]token{}}
}

// call runs a method under the lock, unless a test makes it fail.
func call[T any](s *Service, method string, do func() (T, error)) (T, error) {
	return fault.Call(&s.Injector, &s.mu, method, do)
}

// checkAdministratorKey refuses an API key whose account is not an administrator.
func (s *Service) checkAdministratorKey(ctx context.Context, name string) error {
	k, ok := s.keys[name]
	if !ok {
		return apierr.Unauthorized
	}
	_, err := s.applications.Administrator(ctx, directoryapi.Ref{Tenant: k.TenantID, ID: k.AccountID})
	return err
}

// EnsureKey creates an API key.
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
		if !ok && in.MustExist {
			return oauthapi.Key{}, apierr.NotFound
		}
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

// DeleteKey deletes an API key.
func (s *Service) DeleteKey(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.keys, name)
}

// Keys returns the requests of EnsureKey that have created keys, by the ids of the keys.
func (s *Service) Keys() map[string]oauthapi.EnsureKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := map[string]oauthapi.EnsureKey{}
	for name, k := range s.keys {
		keys[name] = oauthapi.EnsureKey{Tenant: k.TenantID, Account: k.AccountID, ID: name, Secret: k.secret}
	}
	return keys
}

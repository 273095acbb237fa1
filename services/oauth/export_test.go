package oauth

import (
	"context"
	"crypto/aes"
	"time"

	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/store"
)

// AccountDeleted and the methods below handle an event as the consumer of events does.
func (s *Service) AccountDeleted(ctx context.Context, e events.Envelope, event events.AccountDeleted) error {
	return s.accountDeleted(ctx, e, event)
}

func (s *Service) AccountsDeleted(ctx context.Context, e events.Envelope, event events.AccountsDeleted) error {
	return s.accountsDeleted(ctx, e, event)
}

func (s *Service) PasswordChanged(ctx context.Context, e events.Envelope, event events.PasswordChanged) error {
	return s.passwordChanged(ctx, e, event)
}

func (s *Service) ApplicationDeleted(ctx context.Context, e events.Envelope, event events.ApplicationDeleted) error {
	return s.applicationDeleted(ctx, e, event)
}

// WebConfigOf returns what the grants see of an application's web config.
func (s *Service) WebConfigOf(ctx context.Context, tenant, application id.ID) (store.WebConfig, error) {
	return s.cachedWebConfig(ctx, tenant, application)
}

// DeriveKey returns a key that a client asked to derive.
func (s *Service) DeriveKey(ctx context.Context, password secure.Secret, e Encryption) ([]byte, error) {
	return s.keyDerivations.deriveKey(ctx, password, e)
}

// OccupyDerivations admits no derivation until release is called.
func (s *Service) OccupyDerivations(ctx context.Context) (release func()) {
	_ = s.keyDerivations.iterations.Acquire(ctx, maxConcurrentIterations)
	return func() { s.keyDerivations.iterations.Release(maxConcurrentIterations) }
}

// EncryptUnder encrypts a text under a key, with a given initialisation vector.
func EncryptUnder(key, iv []byte, plain secure.Secret) (secure.Secret, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return "", err
	}
	return encrypt(block, iv, plain), nil
}

// PurgerEvery returns the worker that purges at another interval.
func (s *Service) PurgerEvery(interval time.Duration) func(context.Context) error {
	return s.purger(interval)
}

// Grouped returns the function that adds rows to a group.
func Grouped(write func(context.Context, []string) []error) func(context.Context, string) error {
	return (&groupCommit[string]{write: write}).add
}

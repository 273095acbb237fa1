// Package mfa is multi-factor authentication (MFA, 2FA): the phones of accounts, the
// factors that are enrolled, and the challenges that ask for a code. Its rules are methods
// of Service, one file per noun (phone.go, factor.go, challenge.go). What differs between the two types of factor is in
// sms.go and totp.go, the second step of a login in secondstep.go and loginstate.go, and
// the limits of attempts and messages in limits.go. Its SQL is under store, its HTTP under
// rest, and its wiring under app.
package mfa

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/mfa/store"
)

// Service is the mfa service.
type Service struct {
	store     *store.Store
	directory directoryapi.API
	ring      *secure.Keyring
	base      href.Base
	now       func() time.Time
	cfg       Config
}

// New returns the service.
func New(s *store.Store, directory directoryapi.API, ring *secure.Keyring, base href.Base, now func() time.Time,
	cfg Config) *Service {
	return &Service{store: s, directory: directory, ring: ring, base: base, now: now, cfg: cfg}
}

// enrollTx runs fn in a transaction that adds a phone or a factor to an account. It adds
// the row of the account, where there is none yet, and locks that row.
func (s *Service) enrollTx(ctx context.Context, a directoryapi.Account, fn func(*store.Tx) error) error {
	return s.store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.EnsureAccount(ctx, a.TenantID, a.ID, a.DirectoryID); err != nil {
			return err
		}
		return fn(tx)
	})
}

// lockedTx runs fn in a transaction that has locked the row of the account, so that
// parallel changes of its phones, factors and challenges wait for each other. fn must read
// again what was read before the transaction. Without a row it returns apierr.NotFound.
func (s *Service) lockedTx(ctx context.Context, tenant, account id.ID, fn func(*store.Tx) error) error {
	return s.store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.LockAccount(ctx, tenant, account); err != nil {
			return err
		}
		return fn(tx)
	})
}

// refuseUnusedProperties returns apierr.UnusedProperty if a body gives a member that a
// factor of this type does not have. members tells which of them the body gives.
func refuseUnusedProperties(kind string, members map[string]bool) error {
	for name, given := range members {
		if given {
			return apierr.UnusedProperty.Because("%s is not a property of a factor of the type %s", name, kind)
		}
	}
	return nil
}

// checkOwner returns apierr.NotFound for what belongs to an account that was deleted: the event of its
// deletion deletes it here, too, but a moment later (docs/interface/conventions.md#cascades).
func (s *Service) checkOwner(ctx context.Context, tenant, account id.ID) error {
	_, err := s.directory.Account(ctx, id.Ref{Tenant: tenant, ID: account})
	if errors.Is(err, apierr.NotFound) {
		return apierr.NotFound
	}
	return err
}

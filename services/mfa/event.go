package mfa

import (
	"context"

	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/mfa/store"
)

// Sources are the services whose events this one acts on.
var Sources = []string{"directory"}

// Handlers act on what the directory service tells: phones, factors and
// challenges go with their account.
func (s *Service) Handlers() []events.Handler {
	return []events.Handler{events.On(s.accountDeleted), events.On(s.directoryDeleted)}
}

func (s *Service) accountDeleted(ctx context.Context, e events.Envelope, event events.AccountDeleted) error {
	return s.removeOf(ctx, e, event.Tenant, event.Account)
}

func (s *Service) directoryDeleted(ctx context.Context, e events.Envelope, event events.DirectoryDeleted) error {
	return s.removeOf(ctx, e, event.Tenant, event.Directory)
}

// removeOf removes what an account, or the accounts of a directory, have. A
// request that found the account there may be at work still, so that the purge
// does it again when no such request can be left.
func (s *Service) removeOf(ctx context.Context, e events.Envelope, tenant, owner id.ID) error {
	removal := store.Removal{TenantID: tenant, OwnerID: owner}
	if err := s.removeAccounts(ctx, removal); err != nil {
		return err
	}
	return s.store.Tx(ctx, func(tx *store.Tx) error {
		if seen, err := tx.Seen(ctx, e.Tenant, e.ID); err != nil || seen {
			return err
		}
		return tx.InsertRemoval(ctx, removal, s.now())
	})
}

func (s *Service) removeAccounts(ctx context.Context, r store.Removal) error {
	return s.drain(ctx, func(tx *store.Tx) (int64, error) { return tx.DeleteAccounts(ctx, r.TenantID, r.OwnerID, batch) })
}

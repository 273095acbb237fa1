package oauth

import (
	"context"

	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/purge"
	"github.com/doorward/doorward/services/oauth/store"
)

// batch bounds the rows that one transaction deletes where there may be
// millions.
const batch = 5000

// Handlers act on what other services tell: keys and tokens go with their
// account, tokens, policy and web config with their application. A token that is
// issued while that happens is refused by its standing, and purged when it
// expires.
func (s *Service) Handlers() []events.Handler {
	return []events.Handler{events.On(s.accountDeleted), events.On(s.accountsDeleted), events.On(s.applicationDeleted)}
}

func (s *Service) accountDeleted(ctx context.Context, e events.Envelope, event events.AccountDeleted) error {
	return s.removeAccounts(ctx, e, event.Account)
}

func (s *Service) accountsDeleted(ctx context.Context, e events.Envelope, event events.AccountsDeleted) error {
	return s.removeAccounts(ctx, e, event.Accounts...)
}

// removeAccounts removes what accounts of the event's tenant have.
func (s *Service) removeAccounts(ctx context.Context, e events.Envelope, accounts ...id.ID) error {
	return s.once(ctx, e, func(tx *store.Tx) error {
		if err := tx.DeleteAccountKeys(ctx, e.Tenant, accounts); err != nil {
			return err
		}
		return tx.DeleteAccountTokens(ctx, e.Tenant, accounts)
	})
}

// applicationDeleted deletes the tokens in transactions of their own before the
// one that ends the event: a delivery that breaks off goes on where it was.
func (s *Service) applicationDeleted(ctx context.Context, e events.Envelope, event events.ApplicationDeleted) error {
	for _, kind := range store.Kinds {
		_, err := purge.Drain(ctx, s.tx, func(tx *store.Tx) (int64, error) {
			return tx.DeleteApplicationTokens(ctx, kind, event.Tenant, event.Application, batch)
		})
		if err != nil {
			return err
		}
	}
	return s.once(ctx, e, func(tx *store.Tx) error {
		if err := tx.DeletePolicy(ctx, event.Tenant, event.Application); err != nil {
			return err
		}
		return tx.DeleteWebConfig(ctx, event.Tenant, event.Application)
	})
}

// once runs the effect of an event, unless an earlier delivery has had it.
func (s *Service) once(ctx context.Context, e events.Envelope, effect func(*store.Tx) error) error {
	return s.tx(ctx, func(tx *store.Tx) error {
		if seen, err := tx.Seen(ctx, e); err != nil || seen {
			return err
		}
		return effect(tx)
	})
}

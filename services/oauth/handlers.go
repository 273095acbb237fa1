package oauth

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/purge"
	"github.com/doorward/doorward/services/oauth/store"
)

const (
	// batch is how many rows one transaction deletes where there may be millions.
	batch = 5000
	// requestsEnd is after how long no request that began before an event can still
	// run. The request timeout is 15 seconds.
	requestsEnd = time.Minute
)

// Handlers handle the events of other services: the keys and tokens of a deleted
// account, the tokens, policy and web config of a deleted application, and the
// tokens of an account with a new password are deleted. A token that is issued to
// something deleted meanwhile is refused because it has no access, and purged when
// it expires.
func (s *Service) Handlers() []events.Handler {
	return []events.Handler{
		events.On(s.accountDeleted), events.On(s.accountsDeleted), events.On(s.applicationDeleted), events.On(s.passwordChanged),
	}
}

// passwordChanged deletes the tokens of the logins before the change
// (docs/interface/accounts.md#password-reset), and makes those that are still
// running issue none. The change is committed first, so that no login can store
// its tokens after the deletion.
func (s *Service) passwordChanged(ctx context.Context, e events.Envelope, event events.PasswordChanged) error {
	change := store.PasswordChange{TenantID: event.Tenant, AccountID: event.Account, ChangedAt: e.At, ExpiresAt: e.At.Add(requestsEnd)}
	if err := s.store.Tx(ctx, func(tx *store.Tx) error { return tx.RecordPasswordChange(ctx, change) }); err != nil {
		return err
	}
	return s.once(ctx, e, func(tx *store.Tx) error {
		return tx.DeleteTokensBefore(ctx, change, event.By != events.PasswordByAdministrator)
	})
}

func (s *Service) accountDeleted(ctx context.Context, e events.Envelope, event events.AccountDeleted) error {
	return s.removeAccounts(ctx, e, event.Account)
}

func (s *Service) accountsDeleted(ctx context.Context, e events.Envelope, event events.AccountsDeleted) error {
	return s.removeAccounts(ctx, e, event.Accounts...)
}

// removeAccounts deletes the keys and tokens of accounts of the event's tenant.
func (s *Service) removeAccounts(ctx context.Context, e events.Envelope, accounts ...id.ID) error {
	return s.once(ctx, e, func(tx *store.Tx) error {
		if err := tx.DeleteAccountKeys(ctx, e.Tenant, accounts); err != nil {
			return err
		}
		return tx.DeleteAccountTokens(ctx, e.Tenant, accounts)
	})
}

// applicationDeleted deletes the tokens in batches before the transaction that marks
// the event as seen: a delivery that failed continues where it stopped.
func (s *Service) applicationDeleted(ctx context.Context, e events.Envelope, event events.ApplicationDeleted) error {
	for _, kind := range store.Kinds {
		err := purge.Drain(ctx, s.store.Tx, func(tx *store.Tx) (int64, error) {
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

// once runs the effect of an event unless an earlier delivery has committed it.
func (s *Service) once(ctx context.Context, e events.Envelope, effect func(*store.Tx) error) error {
	return s.store.Tx(ctx, func(tx *store.Tx) error {
		if seen, err := tx.Seen(ctx, e); err != nil || seen {
			return err
		}
		return effect(tx)
	})
}

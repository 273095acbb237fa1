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
	// deleteBatchSize is how many rows one transaction deletes of a table that may have
	// millions to delete.
	deleteBatchSize = 5000
	// maxRequestDuration is longer than any request runs. The request timeout is 15 seconds.
	maxRequestDuration = time.Minute
)

// EventSources are the services whose events the OAuth service handles.
var EventSources = []string{"directory", "application", "idsite"}

// Handlers returns the handlers of events of other services (event consumers). They delete
// the API keys and tokens of a deleted account, the tokens, policy and web config of a
// deleted application, and the tokens of an account whose password was changed, and store the
// domains of hosted pages. A token
// that is issued during the deletion is refused at its use, because its account or
// application does not exist, and purged when it expires.
func (s *Service) Handlers() []events.Handler {
	return []events.Handler{
		events.On(s.accountDeleted), events.On(s.accountsDeleted), events.On(s.applicationDeleted),
		events.On(s.passwordChanged), events.On(s.siteDomainChanged),
	}
}

// siteDomainChanged stores the domain that OpenID providers with issuerDomain ID_SITE have as their issuer.
func (s *Service) siteDomainChanged(ctx context.Context, e events.Envelope, event events.SiteDomainChanged) error {
	return events.Once(ctx, s.store.Tx, e, func(tx *store.Tx) error {
		tx.PutSiteDomain(store.SiteDomain{TenantID: event.Tenant, Domain: event.Domain, AnnouncedAt: e.At})
		return nil
	})
}

// passwordChanged revokes all tokens of an account after a change of its password (sign out
// everywhere, end all sessions; docs/interface/accounts.md#password-reset). Where an
// administrator has set the password, the policy of the application decides. Sessions of single
// sign-on are ended by the idsite service (services/idsite/handlers.go). The change is committed before
// the tokens are deleted, so that a login that began before the change can no longer store tokens.
func (s *Service) passwordChanged(ctx context.Context, e events.Envelope, event events.PasswordChanged) error {
	change := store.PasswordChange{TenantID: event.Tenant, AccountID: event.Account, ChangedAt: e.At,
		ExpiresAt: e.At.Add(maxRequestDuration)}
	if err := s.store.Tx(ctx, func(tx *store.Tx) error { return tx.RecordPasswordChange(ctx, change) }); err != nil {
		return err
	}
	return events.Once(ctx, s.store.Tx, e, func(tx *store.Tx) error {
		if event.By != events.PasswordByAdministrator { // else the policy of each application decides when a token is used
			tx.EndAccountGrants(event.Tenant, []id.ID{event.Account}, &change.ChangedAt)
		}
		return tx.DeleteTokensBefore(ctx, change, event.By != events.PasswordByAdministrator)
	})
}

func (s *Service) accountDeleted(ctx context.Context, e events.Envelope, event events.AccountDeleted) error {
	return s.deleteAccountData(ctx, e, event.Account)
}

func (s *Service) accountsDeleted(ctx context.Context, e events.Envelope, event events.AccountsDeleted) error {
	return s.deleteAccountData(ctx, e, event.Accounts...)
}

// deleteAccountData deletes the API keys and tokens of accounts of the event's tenant.
func (s *Service) deleteAccountData(ctx context.Context, e events.Envelope, accounts ...id.ID) error {
	return events.Once(ctx, s.store.Tx, e, func(tx *store.Tx) error {
		if err := tx.DeleteAccountAPIKeys(ctx, e.Tenant, accounts); err != nil {
			return err
		}
		tx.EndAccountGrants(e.Tenant, accounts, nil)
		return tx.DeleteAccountTokens(ctx, e.Tenant, accounts)
	})
}

// applicationDeleted deletes the tokens, policy and web config of an application. The tokens
// are deleted in batches before the transaction that marks the event as seen, so that a
// repeated delivery continues where the failed one stopped.
func (s *Service) applicationDeleted(ctx context.Context, e events.Envelope, event events.ApplicationDeleted) error {
	for _, kind := range store.TokenKinds {
		err := purge.Drain(ctx, s.store.Tx, func(tx *store.Tx) (int64, error) {
			return tx.DeleteApplicationTokens(ctx, kind, event.Tenant, event.Application, deleteBatchSize)
		})
		if err != nil {
			return err
		}
	}
	return events.Once(ctx, s.store.Tx, e, func(tx *store.Tx) error {
		if err := tx.DeletePolicy(ctx, event.Tenant, event.Application); err != nil {
			return err
		}
		if err := tx.DeleteApplicationOpenID(ctx, id.Ref{Tenant: event.Tenant, ID: event.Application}); err != nil {
			return err
		}
		return tx.DeleteWebConfig(ctx, event.Tenant, event.Application)
	})
}

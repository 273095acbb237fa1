package idsite

import (
	"cmp"
	"context"
	"slices"

	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/idsite/store"
)

// EventSources are the services whose events the idsite service handles.
var EventSources = []string{"application", "directory"}

// Handlers returns the handlers of events of other services (event consumers). They end the sessions of
// single sign-on of accounts that have a new password, are disabled or deleted, so that clients are told
// at once and not at the next use of the session (journey/session.go), and delete consents whose account
// or application is gone.
func (s *Service) Handlers() []events.Handler {
	return []events.Handler{
		events.On(s.passwordChanged), events.On(s.accountDisabled), events.On(s.accountDeleted),
		events.On(s.accountsDeleted), events.On(s.applicationDeleted),
	}
}

// passwordChanged ends the sessions that began with a former password. The tokens that were made in them
// are ended by the oauth service, which handles the same event and knows the policy for a password that an
// administrator has set (services/oauth/handlers.go).
func (s *Service) passwordChanged(ctx context.Context, e events.Envelope, event events.PasswordChanged) error {
	changed := cmp.Or(event.ModifiedAt, e.At)
	sessions, err := s.sessionsOf(ctx, e, func(session store.Session) bool {
		return session.PasswordModifiedAt == nil || session.PasswordModifiedAt.Before(changed)
	}, event.Account)
	if err != nil {
		return err
	}
	return events.Once(ctx, s.store.Tx, e, func(tx *store.Tx) error { return tx.EndSessions(ctx, e.Tenant, sessions...) })
}

// accountDisabled ends the sessions of an account, and all tokens that were made in them: those with the
// scope offline_access too. A session of a login after the account was enabled again stays.
func (s *Service) accountDisabled(ctx context.Context, e events.Envelope, event events.AccountDisabled) error {
	sessions, err := s.sessionsOf(ctx, e, func(session store.Session) bool { return session.CreatedAt.Before(e.At) },
		event.Account)
	if err != nil {
		return err
	}
	if err := s.Journey.EndTokens(ctx, false, sessions...); err != nil {
		return err
	}
	return events.Once(ctx, s.store.Tx, e, func(tx *store.Tx) error { return tx.EndSessions(ctx, e.Tenant, sessions...) })
}

func (s *Service) accountDeleted(ctx context.Context, e events.Envelope, event events.AccountDeleted) error {
	return s.deleteAccountData(ctx, e, event.Account)
}

func (s *Service) accountsDeleted(ctx context.Context, e events.Envelope, event events.AccountsDeleted) error {
	return s.deleteAccountData(ctx, e, event.Accounts...)
}

// deleteAccountData ends the sessions and deletes the consents of accounts. The oauth service deletes their tokens.
func (s *Service) deleteAccountData(ctx context.Context, e events.Envelope, accounts ...id.ID) error {
	sessions, err := s.sessionsOf(ctx, e, func(store.Session) bool { return true }, accounts...)
	if err != nil {
		return err
	}
	return events.Once(ctx, s.store.Tx, e, func(tx *store.Tx) error {
		tx.DeleteConsentsOfAccounts(e.Tenant, accounts)
		return tx.EndSessions(ctx, e.Tenant, sessions...)
	})
}

// applicationDeleted deletes the consents that clients of an application have. Their sessions are those of
// the tenant, which go on.
func (s *Service) applicationDeleted(ctx context.Context, e events.Envelope, event events.ApplicationDeleted) error {
	return events.Once(ctx, s.store.Tx, e, func(tx *store.Tx) error {
		tx.DeleteConsentsOfApplication(id.Ref{Tenant: e.Tenant, ID: event.Application})
		return nil
	})
}

// sessionsOf returns the sessions of accounts that an event ends. They end in a transaction that calls no
// peer; a login that ends meanwhile leaves one that is refused at its next use.
func (s *Service) sessionsOf(ctx context.Context, e events.Envelope, ends func(store.Session) bool,
	accounts ...id.ID) ([]store.Session, error) {
	sessions, err := s.store.SessionsOfAccounts(ctx, e.Tenant, accounts)
	return slices.DeleteFunc(sessions, func(session store.Session) bool { return !ends(session) }), err
}

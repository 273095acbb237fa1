package application

import (
	"context"

	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/services/application/store"
)

// EventSources are the services whose events the application service handles.
var EventSources = []string{"directory"}

// Handlers returns the handlers of events of other services (event consumers).
func (s *Service) Handlers() []events.Handler {
	return []events.Handler{
		events.On(s.DirectoryDeleted), events.On(s.GroupDeleted), events.On(s.AccountDeleted),
		events.On(s.AccountsDeleted),
	}
}

// DirectoryDeleted deletes the mappings of a deleted directory and of its groups, and the failed logins of its
// accounts.
func (s *Service) DirectoryDeleted(ctx context.Context, e events.Envelope, event events.DirectoryDeleted) error {
	return events.Once(ctx, s.store.Tx, e, func(tx *store.Tx) error {
		if err := deleteStoreMappings(ctx, tx, event.Tenant, event.Directory); err != nil {
			return err
		}
		return tx.ForgetFailedLoginsOfDirectory(ctx, event.Tenant, event.Directory)
	})
}

// AccountDeleted deletes the failed logins of a deleted account.
func (s *Service) AccountDeleted(ctx context.Context, e events.Envelope, event events.AccountDeleted) error {
	return events.Once(ctx, s.store.Tx, e, func(tx *store.Tx) error {
		return tx.ForgetFailedLogins(ctx, event.Tenant, event.Account)
	})
}

// GroupDeleted deletes the mappings of a deleted group.
func (s *Service) GroupDeleted(ctx context.Context, e events.Envelope, event events.GroupDeleted) error {
	return events.Once(ctx, s.store.Tx, e, func(tx *store.Tx) error {
		return deleteStoreMappings(ctx, tx, event.Tenant, event.Group)
	})
}

// AccountsDeleted deletes the failed logins of many deleted accounts.
func (s *Service) AccountsDeleted(ctx context.Context, e events.Envelope, event events.AccountsDeleted) error {
	return events.Once(ctx, s.store.Tx, e, func(tx *store.Tx) error {
		return tx.ForgetFailedLogins(ctx, event.Tenant, event.Accounts...)
	})
}

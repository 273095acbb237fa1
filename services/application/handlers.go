package application

import (
	"context"

	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/application/store"
)

// EventSources are the services whose events the application service handles.
var EventSources = []string{"directory"}

// Handlers returns the handlers of events of other services (event consumers).
func (s *Service) Handlers() []events.Handler {
	return []events.Handler{events.On(s.DirectoryDeleted), events.On(s.GroupDeleted)}
}

// DirectoryDeleted deletes the mappings of a deleted directory and of its groups.
func (s *Service) DirectoryDeleted(ctx context.Context, e events.Envelope, event events.DirectoryDeleted) error {
	return s.handleStoreDeleted(ctx, e, id.Ref{Tenant: event.Tenant, ID: event.Directory})
}

// GroupDeleted deletes the mappings of a deleted group.
func (s *Service) GroupDeleted(ctx context.Context, e events.Envelope, event events.GroupDeleted) error {
	return s.handleStoreDeleted(ctx, e, id.Ref{Tenant: event.Tenant, ID: event.Group})
}

// handleStoreDeleted deletes the mappings of an account store, unless an earlier delivery of
// the event has done so (idempotent handler).
func (s *Service) handleStoreDeleted(ctx context.Context, e events.Envelope, deleted id.Ref) error {
	return s.store.Tx(ctx, func(tx *store.Tx) error {
		seen, err := tx.Seen(ctx, e)
		if err != nil || seen {
			return err
		}
		return deleteStoreMappings(ctx, tx, deleted.Tenant, deleted.ID)
	})
}

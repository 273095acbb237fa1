package application

import (
	"context"

	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/application/store"
)

// Sources are the services whose events this one acts on.
var Sources = []string{"directory"}

// Handlers handle the deletion of account stores.
func (s *Service) Handlers() []events.Handler {
	return []events.Handler{events.On(s.DirectoryDeleted), events.On(s.GroupDeleted)}
}

// DirectoryDeleted drops the mappings of a directory that is gone, and of its
// groups.
func (s *Service) DirectoryDeleted(ctx context.Context, e events.Envelope, event events.DirectoryDeleted) error {
	return s.storeDeleted(ctx, e, id.Ref{Tenant: event.Tenant, ID: event.Directory})
}

// GroupDeleted drops the mappings of a group that is gone.
func (s *Service) GroupDeleted(ctx context.Context, e events.Envelope, event events.GroupDeleted) error {
	return s.storeDeleted(ctx, e, id.Ref{Tenant: event.Tenant, ID: event.Group})
}

func (s *Service) storeDeleted(ctx context.Context, e events.Envelope, gone id.Ref) error {
	return s.store.Tx(ctx, func(tx *store.Tx) error {
		seen, err := tx.Seen(ctx, e)
		if err != nil || seen {
			return err
		}
		return dropStore(ctx, tx, gone.Tenant, gone.ID)
	})
}

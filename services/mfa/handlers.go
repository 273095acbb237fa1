package mfa

import (
	"context"
	"errors"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/purge"
	"github.com/doorward/doorward/services/mfa/store"
)

// Sources are the services whose events this one acts on.
var Sources = []string{"directory", "notification"}

// Handlers handle the deletion of accounts, with which phones, factors and
// challenges are deleted, and the delivery of text messages.
func (s *Service) Handlers() []events.Handler {
	return []events.Handler{events.On(s.accountDeleted), events.On(s.directoryDeleted), events.On(s.textReported)}
}

// deliveries maps the reports of a text message to those of a challenge.
var deliveries = map[events.TextStatus]Delivery{
	events.TextAccepted: HandedOver, events.TextDelivered: Delivered, events.TextFailed: Refused, events.TextUnsendable: Broken,
}

// textReported updates the challenge of a message. It is idempotent.
func (s *Service) textReported(ctx context.Context, _ events.Envelope, event events.TextReported) error {
	err := s.UpdateDelivery(ctx, id.Ref{Tenant: event.Tenant, ID: event.Challenge}, deliveries[event.Status])
	if errors.Is(err, apierr.NotFound) {
		return nil
	}
	return err
}

func (s *Service) accountDeleted(ctx context.Context, e events.Envelope, event events.AccountDeleted) error {
	return s.removeOf(ctx, e, event.Tenant, event.Account)
}

func (s *Service) directoryDeleted(ctx context.Context, e events.Envelope, event events.DirectoryDeleted) error {
	return s.removeOf(ctx, e, event.Tenant, event.Directory)
}

// removeOf deletes what an account, or the accounts of a directory, have. A request
// that has found the account may still be running, so that the purge repeats the
// deletion when none can be.
func (s *Service) removeOf(ctx context.Context, e events.Envelope, tenant, owner id.ID) error {
	removal := store.Removal{TenantID: tenant, OwnerID: owner}
	if err := s.removeAccounts(ctx, removal); err != nil {
		return err
	}
	return s.store.Tx(ctx, func(tx *store.Tx) error {
		if seen, err := tx.Seen(ctx, e); err != nil || seen {
			return err
		}
		return tx.InsertRemoval(ctx, removal, s.now())
	})
}

func (s *Service) removeAccounts(ctx context.Context, r store.Removal) error {
	return purge.Drain(ctx, s.store.Tx, func(tx *store.Tx) (int64, error) { return tx.DeleteAccounts(ctx, r.TenantID, r.OwnerID, batch) })
}

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

// Handlers handle the events of other services: the deletion of accounts and directories,
// with which their phones, factors and challenges are deleted, and the delivery reports of
// text messages.
func (s *Service) Handlers() []events.Handler {
	return []events.Handler{
		events.On(s.accountDeleted), events.On(s.accountsDeleted), events.On(s.directoryDeleted),
		events.On(s.smsReported),
	}
}

// smsStates maps the states of a text message in events to those of this service.
var smsStates = map[events.SMSStatus]SMSState{
	events.SMSAccepted: SMSAccepted, events.SMSDelivered: SMSDelivered, events.SMSFailed: SMSFailed,
	events.SMSUnsendable: SMSUnsendable,
}

// smsReported sets the state of the challenge whose text message is reported. It is
// idempotent.
func (s *Service) smsReported(ctx context.Context, _ events.Envelope, event events.TextReported) error {
	err := s.UpdateSMSState(ctx, id.Ref{Tenant: event.Tenant, ID: event.Challenge}, smsStates[event.Status])
	if errors.Is(err, apierr.NotFound) {
		return nil
	}
	return err
}

func (s *Service) accountDeleted(ctx context.Context, e events.Envelope, event events.AccountDeleted) error {
	return s.removeAccountsOf(ctx, e, event.Tenant, event.Account)
}

func (s *Service) accountsDeleted(ctx context.Context, e events.Envelope, event events.AccountsDeleted) error {
	return s.removeAccountsOf(ctx, e, event.Tenant, event.Accounts...)
}

func (s *Service) directoryDeleted(ctx context.Context, e events.Envelope, event events.DirectoryDeleted) error {
	return s.removeAccountsOf(ctx, e, event.Tenant, event.Directory)
}

// removeAccountsOf deletes the phones, factors and challenges of accounts, or of all
// accounts of a directory. A request that found an account before may still add a row, so
// the deletion is recorded and the purge repeats it (repeatRemovals).
func (s *Service) removeAccountsOf(ctx context.Context, e events.Envelope, tenant id.ID, owners ...id.ID) error {
	if err := s.removeAccounts(ctx, tenant, owners); err != nil {
		return err
	}
	return events.Once(ctx, s.store.Tx, e, func(tx *store.Tx) error {
		return tx.InsertRemovals(ctx, tenant, owners, s.now())
	})
}

// removeAccounts deletes the accounts that are owners or are in a directory that is one, a batch in
// each transaction.
func (s *Service) removeAccounts(ctx context.Context, tenant id.ID, owners []id.ID) error {
	return purge.Drain(ctx, s.store.Tx,
		func(tx *store.Tx) (int64, error) { return tx.DeleteAccounts(ctx, tenant, owners, purgeBatch) })
}

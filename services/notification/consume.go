package notification

import (
	"context"

	"go.opentelemetry.io/otel/propagation"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/telemetry"
	"github.com/doorward/doorward/services/notification/store"
)

// Sources are the services whose events this one consumes.
var Sources = []string{"directory"}

// Handlers turn events into deliveries. Whether a mail is wanted at all is
// asked when it is written, not here: then the answer is the newest.
func (s *Service) Handlers() []events.Handler {
	return []events.Handler{
		events.On(s.registered), events.On(s.verified), events.On(s.verificationRequested),
		events.On(s.resetRequested), events.On(s.reset),
	}
}

// registered asks for the mail that proves the address, or for the welcome
// where nothing is to be proven.
func (s *Service) registered(ctx context.Context, e events.Envelope, event events.AccountRegistered) error {
	workflow := directoryapi.Welcome
	if len(event.Token) > 0 {
		workflow = directoryapi.Verification
	}
	return s.order(ctx, e, store.Delivery{AccountID: event.Account, ApplicationID: event.Application, TokenSealed: event.Token}, workflow)
}

// verified asks for the mails that follow the proof of an address.
func (s *Service) verified(ctx context.Context, e events.Envelope, event events.AccountVerified) error {
	return s.order(ctx, e, store.Delivery{AccountID: event.Account}, directoryapi.VerificationSuccess, directoryapi.Welcome)
}

// verificationRequested asks for another mail that proves the address.
func (s *Service) verificationRequested(ctx context.Context, e events.Envelope, event events.VerificationRequested) error {
	return s.order(ctx, e, store.Delivery{AccountID: event.Account, ApplicationID: event.Application, TokenSealed: event.Token}, directoryapi.Verification)
}

// resetRequested asks for the mail with the link to a new password.
func (s *Service) resetRequested(ctx context.Context, e events.Envelope, event events.PasswordResetRequested) error {
	return s.order(ctx, e, store.Delivery{AccountID: event.Account, ApplicationID: event.Application, TokenSealed: event.Token}, directoryapi.Reset)
}

// reset asks for the mail that tells of the new password.
func (s *Service) reset(ctx context.Context, e events.Envelope, event events.PasswordReset) error {
	return s.order(ctx, e, store.Delivery{AccountID: event.Account, ApplicationID: event.Application}, directoryapi.ResetSuccess)
}

// order adds a delivery for each workflow, once however often the event comes,
// and wakes a sender.
func (s *Service) order(ctx context.Context, e events.Envelope, d store.Delivery, workflows ...directoryapi.Workflow) error {
	d.TenantID, d.EventID, d.RequestID, d.CreatedAt = e.Tenant, e.ID, e.RequestID, s.now()
	d.Trace = map[string]string{}
	telemetry.Carry(ctx, propagation.MapCarrier(d.Trace))
	err := s.store.Tx(ctx, func(tx *store.Tx) error {
		if seen, err := tx.Seen(ctx, e.Tenant, e.ID); seen || err != nil {
			return err
		}
		for _, workflow := range workflows {
			d.ID, d.Workflow = id.New(d.CreatedAt), workflow
			if err := tx.InsertDelivery(ctx, d); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		s.stir()
	}
	return err
}

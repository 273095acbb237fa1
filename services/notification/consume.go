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
var Sources = []string{"directory", "mfa"}

// Handlers turn events into deliveries. Whether a mail is wanted at all is
// asked when it is written, not here: then the answer is the newest.
func (s *Service) Handlers() []events.Handler {
	return []events.Handler{
		events.On(s.registered), events.On(s.verified), events.On(s.verificationRequested),
		events.On(s.resetRequested), events.On(s.reset), events.On(s.challenged),
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

// verified asks for the mails that follow the proof of an address. They came
// about through the application that the proof was asked for through.
func (s *Service) verified(ctx context.Context, e events.Envelope, event events.AccountVerified) error {
	application, err := s.store.VerificationApplication(ctx, event.Tenant, event.Account)
	if err != nil {
		return err
	}
	return s.order(ctx, e, store.Delivery{AccountID: event.Account, ApplicationID: application}, directoryapi.VerificationSuccess, directoryapi.Welcome)
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

// challenged asks for the text with the code of a challenge.
func (s *Service) challenged(ctx context.Context, e events.Envelope, event events.ChallengeCreated) error {
	return s.enqueue(ctx, e, s.texts, store.Delivery{
		AccountID: event.Account, ChallengeID: event.Challenge, Number: event.Number, Message: event.Message,
		TokenSealed: event.Code, ExpiresAt: &event.ExpiresAt,
	})
}

// order adds a mail for each workflow.
func (s *Service) order(ctx context.Context, e events.Envelope, d store.Delivery, workflows ...directoryapi.Workflow) error {
	mails := make([]store.Delivery, len(workflows))
	for i, workflow := range workflows {
		mails[i] = d
		mails[i].Workflow = workflow
	}
	return s.enqueue(ctx, e, s.mails, mails...)
}

// enqueue adds the deliveries that an event asks for, once however often it
// comes, and wakes a sender.
func (s *Service) enqueue(ctx context.Context, e events.Envelope, c *channel, deliveries ...store.Delivery) error {
	now, origin := s.now(), map[string]string{}
	telemetry.Carry(ctx, propagation.MapCarrier(origin))
	err := s.store.Tx(ctx, func(tx *store.Tx) error {
		if seen, err := tx.Seen(ctx, e); seen || err != nil {
			return err
		}
		for _, d := range deliveries {
			d.TenantID, d.ID, d.EventID, d.Kind, d.RequestID, d.Trace, d.CreatedAt = e.Tenant, id.New(now), e.ID, c.kind, e.RequestID, origin, now
			if err := tx.InsertDelivery(ctx, d); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		c.stir()
	}
	return err
}

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

// Handlers turn events into deliveries. Whether a mail is wanted at all is decided
// when it is written, by the newest state of the directory.
func (s *Service) Handlers() []events.Handler {
	return []events.Handler{
		events.On(s.registered), events.On(s.verified), events.On(s.verificationRequested),
		events.On(s.resetRequested), events.On(s.reset), events.On(s.challenged), events.On(s.signUpRequested),
	}
}

// registered adds the mail that verifies the address, or the welcome where nothing
// is to be verified.
func (s *Service) registered(ctx context.Context, e events.Envelope, event events.AccountRegistered) error {
	workflow := directoryapi.Welcome
	if len(event.Token) > 0 {
		workflow = directoryapi.Verification
	}
	d := store.Delivery{AccountID: event.Account, ApplicationID: event.Application, TokenSealed: event.Token}
	return s.enqueueMails(ctx, e, d, workflow)
}

// verified adds the mails that follow the verification of an address. They name
// the application that the verification mail named.
func (s *Service) verified(ctx context.Context, e events.Envelope, event events.AccountVerified) error {
	application, err := s.store.VerificationApplication(ctx, event.Tenant, event.Account)
	if err != nil {
		return err
	}
	d := store.Delivery{AccountID: event.Account, ApplicationID: application}
	return s.enqueueMails(ctx, e, d, directoryapi.VerificationSuccess, directoryapi.Welcome)
}

// verificationRequested adds another mail that verifies the address.
func (s *Service) verificationRequested(ctx context.Context, e events.Envelope, event events.VerificationRequested) error {
	d := store.Delivery{AccountID: event.Account, ApplicationID: event.Application, TokenSealed: event.Token}
	return s.enqueueMails(ctx, e, d, directoryapi.Verification)
}

// resetRequested adds the mail with the link to a new password.
func (s *Service) resetRequested(ctx context.Context, e events.Envelope, event events.PasswordResetRequested) error {
	d := store.Delivery{AccountID: event.Account, ApplicationID: event.Application, TokenSealed: event.Token}
	return s.enqueueMails(ctx, e, d, directoryapi.Reset)
}

// signUpRequested adds the mail with the link that completes a sign-up, or accepts
// an invitation.
func (s *Service) signUpRequested(ctx context.Context, e events.Envelope, event events.SignUpRequested) error {
	return s.enqueueMails(ctx, e, store.Delivery{AccountID: event.Account, TokenSealed: event.Token}, directoryapi.SigningUp)
}

// reset adds the mail that confirms the new password.
func (s *Service) reset(ctx context.Context, e events.Envelope, event events.PasswordReset) error {
	return s.enqueueMails(ctx, e, store.Delivery{AccountID: event.Account, ApplicationID: event.Application}, directoryapi.ResetSuccess)
}

// challenged adds the text with the code of a challenge.
func (s *Service) challenged(ctx context.Context, e events.Envelope, event events.ChallengeCreated) error {
	return s.enqueue(ctx, e, s.texts, store.Delivery{
		AccountID: event.Account, ChallengeID: event.Challenge, Number: event.Number, Message: event.Message,
		TokenSealed: event.Code, ExpiresAt: &event.ExpiresAt,
	})
}

// enqueueMails adds a mail for each workflow.
func (s *Service) enqueueMails(ctx context.Context, e events.Envelope, d store.Delivery, workflows ...directoryapi.Workflow) error {
	mails := make([]store.Delivery, len(workflows))
	for i, workflow := range workflows {
		mails[i] = d
		mails[i].Workflow = workflow
	}
	return s.enqueue(ctx, e, s.mails, mails...)
}

// enqueue adds the deliveries of an event, once however often it comes, and wakes
// a worker.
func (s *Service) enqueue(ctx context.Context, e events.Envelope, c *channel, deliveries ...store.Delivery) error {
	now, origin := s.now(), map[string]string{}
	telemetry.InjectTrace(ctx, propagation.MapCarrier(origin))
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
		c.wakeWorker()
	}
	return err
}

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
var Sources = []string{"directory", "idsite", "mfa"}

// Handlers turn events into deliveries. Whether a mail is sent at all is decided when it is
// composed (mailcontent.go), by the state of the directory at that time.
func (s *Service) Handlers() []events.Handler {
	return []events.Handler{
		events.On(s.accountRegistered), events.On(s.accountVerified), events.On(s.verificationRequested),
		events.On(s.passwordResetRequested), events.On(s.passwordReset), events.On(s.challengeCreated),
		events.On(s.signUpRequested), events.On(s.factorChanged), events.On(s.accountDeleted),
		events.On(s.accountsDeleted), events.On(s.sessionEnded), events.On(s.adminKeyCreated),
	}
}

func (s *Service) accountDeleted(ctx context.Context, e events.Envelope, event events.AccountDeleted) error {
	return s.cancelDeliveries(ctx, e, event.Account)
}

func (s *Service) accountsDeleted(ctx context.Context, e events.Envelope, event events.AccountsDeleted) error {
	return s.cancelDeliveries(ctx, e, event.Accounts...)
}

// cancelDeliveries ends the pending deliveries of deleted accounts and erases their tokens, numbers
// and messages. A finished delivery has none of these, and is purged by its age.
func (s *Service) cancelDeliveries(ctx context.Context, e events.Envelope, accounts ...id.ID) error {
	return events.Once(ctx, s.store.Tx, e, func(tx *store.Tx) error {
		return tx.CancelDeliveries(ctx, e.Tenant, accounts, s.now())
	})
}

// accountRegistered adds the mail that verifies the email address or, where the event has no
// token because nothing has to be verified, the welcome mail.
func (s *Service) accountRegistered(ctx context.Context, e events.Envelope, event events.AccountRegistered) error {
	workflow := directoryapi.Welcome
	if len(event.Token) > 0 {
		workflow = directoryapi.Verification
	}
	d := store.Delivery{AccountID: event.Account, ApplicationID: event.Application, TokenSealed: event.Token}
	return s.enqueueMails(ctx, e, d, workflow)
}

// accountVerified adds the success mail and the welcome mail, which follow the verification of
// an email address. They name the application that the verification mail named.
func (s *Service) accountVerified(ctx context.Context, e events.Envelope, event events.AccountVerified) error {
	application, err := s.store.VerificationApplication(ctx, event.Tenant, event.Account)
	if err != nil {
		return err
	}
	d := store.Delivery{AccountID: event.Account, ApplicationID: application}
	return s.enqueueMails(ctx, e, d, directoryapi.VerificationSuccess, directoryapi.Welcome)
}

// verificationRequested adds another mail that verifies the email address.
func (s *Service) verificationRequested(ctx context.Context, e events.Envelope,
	event events.VerificationRequested) error {
	d := store.Delivery{AccountID: event.Account, ApplicationID: event.Application, TokenSealed: event.Token}
	return s.enqueueMails(ctx, e, d, directoryapi.Verification)
}

// passwordResetRequested adds the mail with the link to set a new password, also that to the owner of an
// email with which somebody tried to register.
func (s *Service) passwordResetRequested(ctx context.Context, e events.Envelope,
	event events.PasswordResetRequested) error {
	workflow := directoryapi.Reset
	if event.Existing {
		workflow = directoryapi.ExistingAccount
	}
	d := store.Delivery{AccountID: event.Account, ApplicationID: event.Application, TokenSealed: event.Token}
	return s.enqueueMails(ctx, e, d, workflow)
}

// signUpRequested adds the mail with the link that completes a sign-up of a tenant. An invitation of
// an administrator is the same event (Invite of the directory service): the link accepts it.
func (s *Service) signUpRequested(ctx context.Context, e events.Envelope, event events.SignUpRequested) error {
	return s.enqueueMails(ctx, e, store.Delivery{AccountID: event.Account, TokenSealed: event.Token},
		directoryapi.SigningUp)
}

// passwordReset adds the mail that confirms the new password.
func (s *Service) passwordReset(ctx context.Context, e events.Envelope, event events.PasswordReset) error {
	return s.enqueueMails(ctx, e, store.Delivery{AccountID: event.Account, ApplicationID: event.Application},
		directoryapi.ResetSuccess)
}

// factorChanged adds the mail that tells the owner of an account of a second factor that was added or removed.
func (s *Service) factorChanged(ctx context.Context, e events.Envelope, event events.FactorChanged) error {
	workflow := directoryapi.FactorAdded
	if event.Removed {
		workflow = directoryapi.FactorRemoved
	}
	return s.enqueueMails(ctx, e, store.Delivery{AccountID: event.Account, Message: event.Type}, workflow)
}

// challengeCreated adds the text message with the code of a challenge.
func (s *Service) challengeCreated(ctx context.Context, e events.Envelope, event events.ChallengeCreated) error {
	return s.enqueue(ctx, e, s.sms, store.Delivery{
		AccountID: event.Account, ChallengeID: event.Challenge, Number: event.Number, Message: event.Message,
		TokenSealed: event.Code, ExpiresAt: &event.ExpiresAt,
	})
}

// sessionEnded adds the back-channel logout of each client of a session.
func (s *Service) sessionEnded(ctx context.Context, e events.Envelope, event events.SessionEnded) error {
	logouts := make([]store.Delivery, len(event.Clients))
	for i, client := range event.Clients {
		logouts[i] = store.Delivery{AccountID: event.Account, SessionID: event.Session, ClientID: client,
			Workflow: directoryapi.Workflow(client.String())}
	}
	return s.enqueue(ctx, e, s.logouts, logouts...)
}

// enqueueMails adds a mail for each workflow.
func (s *Service) enqueueMails(ctx context.Context, e events.Envelope, d store.Delivery,
	workflows ...directoryapi.Workflow) error {
	mails := make([]store.Delivery, len(workflows))
	for i, workflow := range workflows {
		mails[i] = d
		mails[i].Workflow = workflow
	}
	return s.enqueue(ctx, e, s.mail, mails...)
}

// enqueue adds the deliveries of an event to the queue, once for however many times the event
// comes (idempotent), and wakes a worker.
func (s *Service) enqueue(ctx context.Context, e events.Envelope, c *channel, deliveries ...store.Delivery) error {
	now, origin := s.now(), map[string]string{}
	telemetry.InjectTrace(ctx, propagation.MapCarrier(origin))
	err := events.Once(ctx, s.store.Tx, e, func(tx *store.Tx) error {
		for _, d := range deliveries {
			d.TenantID, d.ID, d.EventID, d.Kind, d.RequestID, d.Trace, d.CreatedAt = e.Tenant, id.New(now), e.ID,
				c.kind, e.RequestID, origin, now
			d.Language = e.Language
			if err := tx.InsertDelivery(ctx, d); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.wakeWorker()
	return nil
}

package notification

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/notification/store"
)

const (
	// placeholder stands for the code in the message of a challenge, as in services/mfa/sms.go.
	placeholder = "${code}"
	// smsTimeout bounds one attempt to send a text message.
	smsTimeout = 20 * time.Second
)

// errNoSMSProviderAnswer marks a failure that leaves open whether the provider accepted the
// text message. There is no retry: the delivery becomes LOST.
var errNoSMSProviderAnswer = errors.New("there is no answer of the provider")

// errSMSProviderBusy marks a response of the provider, such as 503, by which it did not
// accept the text message and may accept a retry.
var errSMSProviderBusy = errors.New("the provider is busy")

// deploymentError is a failure for a reason of this deployment, such as a wrong token of the
// provider. There is no retry: the delivery becomes DEPLOYMENT_ERROR.
type deploymentError struct{ error }

// smsChannel is the channel of text messages (SMS). Each is sent at most once: the API of
// providers has no idempotency key, so the attempt is recorded before the request, and there
// is a retry only after a clear refusal or a failed connection. A code that is lost costs its
// user another challenge. A code that is sent twice costs money, and teaches users to expect
// codes that they did not request.
func (s *Service) smsChannel() *channel {
	return &channel{
		kind: store.SMS, name: "SMS", workers: s.cfg.SMSSenders, timeout: smsTimeout, maxAge: maxDeliveryAge,
		wake:       make(chan struct{}, 1),
		skipped:    func() store.Skip { return store.Skip{Tenants: []id.ID{}} },
		newSender:  func() (sender, error) { return &smsSender{s, newSMSProviderClient(s.cfg.SMSProvider)}, nil },
		backoff:    smsBackoff,
		workflow:   func(store.Delivery) string { return "challenge" },
		attempts:   s.instruments.sms,
		finalState: s.finalSMSState,
		onFinish:   reportSMS,
	}
}

// finalSMSState returns the final state of a text message by the outcome of an attempt, and
// "" for a retry. There is a retry only where the provider has certainly not accepted the
// message.
func (s *Service) finalSMSState(outcome error) (store.State, sendResult) {
	var permanent permanentError
	var misconfigured deploymentError
	switch {
	case outcome == nil && s.cfg.SMSProvider.Receipts:
		return store.Sent, resultSent
	case outcome == nil:
		return store.Delivered, resultSent
	case errors.Is(outcome, errObsolete):
		return store.Obsolete, resultUnwanted
	case errors.As(outcome, &permanent):
		return store.Failed, resultFailed
	case errors.As(outcome, &misconfigured):
		return store.DeploymentError, resultBroken
	case isUnavailable(outcome), errors.Is(outcome, errSMSProviderBusy):
		return "", ""
	}
	return store.Lost, resultLost
}

// smsSender sends text messages through the SMS provider.
type smsSender struct {
	s        *Service
	provider *smsProviderClient
}

// send sends the text message of a delivery. It does not send a code that has expired, nor a
// message that an earlier attempt may have sent.
func (c *smsSender) send(ctx context.Context, d store.Delivery) error {
	now := c.s.now()
	if d.AttemptedAt != nil {
		return fmt.Errorf("%w: the process that sent the request has ended", errNoSMSProviderAnswer)
	}
	if d.ExpiresAt == nil || !now.Before(*d.ExpiresAt) {
		return errObsolete
	}
	code, err := c.s.ring.Open(d.TokenSealed, events.CodePurpose(d.ChallengeID))
	if err != nil {
		return deploymentError{fmt.Errorf("open the code: %w", err)}
	}
	if err := c.s.store.Tx(ctx, func(tx *store.Tx) error { return tx.RecordAttempt(ctx, d, now) }); err != nil {
		return fmt.Errorf("%w: record the attempt: %w", errUnavailable, err)
	}
	return c.provider.send(ctx, d.Number, strings.ReplaceAll(d.Message, placeholder, code.Reveal()), c.s.receiptURL(d))
}

func (c *smsSender) close() { c.provider.close() }

func (c *smsSender) abort() { c.provider.close() }

// smsStatuses are what the event TextReported reports to the mfa service, by the final state
// of a text message.
var smsStatuses = map[store.State][]events.SMSStatus{
	store.Sent:            {events.SMSAccepted},
	store.Lost:            {events.SMSAccepted}, // the provider has probably accepted the message; a receipt may follow
	store.Delivered:       {events.SMSAccepted, events.SMSDelivered},
	store.Failed:          {events.SMSAccepted, events.SMSFailed},
	store.DeploymentError: {events.SMSUnsendable},
}

// reportSMS emits what the mfa service has to know of a text message, in the transaction that
// sets the final state of the delivery.
func reportSMS(ctx context.Context, tx *store.Tx, d store.Delivery) error {
	for _, status := range smsStatuses[d.State] {
		if err := tx.Emit(ctx, smsReported(d, status)); err != nil {
			return err
		}
	}
	return nil
}

// smsReported is the event that reports the state of a text message to the mfa service.
func smsReported(d store.Delivery, status events.SMSStatus) events.TextReported {
	return events.TextReported{Tenant: d.TenantID, Account: d.AccountID, Challenge: d.ChallengeID, Status: status}
}

// RecordSMSReceipt records the state that the SMS provider reports by a delivery receipt
// (webhook, StatusCallback). Receipts may come twice, out of order, and before the response
// to the request that they are about: the first receipt with a final state counts. It returns
// apierr.Forbidden for a receipt that the provider has not signed.
func (s *Service) RecordSMSReceipt(ctx context.Context, at id.Ref, r SMSReceipt) error {
	if !s.cfg.SMSProvider.Receipts ||
		!r.isSigned(s.cfg.SMSProvider.Token, s.receiptURL(store.Delivery{TenantID: at.Tenant, ID: at.ID})) {
		return apierr.Forbidden.Because("the receipt is not signed by the provider")
	}
	state, reason := r.finalState()
	if state == "" {
		return nil
	}
	return s.store.Tx(ctx, func(tx *store.Tx) error {
		d, err := tx.LockSMS(ctx, at.Tenant, at.ID)
		if err != nil {
			return err
		}
		before := d.State
		d.State, d.LastError = state, reason
		switch {
		case before == store.Pending && d.AttemptedAt != nil:
			return s.finish(ctx, tx, s.sms, d, s.now())
		case before != store.Sent && before != store.Lost:
			return nil
		}
		if err := tx.UpdateState(ctx, d); err != nil {
			return err
		}
		statuses := smsStatuses[state]
		return tx.Emit(ctx, smsReported(d, statuses[len(statuses)-1]))
	})
}

// receiptURL is the address to which the provider sends the receipts of a text message.
func (s *Service) receiptURL(d store.Delivery) string {
	return s.base.Host() + "/sms/receipts/" + d.TenantID.String() + "/" + d.ID.String()
}

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
	// placeholder stands for the code in the message of a challenge.
	placeholder = "${code}"
	// textTimeout bounds one attempt.
	textTimeout = 20 * time.Second
)

// errNoAnswer ends a text of which it is not known whether the provider accepted
// it.
var errNoAnswer = errors.New("there is no answer of the provider")

// errBusy is an answer of the provider that says that it did not accept the text,
// and may accept it soon.
var errBusy = errors.New("the provider is busy")

// deploymentError is a failure for a reason of this deployment.
type deploymentError struct{ error }

// textChannel is the channel of text messages. Each is sent at most once: the API of providers
// has no idempotency key, so the attempt is recorded before, and only an answer that says no,
// or a connection that failed, allows a retry. A code that is lost costs its user another
// challenge; one that is sent twice costs money and makes users expect codes that they did not
// request.
func (s *Service) textChannel() *channel {
	return &channel{
		kind: store.Text, name: "text", workers: s.cfg.TextSenders, timeout: textTimeout, wake: make(chan struct{}, 1),
		skip:      func() store.Skip { return store.Skip{Tenants: []id.ID{}} },
		newSender: func() (sender, error) { return &textSender{s, newProviderClient(s.cfg.Provider)}, nil },
		backoff:   textBackoff,
		label:     func(store.Delivery) string { return "challenge" },
		attempts:  s.instruments.texts,
		final:     s.finalTextState,
		onFinish:  reportText,
	}
}

// finalTextState allows a retry of those texts alone that the provider has
// certainly not accepted.
func (s *Service) finalTextState(outcome error) (state, result string) {
	var permanent permanentError
	var own deploymentError
	switch {
	case outcome == nil && s.cfg.Provider.Receipts:
		return store.Sent, "sent"
	case outcome == nil:
		return store.Delivered, "sent"
	case errors.Is(outcome, errUnwanted):
		return store.Unwanted, "unwanted"
	case errors.As(outcome, &permanent):
		return store.Failed, "failed"
	case errors.As(outcome, &own):
		return store.Broken, "broken"
	case isUnavailable(outcome), errors.Is(outcome, errBusy):
		return "", ""
	}
	return store.Lost, "lost"
}

// textSender sends texts through the provider.
type textSender struct {
	s        *Service
	provider *providerClient
}

// send sends the text of a delivery, unless its code has expired or it may have
// been sent before.
func (c *textSender) send(ctx context.Context, d store.Delivery) error {
	now := c.s.now()
	if d.AttemptedAt != nil {
		return fmt.Errorf("%w: the process that sent the request has ended", errNoAnswer)
	}
	if d.ExpiresAt == nil || !now.Before(*d.ExpiresAt) {
		return errUnwanted
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

func (c *textSender) close() { c.provider.close() }

func (c *textSender) abort() { c.provider.close() }

// textStatuses are the states that are reported to the mfa service for a text with
// a final state.
var textStatuses = map[string][]events.TextStatus{
	store.Sent:      {events.TextAccepted},
	store.Lost:      {events.TextAccepted}, // probably; a receipt may follow
	store.Delivered: {events.TextAccepted, events.TextDelivered},
	store.Failed:    {events.TextAccepted, events.TextFailed},
	store.Broken:    {events.TextUnsendable},
}

// reportText reports the final state of a text to the mfa service, in the
// transaction that finishes it.
func reportText(ctx context.Context, tx *store.Tx, d store.Delivery) error {
	for _, status := range textStatuses[d.State] {
		if err := tx.Emit(ctx, reported(d, status)); err != nil {
			return err
		}
	}
	return nil
}

func reported(d store.Delivery, status events.TextStatus) events.TextReported {
	return events.TextReported{Tenant: d.TenantID, Account: d.AccountID, Challenge: d.ChallengeID, Status: status}
}

// Receive records the state of a text that the provider reports by a signed
// receipt. Receipts may come late, twice, out of order, and before the answer to
// the request that they are about: the first with a final state counts. It returns
// apierr.Forbidden for one that the provider has not signed.
func (s *Service) Receive(ctx context.Context, at id.Ref, r Receipt) error {
	if !s.cfg.Provider.Receipts || !r.isSigned(s.cfg.Provider.Token, s.receiptURL(store.Delivery{TenantID: at.Tenant, ID: at.ID})) {
		return apierr.Forbidden.Because("the receipt is not signed by the provider")
	}
	state, reason := r.finalState()
	if state == "" {
		return nil
	}
	return s.store.Tx(ctx, func(tx *store.Tx) error {
		d, err := tx.LockText(ctx, at.Tenant, at.ID)
		if err != nil {
			return err
		}
		before := d.State
		d.State, d.LastError = state, reason
		switch {
		case before == store.Unsent && d.AttemptedAt != nil:
			return s.finish(ctx, tx, s.texts, d, s.now())
		case before != store.Sent && before != store.Lost:
			return nil
		}
		if err := tx.UpdateState(ctx, d); err != nil {
			return err
		}
		statuses := textStatuses[state]
		return tx.Emit(ctx, reported(d, statuses[len(statuses)-1]))
	})
}

// receiptURL is where the provider reports the state of a text.
func (s *Service) receiptURL(d store.Delivery) string {
	return s.base.Host() + "/sms/receipts/" + d.TenantID.String() + "/" + d.ID.String()
}

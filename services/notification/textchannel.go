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
	// textTimeout bounds one try.
	textTimeout = 20 * time.Second
)

// textBackoff gives the wait after the n-th failure of a text: 1 s, doubled up
// to 30 s. A code is good for five minutes, and its user waits.
func textBackoff(failures int) time.Duration {
	return min(time.Second<<min(failures-1, 20), 30*time.Second)
}

// errLost ends a text of which nobody knows whether the provider took it.
var errLost = errors.New("there is no answer of the provider")

// errBusy is an answer of the provider that says that it did not take the text,
// and may take it soon.
var errBusy = errors.New("the provider is busy")

// fault is a failure that is ours, or our operator's.
type fault struct{ error }

// textChannel is the way of text messages. Each is handed over at most once: a
// provider of the kind has no way to recognise a second request as the same, so
// that the attempt is noted before, and only an answer that says no, or a
// connection that was never made, lets it be tried again. A code that is lost
// costs its user another challenge; one that is sent twice costs money and
// teaches users that codes come unasked.
func (s *Service) textChannel() *channel {
	return &channel{
		kind: store.Text, name: "text", senders: s.cfg.TextSenders, timeout: textTimeout, wake: make(chan struct{}, 1),
		skip:    func() store.Skip { return store.Skip{Tenants: []id.ID{}} },
		carrier: func() (carrier, error) { return &textCarrier{s, newProviderClient(s.cfg.Provider)}, nil },
		backoff: textBackoff,
		label:   func(store.Delivery) string { return "challenge" },
		tries:   counter("doorward_notification_texts_total", "tries to send a text message, by result: sent, lost, unwanted, postponed, failed or broken"),
		ending:  s.textEnding,
		settled: tellOfText,
	}
}

// textEnding lets only those texts be tried again that the provider has
// certainly not taken.
func (s *Service) textEnding(outcome error) (state, result string) {
	var refused refusal
	var broken fault
	switch {
	case outcome == nil && s.cfg.Provider.Receipts:
		return store.Sent, "sent"
	case outcome == nil:
		return store.Delivered, "sent"
	case errors.Is(outcome, errUnwanted):
		return store.Unwanted, "unwanted"
	case errors.As(outcome, &refused):
		return store.Failed, "failed"
	case errors.As(outcome, &broken):
		return store.Broken, "broken"
	case isAway(outcome), errors.Is(outcome, errBusy):
		return "", ""
	}
	return store.Lost, "lost"
}

// textCarrier hands texts to the provider.
type textCarrier struct {
	s        *Service
	provider *providerClient
}

// carry sends the text of a delivery, unless its code is late or somebody may
// have sent it before.
func (c *textCarrier) carry(ctx context.Context, d store.Delivery) error {
	now := c.s.now()
	if d.AttemptedAt != nil {
		return fmt.Errorf("%w: who asked it is gone", errLost)
	}
	if d.ExpiresAt == nil || !now.Before(*d.ExpiresAt) {
		return errUnwanted
	}
	code, err := c.s.ring.Open(d.TokenSealed, events.CodePurpose(d.ChallengeID))
	if err != nil {
		return fault{fmt.Errorf("open the code: %w", err)}
	}
	if err := c.s.store.Tx(ctx, func(tx *store.Tx) error { return tx.NoteAttempt(ctx, d, now) }); err != nil {
		return fmt.Errorf("%w: note the attempt: %w", errAway, err)
	}
	return c.provider.send(ctx, d.Number, strings.ReplaceAll(d.Message, placeholder, code.Reveal()), c.s.receiptURL(d))
}

func (c *textCarrier) rest() { c.provider.rest() }

func (c *textCarrier) drop() { c.provider.rest() }

// newsOfText is what the mfa service is told of a text that ends in a state.
var newsOfText = map[string][]events.TextStatus{
	store.Sent:      {events.TextAccepted},
	store.Lost:      {events.TextAccepted}, // as far as anybody knows; a receipt may follow
	store.Delivered: {events.TextAccepted, events.TextDelivered},
	store.Failed:    {events.TextAccepted, events.TextFailed},
	store.Broken:    {events.TextUnsendable},
}

// tellOfText tells the mfa service how a text ended, in the transaction that
// ends it.
func tellOfText(ctx context.Context, tx *store.Tx, d store.Delivery) error {
	for _, news := range newsOfText[d.State] {
		if err := tx.Emit(ctx, reported(d, news)); err != nil {
			return err
		}
	}
	return nil
}

func reported(d store.Delivery, news events.TextStatus) events.TextReported {
	return events.TextReported{Tenant: d.TenantID, Account: d.AccountID, Challenge: d.ChallengeID, Status: news}
}

// Receive notes what the provider tells of a text by a signed receipt. Receipts
// may come late, twice, out of order, and before the answer to the request that
// they are about: the first that tells the end counts. It returns
// apierr.Forbidden for one that the provider has not signed.
func (s *Service) Receive(ctx context.Context, at id.Ref, r Receipt) error {
	if !s.cfg.Provider.Receipts || !r.isSigned(s.cfg.Provider.Token, s.receiptURL(store.Delivery{TenantID: at.Tenant, ID: at.ID})) {
		return apierr.Forbidden.Because("the receipt is not signed by the provider")
	}
	state, reason := r.end()
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
		news := newsOfText[state]
		return tx.Emit(ctx, reported(d, news[len(news)-1]))
	})
}

// receiptURL is where the provider tells what became of a text.
func (s *Service) receiptURL(d store.Delivery) string {
	return s.base.Host() + "/sms/receipts/" + d.TenantID.String() + "/" + d.ID.String()
}

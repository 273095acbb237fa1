package mfa

import (
	"context"
	"slices"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/mfa/store"
)

// transitions are the state machine of a challenge: the states that may follow each state
// (docs/interface/multi-factor.md#challenge-transitions). States without a line are final.
var transitions = map[string][]string{
	store.Created: {store.WaitingForProvider, store.Success, store.Failed, store.Expired, store.Error},
	store.WaitingForProvider: {store.WaitingForValidation, store.Undelivered, store.Success, store.Failed,
		store.Expired, store.Error},
	store.WaitingForValidation: {store.Success, store.Failed, store.Expired, store.Error},
	store.Failed:               {store.Success, store.Failed, store.Expired, store.Error},
}

// canTransition reports whether a challenge in the state from may move to the state to.
func canTransition(from, to string) bool { return slices.Contains(transitions[from], to) }

// isFinal reports whether no other state follows a state.
func isFinal(state string) bool { return len(transitions[state]) == 0 }

// SMSState is the delivery state of the text message with a challenge's code. Its values
// are the states that the challenge gets by it.
type SMSState string

// The delivery states of a text message, in their order.
const (
	SMSAccepted  SMSState = store.WaitingForProvider   // the SMS provider has accepted the message
	SMSDelivered SMSState = store.WaitingForValidation // the SMS provider has confirmed the delivery
	SMSFailed    SMSState = store.Undelivered          // the SMS provider could not deliver the message
	// the message could not be sent, for a reason of this deployment
	SMSUnsendable SMSState = store.Error
)

// UpdateSMSState sets the state of a challenge to the delivery state of its text message.
// A report that comes twice, out of order, or after the user's answer changes nothing.
func (s *Service) UpdateSMSState(ctx context.Context, at id.Ref, state SMSState) error {
	c, err := s.Challenge(ctx, at)
	if err != nil {
		return err
	}
	return s.lockedTx(ctx, at.Tenant, c.AccountID, func(tx *store.Tx) error {
		c, err := tx.LockChallenge(ctx, at.Tenant, at.ID, s.now())
		if err != nil || c.HasExpired || !canTransition(c.Status, string(state)) {
			return err
		}
		return s.setStatus(ctx, tx, &c, string(state))
	})
}

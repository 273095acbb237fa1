package mfa

import (
	"context"
	"slices"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/mfa/store"
)

// next is what can follow on each state of a challenge (resolutions, section
// 10.6). On a state without a line nothing follows.
var next = map[string][]string{
	store.Created:              {store.WaitingForProvider, store.Success, store.Failed, store.Expired, store.Error},
	store.WaitingForProvider:   {store.WaitingForValidation, store.Undelivered, store.Success, store.Failed, store.Expired, store.Error},
	store.WaitingForValidation: {store.Success, store.Failed, store.Expired, store.Error},
	store.Failed:               {store.Success, store.Failed, store.Expired, store.Error},
}

// follows tells whether a challenge can go from one state to another.
func follows(from, to string) bool { return slices.Contains(next[from], to) }

// isFinal tells whether a state is the last of a challenge.
func isFinal(state string) bool { return len(next[state]) == 0 }

// Delivery is what became of the message of a challenge.
type Delivery string

// What can become of a message, in its order.
const (
	HandedOver Delivery = store.WaitingForProvider   // the SMS gateway has it
	Delivered  Delivery = store.WaitingForValidation // the SMS gateway confirms that it arrived
	Refused    Delivery = store.Undelivered          // the SMS gateway could not deliver it
	Broken     Delivery = store.Error                // it could not be sent, for a reason of ours
)

// NoteDelivery writes down what became of the message of a challenge. News that
// come late, twice or out of order change nothing: the user may have answered
// before the gateway does.
func (s *Service) NoteDelivery(ctx context.Context, at id.Ref, news Delivery) error {
	c, err := s.Challenge(ctx, at)
	if err != nil {
		return err
	}
	return s.hold(ctx, at.Tenant, c.AccountID, func(tx *store.Tx) error {
		c, err := tx.LockChallenge(ctx, at.Tenant, at.ID, s.now())
		if err != nil || c.Late || !follows(c.Status, string(news)) {
			return err
		}
		return s.move(ctx, tx, &c, string(news))
	})
}

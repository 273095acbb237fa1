package mfa

import (
	"context"
	"slices"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/mfa/store"
)

// next lists the transitions of a challenge
// (docs/interface/multi-factor.md#challenge-transitions). States without a line are
// final.
var next = map[string][]string{
	store.Created:              {store.WaitingForProvider, store.Success, store.Failed, store.Expired, store.Error},
	store.WaitingForProvider:   {store.WaitingForValidation, store.Undelivered, store.Success, store.Failed, store.Expired, store.Error},
	store.WaitingForValidation: {store.Success, store.Failed, store.Expired, store.Error},
	store.Failed:               {store.Success, store.Failed, store.Expired, store.Error},
}

// follows reports whether a challenge can change from one state to another.
func follows(from, to string) bool { return slices.Contains(next[from], to) }

// isFinal reports whether a state is the last of a challenge.
func isFinal(state string) bool { return len(next[state]) == 0 }

// Delivery is the state of delivery of a challenge's message.
type Delivery string

// The states of delivery, in their order.
const (
	HandedOver Delivery = store.WaitingForProvider   // the SMS gateway has accepted it
	Delivered  Delivery = store.WaitingForValidation // the SMS gateway has confirmed it
	Refused    Delivery = store.Undelivered          // the SMS gateway could not deliver it
	Broken     Delivery = store.Error                // it could not be sent, by an error of this deployment
)

// UpdateDelivery sets the state of a challenge by the delivery of its message. A
// report that comes late, twice or out of order changes nothing: the user may answer
// before the gateway does.
func (s *Service) UpdateDelivery(ctx context.Context, at id.Ref, report Delivery) error {
	c, err := s.Challenge(ctx, at)
	if err != nil {
		return err
	}
	return s.hold(ctx, at.Tenant, c.AccountID, func(tx *store.Tx) error {
		c, err := tx.LockChallenge(ctx, at.Tenant, at.ID, s.now())
		if err != nil || c.Late || !follows(c.Status, string(report)) {
			return err
		}
		return s.move(ctx, tx, &c, string(report))
	})
}

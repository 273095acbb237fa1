package notification

import (
	"context"

	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/secure"
)

// Challenged hands an event to the service as its consumer does.
func (s *Service) Challenged(ctx context.Context, e events.Envelope, event events.ChallengeCreated) error {
	return s.challengeCreated(ctx, e, event)
}

// IsSigned reports whether a receipt is signed.
func (r SMSReceipt) IsSigned(token secure.Secret, address string) bool {
	return r.isSigned(token, address)
}

package oauth

import (
	"context"

	"github.com/doorward/doorward/pkg/events"
)

// AccountDeleted and ApplicationDeleted hand an event to the service as its
// consumer does.
func (s *Service) AccountDeleted(ctx context.Context, e events.Envelope, event events.AccountDeleted) error {
	return s.accountDeleted(ctx, e, event)
}

func (s *Service) ApplicationDeleted(ctx context.Context, e events.Envelope, event events.ApplicationDeleted) error {
	return s.applicationDeleted(ctx, e, event)
}

package oauth

import (
	"context"

	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/oauth/store"
)

// AccountDeleted and ApplicationDeleted hand an event to the service as its
// consumer does.
func (s *Service) AccountDeleted(ctx context.Context, e events.Envelope, event events.AccountDeleted) error {
	return s.accountDeleted(ctx, e, event)
}

func (s *Service) ApplicationDeleted(ctx context.Context, e events.Envelope, event events.ApplicationDeleted) error {
	return s.applicationDeleted(ctx, e, event)
}

// WebConfigOf gives what the grants see of an application's web config.
func (s *Service) WebConfigOf(ctx context.Context, tenant, application id.ID) (store.WebConfig, error) {
	return s.webConfig(ctx, tenant, application)
}

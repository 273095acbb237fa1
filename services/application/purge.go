package application

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/purge"
	"github.com/doorward/doorward/services/application/store"
)

// purgeInterval is the time between two purges.
const purgeInterval = time.Minute

// Purger is the worker that purges (retention, cleanup) until ctx ends.
func (s *Service) Purger(ctx context.Context) error {
	return purge.Every(purgeInterval, "purge of failed logins failed, retrying", s.Purge)(ctx)
}

// Purge deletes the expired counters of failed logins (throttle.go) and the expired rows of failed logins
// (failedlogin.go), once.
func (s *Service) Purge(ctx context.Context) error {
	for _, rows := range store.Expiring {
		if _, err := s.store.Purge(ctx, rows, s.now()); err != nil {
			return err
		}
	}
	return nil
}

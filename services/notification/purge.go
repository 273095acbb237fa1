package notification

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward/pkg/purge"
	"github.com/doorward/doorward/services/notification/store"
)

const (
	// deliveryRetention is how long the row of a delivery is kept after it is done.
	deliveryRetention = 30 * 24 * time.Hour
	// purgeInterval is the pause between two passes of the purge.
	purgeInterval = time.Hour
)

// Purger is the worker that purges (retention, cleanup) until ctx ends.
func (s *Service) Purger(ctx context.Context) error {
	return purge.Every(purgeInterval, "purge of old deliveries failed, retrying", s.Purge)(ctx)
}

// Purge does one pass: it deletes the deliveries that were done long ago, and the counts that have expired.
func (s *Service) Purge(ctx context.Context) error {
	_, err := s.store.Purge(ctx, store.DoneDeliveries, s.now().Add(-deliveryRetention))
	_, errOfUsage := s.store.Purge(ctx, store.ExpiredUsage, s.now())
	return errors.Join(err, errOfUsage)
}

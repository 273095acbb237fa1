package notification

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/purge"
	"github.com/doorward/doorward/services/notification/store"
)

const (
	// kept is how long a delivery can be looked up after it is done.
	kept = 30 * 24 * time.Hour
	// batch bounds what one transaction deletes.
	batch = 1000
	// sweepEvery is the time between two sweeps.
	sweepEvery = time.Hour
)

// Sweep is the worker that deletes old deliveries.
func (s *Service) Sweep(ctx context.Context) error {
	return purge.Every(sweepEvery, "purge of old deliveries failed, retrying", func(ctx context.Context) error {
		return s.store.EachShard(ctx, s.sweep)
	})(ctx)
}

func (s *Service) sweep(ctx context.Context) error {
	return purge.Drain(ctx, s.store.Tx, func(tx *store.Tx) (int64, error) { return tx.DeleteDeliveries(ctx, s.now().Add(-kept), batch) })
}

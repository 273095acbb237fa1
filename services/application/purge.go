package application

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/purge"
	"github.com/doorward/doorward/services/application/store"
)

const (
	// purgeInterval is the time between two purges.
	purgeInterval = time.Minute
	// purgeBatch bounds what one transaction deletes.
	purgeBatch = 1000
)

// Purger is the worker that deletes the expired counters of the login throttle.
func (s *Service) Purger(ctx context.Context) error {
	return purge.Every(purgeInterval, "purge of login counters failed, retrying", s.Purge)(ctx)
}

// Purge deletes them now.
func (s *Service) Purge(ctx context.Context) error {
	return s.store.EachShard(ctx, s.purge)
}

func (s *Service) purge(ctx context.Context) error {
	return purge.Drain(ctx, s.store.Tx, func(tx *store.Tx) (int64, error) { return tx.PurgeCounters(ctx, s.now(), purgeBatch) })
}

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
	// purgeBatch limits the rows that one transaction deletes.
	purgeBatch = 1000
)

// Purger is the worker that purges (retention, cleanup) until ctx ends.
func (s *Service) Purger(ctx context.Context) error {
	return purge.Every(purgeInterval, "purge of login counters failed, retrying", s.Purge)(ctx)
}

// Purge deletes the expired counters of failed logins (throttle.go), once.
func (s *Service) Purge(ctx context.Context) error {
	return purge.Drain(ctx, s.store.Tx, func(tx *store.Tx) (int64, error) { return tx.DeleteExpiredCounters(ctx, s.now(), purgeBatch) })
}

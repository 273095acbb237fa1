package application

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/purge"
	"github.com/doorward/doorward/services/application/store"
)

const (
	// purgeEvery is the pause between two purges.
	purgeEvery = time.Minute
	// batch bounds what one transaction deletes.
	batch = 1000
)

// Purger is the worker that deletes the tallies of logins that nobody asks for
// any more.
func (s *Service) Purger(ctx context.Context) error {
	return purge.Every(purgeEvery, "tallies of logins were not purged", s.Purge)(ctx)
}

// Purge deletes them now.
func (s *Service) Purge(ctx context.Context) error {
	_, err := purge.Drain(ctx, s.tx, func(tx *store.Tx) (int64, error) { return tx.PurgeTallies(ctx, s.now(), batch) })
	return err
}

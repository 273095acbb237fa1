package application

import (
	"context"
	"log/slog"
	"time"

	"github.com/doorward/doorward/pkg/telemetry"
	"github.com/doorward/doorward/services/application/store"
)

const (
	// purgeEvery is the pause between two purges.
	purgeEvery = time.Minute
	// batch bounds what one transaction deletes.
	batch = 1000
)

// Purger is the worker that deletes the tallies of logins that nobody asks for
// any more, until ctx ends. A purge that fails is made up for by the next.
// Nothing depends on it but the size of the table.
func (s *Service) Purger(ctx context.Context) error {
	ctx = telemetry.Quiet(ctx)
	ticker := time.NewTicker(purgeEvery)
	defer ticker.Stop()
	for {
		if err := s.Purge(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "tallies of logins were not purged", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Purge deletes in batches until one finds nothing. Several replicas may do it
// at once: each takes rows that the others have not.
func (s *Service) Purge(ctx context.Context) error {
	for {
		var deleted int64
		err := s.tx(ctx, func(tx *store.Tx) (err error) {
			deleted, err = tx.PurgeTallies(ctx, s.now(), batch)
			return err
		})
		if err != nil || deleted == 0 {
			return err
		}
	}
}

package directory

import (
	"context"
	"log/slog"
	"time"

	"github.com/doorward/doorward/pkg/telemetry"
	"github.com/doorward/doorward/services/directory/store"
)

const (
	// purgeEvery is the pause between two purges.
	purgeEvery = time.Hour
	// batch bounds what one transaction deletes.
	batch = 1000
)

// Purge is the worker that deletes expired password resets until ctx ends. A
// purge that fails is made up for by the next. Nothing depends on it but the size
// of the table.
func (s *Service) Purge(ctx context.Context) error {
	ctx = telemetry.Quiet(ctx)
	ticker := time.NewTicker(purgeEvery)
	defer ticker.Stop()
	for {
		if err := s.purge(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "expired password resets were not purged", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// purge deletes what has expired, in batches that hold no lock for long.
func (s *Service) purge(ctx context.Context) error {
	for {
		var deleted int64
		err := s.tx(ctx, func(tx *store.Tx) (err error) {
			deleted, err = tx.PurgeResets(ctx, s.now(), batch)
			return err
		})
		if err != nil || deleted < batch {
			return err
		}
	}
}

package directory

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/doorward/doorward/pkg/telemetry"
	"github.com/doorward/doorward/services/directory/store"
)

const (
	// purgeEvery is the pause between two purges.
	purgeEvery = time.Minute
	// settling is how long after the deletion of a directory no account of it can
	// come any more: longer than a request may take.
	settling = time.Minute
	// batch bounds what one transaction deletes.
	batch = 1000
)

// Purge is the worker that deletes what nobody sees any more until ctx ends:
// expired password resets, and what deleted directories have left. A purge that
// fails is made up for by the next. Nothing depends on it but the size of the
// tables.
func (s *Service) Purge(ctx context.Context) error {
	ctx = telemetry.Quiet(ctx)
	ticker := time.NewTicker(purgeEvery)
	defer ticker.Stop()
	for {
		if err := s.purge(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "what is gone was not purged", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// purge deletes in batches that hold no lock for long.
func (s *Service) purge(ctx context.Context) error {
	return errors.Join(
		s.drain(ctx, func(tx *store.Tx) (int64, error) { return tx.PurgeResets(ctx, s.now(), batch) }),
		s.drain(ctx, func(tx *store.Tx) (int64, error) { return tx.RemoveLeft(ctx, batch, s.now().Add(-settling)) }),
	)
}

// drain deletes batches until one finds nothing.
func (s *Service) drain(ctx context.Context, remove func(*store.Tx) (int64, error)) error {
	for {
		var deleted int64
		err := s.tx(ctx, func(tx *store.Tx) (err error) {
			deleted, err = remove(tx)
			return err
		})
		if err != nil || deleted == 0 {
			return err
		}
	}
}

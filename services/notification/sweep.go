package notification

import (
	"context"
	"log/slog"
	"time"

	"github.com/doorward/doorward/pkg/telemetry"
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

// Sweep is the worker that deletes old deliveries until ctx ends.
func (s *Service) Sweep(ctx context.Context) error {
	ctx = telemetry.Quiet(ctx)
	for {
		if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "old deliveries are kept", "error", err.Error())
		}
		if wait(ctx, sweepEvery) != nil {
			return nil
		}
	}
}

// sweep deletes what is old, in batches that hold no lock for long.
func (s *Service) sweep(ctx context.Context) error {
	for {
		var deleted int64
		err := s.store.Tx(ctx, func(tx *store.Tx) (err error) {
			deleted, err = tx.DeleteDeliveries(ctx, s.now().Add(-kept), batch)
			return err
		})
		if err != nil || deleted < batch {
			return err
		}
	}
}

package directory

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward/pkg/purge"
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

// Purge is the worker that deletes what nobody sees any more: expired password
// resets, and what deleted directories have left.
func (s *Service) Purge(ctx context.Context) error {
	return purge.Every(purgeEvery, "what is gone was not purged", s.purge)(ctx)
}

func (s *Service) purge(ctx context.Context) error {
	_, resets := purge.Drain(ctx, s.tx, func(tx *store.Tx) (int64, error) { return tx.PurgeResets(ctx, s.now(), batch) })
	_, left := purge.Drain(ctx, s.tx, func(tx *store.Tx) (int64, error) { return tx.RemoveLeft(ctx, batch, s.now().Add(-settling)) })
	return errors.Join(resets, left)
}

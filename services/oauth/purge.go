package oauth

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/purge"
	"github.com/doorward/doorward/services/oauth/store"
)

// purgeInterval is the time between two purges.
const purgeInterval = time.Minute

// Purger is the worker that purges (retention, cleanup) until ctx ends.
func (s *Service) Purger(ctx context.Context) error { return s.purger(purgeInterval)(ctx) }

func (s *Service) purger(interval time.Duration) func(context.Context) error {
	return purge.Every(interval, "purge failed, retrying", func(ctx context.Context) error {
		_, err := s.Purge(ctx)
		return err
	})
}

// Purge deletes expired rows (tokens, nonces, used assertions) in batches, once, and
// returns their number. Replicas may purge concurrently: each deletes rows that the others
// have not locked. Expired rows have no effect: a purge only limits the size of the tables.
func (s *Service) Purge(ctx context.Context) (total int64, err error) {
	before := s.now().Add(-clockSkew) // a token may still be valid by the clock of another process
	for _, table := range store.ExpiringTables {
		n, err := s.purgeTable(ctx, table, before)
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// purgeTable deletes the rows of a table that expired before a time. Each batch is a
// transaction of its own, and continues from the last expiry of the batch before it.
func (s *Service) purgeTable(ctx context.Context, table store.ExpiringTable, before time.Time) (total int64, err error) {
	done := store.PurgeResult{Rows: deleteBatchSize}
	for err == nil && done.Rows == deleteBatchSize {
		err = s.store.Tx(ctx, func(tx *store.Tx) (err error) {
			done, err = tx.DeleteExpired(ctx, table, done.Last, before, deleteBatchSize)
			return err
		})
		total += done.Rows
	}
	return total, err
}

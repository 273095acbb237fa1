package oauth

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/purge"
	"github.com/doorward/doorward/services/oauth/store"
)

// PurgeEvery is the interval of purges.
const PurgeEvery = time.Minute

// Purge deletes what has expired, in batches, and returns the number of rows.
// Replicas may do it concurrently: each takes rows that the others have not locked.
// Only the size of the tables depends on it.
func (s *Service) Purge(ctx context.Context) (total int64, err error) {
	before := s.now().Add(-skew) // by the clock of another process it may be valid still
	for _, table := range store.Expired {
		n, err := s.purge(ctx, table, before)
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// purge deletes the rows of a table that expired before a time. Each batch is a
// transaction of its own, and begins where the one before it ended.
func (s *Service) purge(ctx context.Context, table store.Expiring, before time.Time) (total int64, err error) {
	done := store.Purged{Rows: batch}
	for err == nil && done.Rows == batch {
		err = s.store.Tx(ctx, func(tx *store.Tx) (err error) {
			done, err = tx.Purge(ctx, table, done.Last, before, batch)
			return err
		})
		total += done.Rows
	}
	return total, err
}

// Purger returns the worker that purges at an interval.
func (s *Service) Purger(every time.Duration) func(context.Context) error {
	return purge.Every(every, "purge failed, retrying", func(ctx context.Context) error {
		return s.store.EachShard(ctx, func(ctx context.Context) error {
			_, err := s.Purge(ctx)
			return err
		})
	})
}

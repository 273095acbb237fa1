package oauth

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/purge"
	"github.com/doorward/doorward/services/oauth/store"
)

// PurgeEvery is the pause between two purges.
const PurgeEvery = time.Minute

// Purge deletes what has expired: tokens, and the traces of assertions and of
// signed requests. It does so in bounded batches, and gives the number of rows.
// Several replicas may do it at once: each takes rows that the others have not.
// Nothing depends on it but the size of the tables.
func (s *Service) Purge(ctx context.Context) (total int64, err error) {
	before := s.now().Add(-skew) // still good by the clock of another process, perhaps
	for _, table := range store.Expired {
		n, err := s.purge(ctx, table, before)
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// purge empties a table of what had expired before a time. Each batch is a
// transaction of its own, and begins where the one before it ended.
func (s *Service) purge(ctx context.Context, table store.Expiring, before time.Time) (total int64, err error) {
	done := store.Purged{Rows: batch}
	for err == nil && done.Rows == batch {
		err = s.tx(ctx, func(tx *store.Tx) (err error) {
			done, err = tx.Purge(ctx, table, done.Last, before, batch)
			return err
		})
		total += done.Rows
	}
	return total, err
}

// Purger makes the worker that purges at every pause.
func (s *Service) Purger(every time.Duration) func(context.Context) error {
	return purge.Every(every, "what has expired was not purged", func(ctx context.Context) error {
		_, err := s.Purge(ctx)
		return err
	})
}

package oauth

import (
	"context"
	"log/slog"
	"time"

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

// Purger purges until ctx ends. A purge that fails is made up for by the next.
func (s *Service) Purger(every time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			if _, err := s.Purge(ctx); err != nil && ctx.Err() == nil {
				slog.WarnContext(ctx, "what has expired was not purged", "error", err.Error())
			}
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
			}
		}
	}
}

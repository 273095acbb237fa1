package oauth

import (
	"context"
	"log/slog"
	"time"

	"github.com/doorward/doorward/services/oauth/store"
)

// PurgeEvery is the pause between two purges.
const PurgeEvery = time.Minute

// Purge deletes the tokens that have expired and the nonces that are forgotten,
// in bounded batches, and gives their number. Several replicas may do it at once: each takes rows that the
// others have not. Nothing depends on it but the size of the tables.
func (s *Service) Purge(ctx context.Context) (total int64, err error) {
	before := s.now().Add(-skew) // still good by the clock of another process, perhaps
	for _, kind := range store.Kinds {
		n, err := s.drain(ctx, func(tx *store.Tx) (int64, error) { return tx.Purge(ctx, kind, before, batch) })
		total += n
		if err != nil {
			return total, err
		}
	}
	n, err := s.drain(ctx, func(tx *store.Tx) (int64, error) { return tx.PurgeNonces(ctx, s.now().Add(-nonceMemory), batch) })
	return total + n, err
}

// Purger purges until ctx ends. A purge that fails is made up for by the next.
func (s *Service) Purger(every time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			if _, err := s.Purge(ctx); err != nil && ctx.Err() == nil {
				slog.WarnContext(ctx, "expired tokens and nonces were not purged", "error", err.Error())
			}
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
			}
		}
	}
}

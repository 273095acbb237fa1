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

// Purge deletes expired rows (tokens, nonces, used assertions), once, and returns their number. Expired
// rows have no effect: a purge only limits the size of the tables.
func (s *Service) Purge(ctx context.Context) (total int64, err error) {
	before := s.now().Add(-clockSkew) // a token may still be valid by the clock of another process
	for _, rows := range store.ExpiringRows {
		n, err := s.store.Purge(ctx, rows, before)
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

package mfa

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward/pkg/purge"
	"github.com/doorward/doorward/services/mfa/store"
)

const (
	// PurgeEvery is the pause between two purges.
	PurgeEvery = time.Minute
	// batch is how many rows one transaction deletes at most.
	batch = 1000
	// challengeAge is how long a challenge can be read.
	challengeAge = 30 * 24 * time.Hour
	// requestsEnd is how long after the deletion of an account no request that has
	// found it can still run. The request timeout is 15 seconds.
	requestsEnd = time.Minute
)

// Purge is the worker that deletes old challenges, counters whose window has ended,
// and rows that were created for an account while it was deleted.
func (s *Service) Purge(ctx context.Context) error {
	return purge.Every(PurgeEvery, "purge failed, retrying", func(ctx context.Context) error {
		return s.store.EachShard(ctx, s.purge)
	})(ctx)
}

func (s *Service) purge(ctx context.Context) error {
	now := s.now()
	return errors.Join(
		s.finishRemovals(ctx, now.Add(-requestsEnd)),
		purge.Drain(ctx, s.store.Tx, func(tx *store.Tx) (int64, error) { return tx.PurgeChallenges(ctx, now.Add(-challengeAge), batch) }),
		purge.Drain(ctx, s.store.Tx, func(tx *store.Tx) (int64, error) { return tx.PurgeCounts(ctx, now, batch) }),
	)
}

// finishRemovals repeats the deletion of accounts. Replicas may do it concurrently.
func (s *Service) finishRemovals(ctx context.Context, before time.Time) error {
	for {
		removals, err := s.store.Removals(ctx, before, batch)
		if err != nil || len(removals) == 0 {
			return err
		}
		for _, r := range removals {
			if err := s.removeAccounts(ctx, r); err != nil {
				return err
			}
			if err := s.store.Tx(ctx, func(tx *store.Tx) error { return tx.DeleteRemoval(ctx, r) }); err != nil {
				return err
			}
		}
	}
}

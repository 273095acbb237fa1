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
	// batch bounds what one transaction deletes.
	batch = 1000
	// challengeAge is how long a challenge can be read.
	challengeAge = 30 * 24 * time.Hour
	// settled is how long after the removal of an account no request can be at
	// work that has found it there. Requests end after 15 seconds.
	settled = time.Minute
)

// Purge is the worker that deletes what nobody needs any more: old challenges,
// counts whose window is over, and what was made for accounts at the moment of
// their deletion.
func (s *Service) Purge(ctx context.Context) error {
	return purge.Every(PurgeEvery, "what is over was not purged", s.purge)(ctx)
}

func (s *Service) purge(ctx context.Context) error {
	now := s.now()
	return errors.Join(
		s.finishRemovals(ctx, now.Add(-settled)),
		s.drain(ctx, func(tx *store.Tx) (int64, error) { return tx.PurgeChallenges(ctx, now.Add(-challengeAge), batch) }),
		s.drain(ctx, func(tx *store.Tx) (int64, error) { return tx.PurgeCounts(ctx, now, batch) }),
	)
}

// finishRemovals removes what has been made for accounts that were going. Two
// replicas may do it at once.
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

// drain deletes batches until one finds nothing.
func (s *Service) drain(ctx context.Context, remove func(*store.Tx) (int64, error)) error {
	_, err := purge.Drain(ctx, s.store.Tx, remove)
	return err
}

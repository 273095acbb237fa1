package mfa

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/purge"
	"github.com/doorward/doorward/services/mfa/store"
)

const (
	// purgeInterval is the pause between two passes of the purge.
	purgeInterval = time.Minute
	// purgeBatch is how many rows one transaction deletes at most.
	purgeBatch = 1000
	// challengeAge is how long a challenge can be read.
	challengeAge = 30 * 24 * time.Hour
	// removalRepeatDelay is the time from the deletion of an account to its repetition. No
	// request that found the account before its deletion still runs then: the request
	// timeout is 15 seconds.
	removalRepeatDelay = time.Minute
)

// Purger is the worker that purges (retention, cleanup) until ctx ends.
func (s *Service) Purger(ctx context.Context) error {
	return purge.Every(purgeInterval, "purge failed, retrying", s.Purge)(ctx)
}

// Purge does one pass: it deletes old challenges, counters whose window has ended, and rows
// that a request added for an account while the account was deleted.
func (s *Service) Purge(ctx context.Context) error {
	now := s.now()
	expired := func(rows store.Expiring, age time.Duration) error {
		_, err := s.store.Purge(ctx, rows, now.Add(-age))
		return err
	}
	return errors.Join(
		s.repeatRemovals(ctx, now.Add(-removalRepeatDelay)),
		expired(store.AgingChallenges, challengeAge),
		expired(store.EndedCounts, 0),
	)
}

// repeatRemovals deletes what requests have added for accounts that were deleted before a
// time. Several replicas may run it at once.
func (s *Service) repeatRemovals(ctx context.Context, before time.Time) error {
	for {
		removals, err := s.store.Removals(ctx, before, purgeBatch)
		if err != nil || len(removals) == 0 {
			return err
		}
		owners := map[id.ID][]id.ID{}
		for _, r := range removals {
			owners[r.TenantID] = append(owners[r.TenantID], r.OwnerID)
		}
		for tenant, removed := range owners {
			ctx := caller.WithTenant(ctx, tenant)
			if err := s.removeAccounts(ctx, tenant, removed); err != nil {
				return err
			}
			if err := s.store.Tx(ctx, func(tx *store.Tx) error {
				return tx.DeleteRemovals(ctx, tenant, removed)
			}); err != nil {
				return err
			}
		}
	}
}

package idsite

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward/pkg/purge"
	"github.com/doorward/doorward/services/idsite/store"
)

// purgeInterval is the pause between two passes of the purge.
const purgeInterval = time.Minute

// endedFlowRetention is how long the row of a flow is kept after its end: as long as its signed
// request is valid, so that the request cannot begin another flow (replay).
const endedFlowRetention = maxRequestAge + 2*clockSkew

// purgeBatch is how many rows one transaction deletes at most.
const purgeBatch = 1000

// Purger is the worker that purges (retention, cleanup) until ctx ends.
func (s *Service) Purger(ctx context.Context) error {
	return purge.Every(purgeInterval, "purge of ended hosted logins failed, retrying", s.Purge)(ctx)
}

// Purge does one pass: it deletes the flows, logins at providers and sessions that have ended.
func (s *Service) Purge(ctx context.Context) error {
	now := s.now()
	return errors.Join(
		purge.Drain(ctx, s.store.Tx, func(tx *store.Tx) (int64, error) {
			return tx.DeleteExpiredFlows(ctx, now.Add(-endedFlowRetention), purgeBatch)
		}),
		purge.Drain(ctx, s.store.Tx, func(tx *store.Tx) (int64, error) { return tx.DeleteExpiredProviderLogins(ctx, now, purgeBatch) }),
		purge.Drain(ctx, s.store.Tx, func(tx *store.Tx) (int64, error) { return tx.DeleteExpiredSessions(ctx, now, purgeBatch) }),
	)
}

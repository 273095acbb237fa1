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

// Purger is the worker that purges (retention, cleanup) until ctx ends.
func (s *Service) Purger(ctx context.Context) error {
	return purge.Every(purgeInterval, "purge of ended hosted logins failed, retrying", s.Purge)(ctx)
}

// Purge does one pass: it deletes the flows, logins at providers and sessions that have ended, with the
// clients of these.
func (s *Service) Purge(ctx context.Context) error {
	expired := func(rows store.Expiring, age time.Duration) error {
		_, err := s.store.Purge(ctx, rows, s.now().Add(-age))
		return err
	}
	return errors.Join(
		expired(store.ExpiringFlows, endedFlowRetention),
		expired(store.ExpiringProviderLogins, 0),
		expired(store.ExpiringSessions, 0),
		expired(store.ExpiringSessionClients, 0),
	)
}

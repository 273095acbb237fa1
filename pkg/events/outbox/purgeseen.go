package outbox

import (
	"context"
	"log/slog"
	"time"

	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/telemetry"
)

const (
	// seenRetention is how long an event is recognised as handled: longer than the retention
	// of a broker, which could deliver it again.
	seenRetention = 30 * 24 * time.Hour
	purgeInterval = time.Hour
	purgeBatch    = 5000
)

// PurgeSeen is the worker that deletes rows of seen_events after seenRetention, in batches, until ctx
// ends. Several replicas may run it.
func (o *Outbox) PurgeSeen(ctx context.Context) error {
	ctx = telemetry.Untraced(ctx)
	for {
		if err := o.purgeSeenBatches(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "purge of seen events failed, retrying", "topic", o.topic, "error", err.Error())
		}
		if wait(ctx, purgeInterval) != nil {
			return nil
		}
	}
}

func (o *Outbox) purgeSeenBatches(ctx context.Context) error {
	for {
		n, err := pg.Exec(ctx, o.db, `DELETE FROM seen_events
			USING (SELECT tenant_id, event_id FROM seen_events WHERE seen_at < $1 LIMIT $2) AS old
			WHERE seen_events.tenant_id = old.tenant_id AND seen_events.event_id = old.event_id`, o.now().Add(-seenRetention), purgeBatch)
		if err != nil || n < purgeBatch {
			return err
		}
	}
}

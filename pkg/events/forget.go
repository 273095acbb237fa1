package events

import (
	"context"
	"log/slog"
	"time"

	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/telemetry"
)

const (
	// memory is how long an event is remembered as seen: longer than a broker
	// keeps what it could deliver again.
	memory      = 30 * 24 * time.Hour
	forgetEvery = time.Hour
	forgetBatch = 5000
)

// Forget is the worker that drops what was seen long ago, in bounded batches,
// until ctx ends. It is harmless in several replicas.
func (o *Outbox) Forget(ctx context.Context) error {
	ctx = telemetry.Quiet(ctx)
	for {
		if err := o.forget(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "seen events were not forgotten", "topic", o.topic, "error", err.Error())
		}
		if pause(ctx, forgetEvery) != nil {
			return nil
		}
	}
}

func (o *Outbox) forget(ctx context.Context) error {
	for {
		n, err := pg.Exec(ctx, o.db, `DELETE FROM seen_events USING (SELECT tenant_id, event_id FROM seen_events WHERE seen_at < $1 LIMIT $2) AS old
			WHERE seen_events.tenant_id = old.tenant_id AND seen_events.event_id = old.event_id`, o.now().Add(-memory), forgetBatch)
		if err != nil || n < forgetBatch {
			return err
		}
	}
}

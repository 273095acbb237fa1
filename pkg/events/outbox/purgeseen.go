package outbox

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/purge"
	"github.com/doorward/doorward/pkg/purge/purgesql"
)

const (
	// seenRetention is how long an event is recognised as handled: longer than the retention
	// of a broker, which could deliver it again.
	seenRetention = 30 * 24 * time.Hour
	purgeInterval = time.Hour
)

// PurgeSeen is the worker that deletes rows of seen_events after seenRetention, until ctx ends. Several
// replicas may run it.
func (o *Outbox) PurgeSeen(ctx context.Context) error {
	return purge.Every(purgeInterval, "purge of seen events failed, retrying", o.purgeSeen)(ctx)
}

func (o *Outbox) purgeSeen(ctx context.Context) error {
	seen := purgesql.Rows{Table: "seen_events", Time: "seen_at"}
	_, err := purgesql.Expired(ctx, o.db.InTx, seen, o.now().Add(-seenRetention))
	return err
}

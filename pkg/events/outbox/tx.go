// Package outbox takes events from the service that knows of them to the services
// that act on them. What happened and its event commit together, in the transactional
// outbox (tx.go). The relay (relay.go) signs it (signature.go) and sends it to Kafka.
// A consumer (consumer.go), member of a consumer group (group.go), handles it; its
// effect happens once however often it is delivered. Package events lists the events.
//
// Messages that wait in Kafka when DOORWARD_INTERNAL_SECRET is changed at once (not as
// docs/operations.md#rotation-of-the-internal-secret says), or that a release without
// signatures has sent, become dead letters: change it, or upgrade, when
// doorward_events_lag is 0. What waits in an outbox is not affected.
package outbox

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/telemetry"
)

//go:embed migrations/*.sql
var files embed.FS

// Migrations makes the outbox and the list of seen events in a service's schema;
// every service that emits or consumes passes it to pg.Open.
func Migrations() fs.FS { return pg.Embedded(files) }

// Outbox runs a service's writing transactions. What they emit is committed
// with their rows and sent to Kafka afterwards.
type Outbox struct {
	db    *pg.DB
	topic string
	now   func() time.Time
	wake  map[string]chan struct{} // of the relays, by shard

	handlerTimeout, lagInterval time.Duration // the constants, which tests shorten
}

// New makes the outbox of a service.
func New(db *pg.DB, service string, now func() time.Time) *Outbox {
	o := &Outbox{
		db: db, topic: Topic(service), now: now, wake: map[string]chan struct{}{},
		handlerTimeout: handlerTimeout, lagInterval: lagInterval,
	}
	for _, shard := range db.ShardNames() {
		o.wake[shard] = make(chan struct{}, 1)
	}
	return o
}

// Tx is a transaction that can emit events.
type Tx struct {
	*pg.Tx
	outbox  *Outbox
	emitted []events.Envelope
}

// InTx runs fn in a transaction and commits. What fn emitted is written to the audit
// log then (docs/operations.md#audit-log), and the relay wakes.
func (o *Outbox) InTx(ctx context.Context, fn func(*Tx) error) error {
	var tx *Tx
	err := o.db.InTx(ctx, func(inner *pg.Tx) error {
		tx = &Tx{Tx: inner, outbox: o}
		return fn(tx)
	})
	if err != nil {
		return err
	}
	for _, e := range tx.emitted {
		telemetry.Audit(caller.WithTenant(ctx, e.Tenant), "event", slog.String("event", e.Type), slog.String("id", e.Subject.String()))
	}
	if len(tx.emitted) > 0 {
		select {
		case o.wake[tx.Shard()] <- struct{}{}:
		default:
		}
	}
	return nil
}

// Emit puts an event into the outbox, with the next query or the commit.
func (t *Tx) Emit(ctx context.Context, event events.Event) error {
	e, err := events.Wrap(ctx, event, t.outbox.now())
	if err != nil {
		return fmt.Errorf("write the event %T: %w", event, err)
	}
	body, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("write the event %T: %w", event, err)
	}
	t.Queue(`INSERT INTO outbox (tenant_id, id, topic, key, envelope) VALUES ($1, $2, $3, $4, $5)`,
		e.Tenant, e.ID, t.outbox.topic, e.Subject, body)
	t.emitted = append(t.emitted, e)
	return nil
}

// Seen makes a handler idempotent (effectively-once): it records that the event is applied in
// this transaction, and is true when an earlier delivery was applied. Then there is nothing to
// do.
func (t *Tx) Seen(ctx context.Context, e events.Envelope) (bool, error) {
	n, err := pg.Exec(ctx, t, `INSERT INTO seen_events (tenant_id, event_id, seen_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
		e.Tenant, e.ID, t.outbox.now())
	return n == 0, err
}

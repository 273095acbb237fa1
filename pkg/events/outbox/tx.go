// Package outbox publishes and consumes events between services (message bus: Kafka). A change
// and its event are committed in one transaction, in the transactional outbox (tx.go). The relay
// (relay.go) signs the event (signature.go) and sends it to Kafka (producer: kafka.go). A consumer
// (consumer.go), a member of a consumer group (group.go), handles it: it is delivered at least once,
// and has its effect once. Retries are in retry.go, dead letters in deadletters.go, the types of
// events in package events.
//
// Messages become dead letters if they wait in Kafka while DOORWARD_INTERNAL_SECRET is changed at
// once (not as docs/operations.md#rotation-of-the-internal-secret says), or if a release
// without signatures has sent them: change the secret, or upgrade, when doorward_events_lag is 0.
// Events that wait in an outbox are not affected.
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

// Outbox runs the transactions of a service that write. The events that they emit are committed
// with their rows and sent to Kafka afterwards.
type Outbox struct {
	db    *pg.DB
	topic string
	now   func() time.Time
	wake  chan struct{} // wakes the relay

	handlerTimeout, lagInterval time.Duration // the constants, which tests replace
}

// New makes the outbox of a service.
func New(db *pg.DB, service string, now func() time.Time) *Outbox {
	return &Outbox{
		db: db, topic: Topic(service), now: now, wake: make(chan struct{}, 1),
		handlerTimeout: handlerTimeout, lagInterval: lagInterval,
	}
}

// Tx is a transaction that can emit events.
type Tx struct {
	*pg.Tx
	outbox  *Outbox
	emitted []events.Envelope
}

// InTx runs fn in a transaction and commits it. Then it writes the emitted events to the audit
// log (docs/operations.md#audit-log), and wakes the relay.
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
		telemetry.Audit(caller.WithTenant(ctx, e.Tenant), "event", slog.String("event", e.Type),
			slog.String("id", e.Subject.String()))
	}
	if len(tx.emitted) > 0 {
		select {
		case o.wake <- struct{}{}:
		default:
		}
	}
	return nil
}

// Emit publishes an event: it puts the event into the outbox, with the next query or the commit of
// the transaction. The relay sends it to Kafka after the commit (relay.go).
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

// Seen makes a handler idempotent (deduplication, effectively once): it records that the event is
// applied in this transaction. It returns true if the event was applied before: then the
// handler must do nothing.
func (t *Tx) Seen(ctx context.Context, e events.Envelope) (bool, error) {
	n, err := pg.Exec(ctx, t,
		`INSERT INTO seen_events (tenant_id, event_id, seen_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
		e.Tenant, e.ID, t.outbox.now())
	return n == 0, err
}

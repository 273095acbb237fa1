package events

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/segmentio/kafka-go"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/telemetry"
)

const (
	relayBatch = 500
	// relayPoll bounds how long an event waits that another replica committed;
	// those of the relay's own process wake it at once.
	relayPoll = 250 * time.Millisecond
)

// Relay takes a service's outbox to Kafka, in its order. Any number of
// replicas may run it: the holder of an advisory lock works and the others
// wait for it to go. An entry is deleted after all replicas of the broker have
// it; a crash between the two sends it again, under the same event id.
func (o *Outbox) Relay(cfg Config) func(context.Context) error {
	return func(ctx context.Context) error {
		sent, err := otel.Meter(o.topic).Int64Counter("doorward_events_relayed_total", metric.WithDescription("events that the broker acknowledged"))
		if err != nil {
			return err
		}
		ctx = telemetry.Quiet(ctx)
		r := &relay{outbox: o, cfg: cfg, writer: newWriter(cfg), sent: sent}
		defer func() { _ = r.writer.Close() }()
		persist(ctx, "events wait in the outbox", o.topic, r.lead)
		return nil
	}
}

type relay struct {
	outbox *Outbox
	cfg    Config
	writer *kafka.Writer
	sent   metric.Int64Counter
}

// lead waits for the lock and relays until something fails.
func (r *relay) lead(ctx context.Context) error {
	conn, err := r.outbox.db.Acquire(ctx)
	if err != nil {
		return pg.Error(err)
	}
	defer conn.Release()
	if err := r.lock(ctx, conn); err != nil {
		return err
	}
	defer func() {
		// The lock belongs to the session: closing it lets another replica lead.
		_ = conn.Conn().Close(context.WithoutCancel(ctx))
	}()
	if err := r.createTopics(ctx); err != nil {
		return err
	}
	for {
		n, err := r.batch(ctx, conn)
		if err != nil {
			return err
		}
		if n == relayBatch {
			continue
		}
		timer := time.NewTimer(relayPoll)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-r.outbox.wake:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// createTopics makes the topics that the relay writes to, with a client that goes
// afterwards: one that stays asks for the topics' partitions again and again.
func (r *relay) createTopics(ctx context.Context) error {
	topics := []string{r.outbox.topic, dead(r.outbox.topic)}
	client, leave := newClient(r.cfg, topics)
	defer leave()
	return createTopics(ctx, client, r.cfg, topics...)
}

func (r *relay) lock(ctx context.Context, conn *pgxpool.Conn) error {
	for {
		leads, err := pg.Value[bool](ctx, conn, "SELECT pg_try_advisory_lock(hashtextextended('doorward/relay/' || current_schema(), 0))")
		if err != nil || leads {
			return err
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

type waiting struct {
	TenantID id.ID
	ID       id.ID
	Topic    string
	Key      id.ID
	Envelope []byte
}

// batch sends the oldest entries and deletes them.
func (r *relay) batch(ctx context.Context, conn *pgxpool.Conn) (int, error) {
	entries, err := pg.All[waiting](ctx, conn, `SELECT tenant_id, id, topic, key, envelope FROM outbox ORDER BY seq LIMIT $1`, relayBatch)
	if err != nil || len(entries) == 0 {
		return 0, err
	}
	messages := make([]kafka.Message, len(entries))
	tenants, ids := make([]id.ID, len(entries)), make([]id.ID, len(entries))
	for i, e := range entries {
		messages[i] = kafka.Message{Topic: e.Topic, Key: []byte(e.Key.String()), Value: e.Envelope}
		tenants[i], ids[i] = e.TenantID, e.ID
	}
	end := traced(ctx, entries)
	err = r.writer.WriteMessages(ctx, messages...)
	end()
	if err != nil {
		return 0, fmt.Errorf("send %d events to Kafka: %w", len(messages), err)
	}
	_, err = pg.Exec(ctx, conn, `DELETE FROM outbox USING unnest($1::uuid[], $2::uuid[]) AS gone (tenant_id, id)
		WHERE outbox.tenant_id = gone.tenant_id AND outbox.id = gone.id`, tenants, ids)
	if err == nil {
		r.sent.Add(ctx, int64(len(entries)), metric.WithAttributes(attribute.String("topic", r.outbox.topic)))
	}
	return len(entries), err
}

// traced shows the sending in the trace of each request that caused an event.
func traced(ctx context.Context, entries []waiting) (end func()) {
	if !telemetry.Recording() {
		return func() {}
	}
	var spans []trace.Span
	for _, entry := range entries {
		var e Envelope
		if json.Unmarshal(entry.Envelope, &e) != nil {
			continue
		}
		_, span := telemetry.Span(e.context(ctx), "publish "+e.Type, trace.WithSpanKind(trace.SpanKindProducer),
			trace.WithAttributes(attribute.String("messaging.system", "kafka"), attribute.String("messaging.destination.name", entry.Topic)))
		spans = append(spans, span)
	}
	return func() {
		for _, span := range spans {
			span.End()
		}
	}
}

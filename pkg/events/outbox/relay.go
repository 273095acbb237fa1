package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/segmentio/kafka-go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/telemetry"
)

const (
	relayBatch = 500
	// relayPoll bounds how long an event waits whose NOTIFY was lost, because the
	// process that emitted it was killed at that moment.
	relayPoll = 5 * time.Second
	// leaderPoll bounds how long events wait after the relay that leads was killed.
	leaderPoll = time.Second
	// notifyDelay is the least time between two NOTIFYs of one process.
	notifyDelay = 10 * time.Millisecond
)

// Relay moves a service's outbox to Kafka, in its order, and signs what it sends.
// Any number of replicas may run it: the holder of an advisory lock leads. It
// sleeps until this process emits an event, or another one does, whose relay
// sends a NOTIFY. An entry is deleted after all replicas of the broker have it; a
// crash between the two sends it again, under the same event id.
func (o *Outbox) Relay(cfg Config) func(context.Context) error {
	return func(ctx context.Context) error {
		signer, err := newSigner(cfg)
		if err != nil {
			return err
		}
		writer, closeWriter, err := newWriter(cfg)
		if err != nil {
			return err
		}
		defer closeWriter()
		sent, end, err := o.relayInstruments()
		if err != nil {
			return err
		}
		defer end()
		var relays sync.WaitGroup
		for i, ctx := range o.db.Shards(telemetry.Quiet(ctx)) {
			r := &relay{outbox: o, cfg: cfg, signer: signer, writer: writer, sent: sent, wake: o.wake[o.db.ShardNames()[i]]}
			relays.Go(func() { retry(ctx, "outbox relay", o.topic, r.lead) })
		}
		relays.Wait()
		return nil
	}
}

// relay is that of one shard.
type relay struct {
	outbox *Outbox
	cfg    Config
	signer signer
	writer *kafka.Writer
	sent   metric.Int64Counter
	wake   <-chan struct{}
}

// lead waits for the lock and relays until something fails.
func (r *relay) lead(ctx context.Context) error {
	conn, err := r.outbox.db.AcquireSession(ctx)
	if err != nil {
		return pg.Error(err)
	}
	defer conn.Release()
	if err := r.lock(ctx, conn); err != nil {
		return err
	}
	// The lock and the LISTEN belong to the session: closing it lets another
	// replica lead.
	defer func() { _ = conn.Conn().Close(context.WithoutCancel(ctx)) }()
	if _, err := pg.Exec(ctx, conn, "LISTEN "+r.channel()); err != nil {
		return err
	}
	if err := r.createTopics(ctx); err != nil {
		return err
	}
	for {
		n, err := r.batch(ctx, conn)
		if err == nil && n < relayBatch {
			err = r.sleep(ctx, conn)
		}
		if err != nil {
			return err
		}
	}
}

// lock waits for the advisory lock. Meanwhile it notifies the relay that leads of
// the events that this process emits: after their commit, since a NOTIFY in a
// transaction makes PostgreSQL commit one such transaction at a time.
func (r *relay) lock(ctx context.Context, conn *pgxpool.Conn) error {
	poll := time.NewTicker(leaderPoll)
	defer poll.Stop()
	for {
		leads, err := pg.Value[bool](ctx, conn, "SELECT pg_try_advisory_lock(hashtextextended('doorward/relay/' || current_schema(), 0))")
		if err != nil || leads {
			return err
		}
		for tick := false; !tick; {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-poll.C:
				tick = true
			case <-r.wake:
				if _, err := pg.Exec(ctx, conn, "NOTIFY "+r.channel()); err != nil {
					return err
				}
				if err := wait(ctx, notifyDelay); err != nil {
					return err
				}
			}
		}
	}
}

// channel is the name of the notifications.
func (r *relay) channel() string { return pgx.Identifier{r.outbox.topic + ".outbox"}.Sanitize() }

// sleep returns when there may be something in the outbox.
func (r *relay) sleep(ctx context.Context, conn *pgxpool.Conn) error {
	sleeping, wake := context.WithTimeout(ctx, relayPoll)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer wake()
		select {
		case <-sleeping.Done():
		case <-r.wake:
		}
	}()
	_, err := conn.Conn().WaitForNotification(sleeping)
	woken := sleeping.Err() != nil
	wake()
	<-done
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if woken {
		return nil
	}
	return pg.Error(err)
}

// createTopics makes the topics that the relay writes to, with a client that is
// closed afterwards: while it is open it requests the topics' partitions again
// and again.
func (r *relay) createTopics(ctx context.Context) error {
	topics := []string{r.outbox.topic, deadLetters(r.outbox.topic)}
	client, closeClient, err := newClient(r.cfg, topics)
	if err != nil {
		return err
	}
	defer closeClient()
	return createTopics(ctx, client, r.cfg, topics...)
}

// entry is a row of the outbox.
type entry struct {
	TenantID id.ID
	ID       id.ID
	Topic    string
	Key      id.ID
	Envelope []byte
}

// batch sends the oldest entries and deletes them.
func (r *relay) batch(ctx context.Context, conn *pgxpool.Conn) (int, error) {
	entries, err := pg.All[entry](ctx, conn, `SELECT tenant_id, id, topic, key, envelope FROM outbox ORDER BY seq LIMIT $1`, relayBatch)
	if err != nil || len(entries) == 0 {
		return 0, err
	}
	messages := make([]kafka.Message, len(entries))
	tenants, ids := make([]id.ID, len(entries)), make([]id.ID, len(entries))
	for i, e := range entries {
		messages[i] = kafka.Message{
			Topic: e.Topic, Key: []byte(e.Key.String()), Value: e.Envelope, Headers: []kafka.Header{r.signer.header(e.Topic, e.Envelope)},
		}
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
func traced(ctx context.Context, entries []entry) (end func()) {
	if !telemetry.Recording() {
		return func() {}
	}
	var spans []trace.Span
	for _, entry := range entries {
		var e events.Envelope
		if json.Unmarshal(entry.Envelope, &e) != nil {
			continue
		}
		_, span := telemetry.Span(e.Context(ctx), "publish "+e.Type, trace.WithSpanKind(trace.SpanKindProducer),
			trace.WithAttributes(attribute.String("messaging.system", "kafka"), attribute.String("messaging.destination.name", entry.Topic)))
		spans = append(spans, span)
	}
	return func() {
		for _, span := range spans {
			span.End()
		}
	}
}

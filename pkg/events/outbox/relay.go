package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

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
	// relayPoll is the mean interval at which a relay polls the outbox without being woken. It
	// bounds, with half of it more, how long an event waits whose process was killed before it sent
	// the event.
	relayPoll = 40 * time.Second
	// While another replica is the leader, a relay tries again after minBusyDelay, and then
	// after twice the delay each time, up to maxBusyDelay.
	minBusyDelay = 10 * time.Millisecond
	maxBusyDelay = time.Second
	// flushTimeout bounds the flush of a process that stops.
	flushTimeout = 2 * time.Second
)

// The errors that roll back the transaction of a batch that has nothing to do.
var (
	errBusy  = errors.New("another relay is sending")
	errEmpty = errors.New("the outbox is empty")
)

// Relay returns the worker that sends the events of a service's outbox to Kafka, in their order, and
// signs them. It sleeps until this process emits an event, and flushes the outbox when it ends. Any
// number of replicas may run it: one replica at a time, the leader, sends the events of all. A row
// is deleted after all in-sync replicas of the broker have acknowledged it (acks=all); after a crash
// between the two, the event is sent again with the same event id.
func (o *Outbox) Relay(cfg Config) func(context.Context) error {
	return func(ctx context.Context) error {
		signer, err := newSigner(cfg)
		if err != nil {
			return err
		}
		writer, closeWriter, err := newProducer(cfg)
		if err != nil {
			return err
		}
		defer closeWriter()
		sent, end, err := o.relayInstruments()
		if err != nil {
			return err
		}
		defer end()
		ctx = telemetry.Untraced(ctx)
		r := &relay{outbox: o, cfg: cfg, signer: signer, writer: writer, sent: sent}
		retry(ctx, "outbox relay", o.topic, r.run)
		r.flush(ctx)
		return nil
	}
}

// relay is what the worker of Relay works with.
type relay struct {
	outbox *Outbox
	cfg    Config
	signer signer
	writer *kafka.Writer
	sent   metric.Int64Counter
}

// run sends events until a step fails.
func (r *relay) run(ctx context.Context) error {
	if err := r.createTopics(ctx); err != nil {
		return err
	}
	busyDelay := minBusyDelay
	for {
		err := r.batch(ctx)
		switch {
		case errors.Is(err, errBusy):
			err = wait(ctx, busyDelay)
			busyDelay = min(2*busyDelay, maxBusyDelay)
		case errors.Is(err, errEmpty):
			err = r.sleep(ctx)
			busyDelay = minBusyDelay
		}
		if err != nil {
			return err
		}
	}
}

// flush sends the last events of the process, after ctx has ended. While Kafka is unavailable they
// stay in the outbox.
func (r *relay) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	for {
		err := r.batch(ctx)
		if errors.Is(err, errBusy) {
			err = wait(ctx, minBusyDelay)
		}
		if err != nil {
			return
		}
	}
}

// sleep waits until there may be events in the outbox.
func (r *relay) sleep(ctx context.Context) error {
	poll := time.NewTimer(relayPoll/2 + rand.N(relayPoll)) // jitter: services and replicas poll at different times
	defer poll.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-r.outbox.wake:
	case <-poll.C:
	}
	return nil
}

// createTopics creates the topics to which the relay writes. It uses a client of its own, because an
// open client requests the metadata of its topics again and again.
func (r *relay) createTopics(ctx context.Context) error {
	topics := []string{r.outbox.topic, deadLetterTopic(r.outbox.topic)}
	client, closeClient, err := newClient(r.cfg, topics)
	if err != nil {
		return err
	}
	defer closeClient()
	return createTopics(ctx, client, r.cfg, topics...)
}

// relayLock returns the key of the advisory lock of the relay of a schema, which is an expression of SQL.
func relayLock(schema string) string {
	return `hashtextextended('doorward/relay/' || ` + schema + `, 0)`
}

// entry is a row of the outbox.
type entry struct {
	TenantID id.ID
	ID       id.ID
	Topic    string
	Key      id.ID
	Envelope []byte
}

// batch sends the oldest entries and deletes them. It returns errBusy if another relay is doing so:
// an advisory lock elects the relay that sends (leader election).
func (r *relay) batch(ctx context.Context) error {
	var entries []entry
	err := r.outbox.db.InTx(ctx, func(tx *pg.Tx) error {
		free, err := pg.Value[bool](ctx, tx, `SELECT pg_try_advisory_xact_lock(`+relayLock("current_schema()")+`)`)
		if err == nil && !free {
			err = errBusy
		}
		if err != nil {
			return err
		}
		entries, err = pg.All[entry](ctx, tx,
			`SELECT tenant_id, id, topic, key, envelope FROM outbox ORDER BY seq LIMIT $1`,
			relayBatch)
		if err == nil && len(entries) == 0 {
			err = errEmpty
		}
		if err != nil {
			return err
		}
		if err := r.send(ctx, entries); err != nil {
			return err
		}
		tenants, ids := make([]id.ID, len(entries)), make([]id.ID, len(entries))
		for i, e := range entries {
			tenants[i], ids[i] = e.TenantID, e.ID
		}
		tx.Queue(`DELETE FROM outbox USING unnest($1::uuid[], $2::uuid[]) AS gone (tenant_id, id)
			WHERE outbox.tenant_id = gone.tenant_id AND outbox.id = gone.id`, tenants, ids)
		return nil
	})
	if err != nil {
		return err
	}
	r.sent.Add(ctx, int64(len(entries)), metric.WithAttributes(attribute.String("topic", r.outbox.topic)))
	return nil
}

// send sends entries to Kafka and waits until they are acknowledged.
func (r *relay) send(ctx context.Context, entries []entry) error {
	messages := make([]kafka.Message, len(entries))
	for i, e := range entries {
		messages[i] = kafka.Message{
			Topic: e.Topic, Key: []byte(e.Key.String()), Value: e.Envelope,
			Headers: []kafka.Header{r.signer.signatureHeader(e.Topic, e.Envelope)},
		}
	}
	defer startPublishSpans(ctx, entries)()
	if err := r.writer.WriteMessages(ctx, messages...); err != nil {
		return fmt.Errorf("send %d events to Kafka: %w", len(messages), err)
	}
	return nil
}

// startPublishSpans starts a span for each event, in the trace of the request that caused the event.
func startPublishSpans(ctx context.Context, entries []entry) (end func()) {
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
			trace.WithAttributes(attribute.String("messaging.system", "kafka"),
				attribute.String("messaging.destination.name", entry.Topic)))
		spans = append(spans, span)
	}
	return func() {
		for _, span := range spans {
			span.End()
		}
	}
}

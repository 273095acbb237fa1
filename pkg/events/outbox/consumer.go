package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/telemetry"
)

// maxAttempts is how many times an event is tried whose handler fails with another error than
// apierr.Unavailable.
const maxAttempts = 8

const (
	// handlerTimeout bounds one attempt of a handler, so that a handler that is blocked, by a
	// lock for example, is logged and retried.
	handlerTimeout = time.Minute
	// lagInterval is how often the consumer lag (doorward_events_lag) is read from the broker.
	lagInterval = 15 * time.Second
)

// Consume returns the worker that handles the events of other services (Kafka consumer). The replicas
// of the service are members of one consumer group (group.go) and share the partitions. The
// offset of an event is committed after its effect, so that an event is delivered at least once, in
// the order of the events of its subject; Tx.Seen makes its effect happen once.
//
// An event whose handler fails with apierr.Unavailable is retried without limit. After any other
// failure it is tried maxAttempts times with back-off (retry.go), and then becomes a dead letter, so
// that it does not block the events behind it; other partitions do not wait for it. An attempt that
// takes longer than handlerTimeout has failed. A message without a valid signature becomes a dead
// letter at once.
func (o *Outbox) Consume(cfg Config, from []string, handlers ...events.Handler) func(context.Context) error {
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
		c := &consumer{
			outbox: o, group: o.topic, cfg: cfg, signer: signer, writer: writer,
			handlers: map[string]events.Handler{}, assigned: map[*partition]bool{},
		}
		for _, h := range handlers {
			c.handlers[h.Event] = h
		}
		for _, name := range from {
			c.topics = append(c.topics, Topic(name))
		}
		if err := c.instruments(); err != nil {
			return err
		}
		client, closeClient, err := newClient(cfg, c.allTopics())
		if err != nil {
			return err
		}
		defer closeClient()
		c.client = client
		var lag sync.WaitGroup
		lag.Go(func() { c.reportLag(ctx) })
		defer lag.Wait()
		retry(ctx, "event consumer", o.topic, c.join)
		return nil
	}
}

type consumer struct {
	outbox   *Outbox
	group    string
	cfg      Config
	signer   signer
	topics   []string
	handlers map[string]events.Handler
	client   *kafka.Client
	writer   *kafka.Writer // the producer of dead letters
	consumed metric.Int64Counter
	dead     metric.Int64Counter
	lag      metric.Int64Gauge

	assignedMu sync.Mutex
	assigned   map[*partition]bool // the partitions that this process reads
}

// allTopics returns the topics and the topics of their dead letters.
func (c *consumer) allTopics() []string {
	all := make([]string, 0, 2*len(c.topics))
	for _, topic := range c.topics {
		all = append(all, topic, deadLetterTopic(topic))
	}
	return all
}

// handle calls the handler of a message, or makes the message a dead letter. It fails only when
// neither is possible.
func (c *consumer) handle(ctx context.Context, message kafka.Message) error {
	if err := c.signer.verify(message); err != nil {
		return c.deadLetter(ctx, message, "signature", err)
	}
	var e events.Envelope
	if err := json.Unmarshal(message.Value, &e); err != nil {
		return c.deadLetter(ctx, message, "malformed", fmt.Errorf("read the envelope: %w", err))
	}
	handler, ok := c.handlers[e.Type]
	if !ok {
		return nil
	}
	labels := metric.WithAttributes(attribute.String("event", e.Type), attribute.String("group", c.group))
	for failures := 1; ; failures++ {
		err := c.call(e.Context(ctx), handler, e)
		if err == nil {
			c.consumed.Add(ctx, 1, labels)
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.As(err, new(events.Malformed)) {
			return c.deadLetter(ctx, message, "malformed", err)
		}
		if !errors.Is(err, apierr.Unavailable) && failures >= maxAttempts {
			return c.deadLetter(ctx, message, "failed", err)
		}
		slog.WarnContext(e.Context(ctx), "event handler failed, retrying", "event", e.Type, "id", e.ID.String(),
			"failures", failures, "error", err.Error())
		if err := wait(ctx, backoff(failures-1)); err != nil {
			return err
		}
	}
}

// call runs the handler once, in a span of the trace of the request that caused the event, unless
// the event is recorded as seen: then it was handled before, or Inspector.Rewind has marked it as
// skipped. Nor does it run for a tenant that was deleted, of which it could write a row that nothing would purge
// (package tenantpurge). A panic is returned as an error.
func (c *consumer) call(ctx context.Context, handler events.Handler, e events.Envelope) (err error) {
	ctx, span := telemetry.Span(ctx, "consume "+e.Type, trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(attribute.String("messaging.system", "kafka"),
			attribute.String("messaging.consumer.group.name", c.group)))
	ctx, cancel := context.WithTimeout(ctx, c.outbox.handlerTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
		if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("not done within %s: %w", c.outbox.handlerTimeout, err)
		}
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}()
	skip, err := pg.Value[bool](ctx, c.outbox.db,
		`SELECT EXISTS (SELECT 1 FROM seen_events WHERE tenant_id = $1 AND event_id = $2)
			OR EXISTS (SELECT 1 FROM purged_tenants WHERE id = $1)`, e.Tenant, e.ID)
	if err != nil || skip {
		return err
	}
	return handler.Handle(ctx, e)
}

// deadLetter copies a message unchanged to the topic of dead letters, with the group that could not
// handle it and the error as headers. reason is "signature", "malformed" or "failed".
func (c *consumer) deadLetter(ctx context.Context, message kafka.Message, reason string, cause error) error {
	topic := deadLetterTopic(message.Topic)
	err := c.writer.WriteMessages(ctx, kafka.Message{
		Topic: topic, Key: message.Key, Value: message.Value,
		Headers: append(message.Headers,
			kafka.Header{Key: "group", Value: []byte(c.group)},
			kafka.Header{Key: "error", Value: []byte(cause.Error())}),
	})
	if err != nil {
		return fmt.Errorf("write a dead letter: %w", err)
	}
	c.dead.Add(ctx, 1, metric.WithAttributes(attribute.String("group", c.group), attribute.String("reason", reason)))
	slog.ErrorContext(ctx, "event became a dead letter", "topic", topic, "partition", message.Partition,
		"offset", message.Offset,
		"group", c.group, "reason", reason, "error", cause.Error())
	return nil
}

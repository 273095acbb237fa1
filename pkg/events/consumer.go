package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/segmentio/kafka-go"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/telemetry"
)

// attempts bounds how often an event is tried whose handler fails for another
// reason than that something it needs is away.
const attempts = 8

// Consume acts on the events of other services. Replicas of the service share
// the partitions of their topics (replica.go), and how far each was read is a
// row in the service's schema (partition.go), which moves on in the transaction
// of tx.Seen: an event is delivered at least once, in the order of its subject,
// and has one effect. While something that the handler needs is away
// (apierr.Unavailable) the event is tried for ever; an event that fails
// otherwise is tried eight times, set aside on its topic's ".dead" and
// counted, so that it does not hold up what comes after it.
func (o *Outbox) Consume(cfg Config, from []string, handlers ...Handler) func(context.Context) error {
	return func(ctx context.Context) error {
		c := &consumer{outbox: o, cfg: cfg, handlers: map[string]Handler{}, dead: newWriter(cfg)}
		defer func() { _ = c.dead.Close() }()
		for _, h := range handlers {
			c.handlers[h.event] = h
		}
		for _, name := range from {
			c.topics = append(c.topics, Topic(name))
		}
		meter := otel.Meter(o.topic)
		var err, err2, err3 error
		c.done, err = meter.Int64Counter("doorward_events_consumed_total", metric.WithDescription("events that were acted on"))
		c.aside, err2 = meter.Int64Counter("doorward_events_dead_total", metric.WithDescription("events that were set aside on a .dead topic"))
		c.lag, err3 = meter.Int64Gauge("doorward_events_lag", metric.WithDescription("events of a partition that this process has still to read"))
		if err := errors.Join(err, err2, err3); err != nil {
			return err
		}
		client, leave := newClient(cfg, c.all())
		defer leave()
		c.client = client
		persist(ctx, "the consumer starts again", o.topic, c.share)
		return nil
	}
}

type consumer struct {
	outbox      *Outbox
	cfg         Config
	topics      []string
	handlers    map[string]Handler
	client      *kafka.Client
	dead        *kafka.Writer
	done, aside metric.Int64Counter
	lag         metric.Int64Gauge
}

// all names the topics and those of what was set aside.
func (c *consumer) all() []string {
	all := make([]string, 0, 2*len(c.topics))
	for _, topic := range c.topics {
		all = append(all, topic, dead(topic))
	}
	return all
}

// digest acts on one message, or sets it aside. It fails only when neither can
// be done.
func (c *consumer) digest(ctx context.Context, p *partition, message kafka.Message) error {
	e := Envelope{partition: p}
	if err := json.Unmarshal(message.Value, &e); err != nil {
		return c.setAside(ctx, message, fmt.Errorf("read the envelope: %w", err))
	}
	handler, ok := c.handlers[e.Type]
	if !ok {
		return nil
	}
	labels := metric.WithAttributes(attribute.String("event", e.Type), attribute.String("group", c.outbox.topic))
	for failures := 1; ; failures++ {
		err := c.act(e.context(ctx), handler, e)
		if err == nil {
			c.done.Add(ctx, 1, labels)
			return p.commit(ctx)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, errTaken) {
			return err
		}
		away := errors.Is(err, apierr.Unavailable)
		slog.WarnContext(e.context(ctx), "an event was not digested", "event", e.Type, "id", e.ID.String(), "failures", failures, "error", err.Error())
		var hopeless poison
		if errors.As(err, &hopeless) || (!away && failures >= attempts) {
			return c.setAside(ctx, message, err)
		}
		if err := pause(ctx, backoff(failures-1)); err != nil {
			return err
		}
	}
}

// act runs the handler once, under a span in the trace of the event's cause. A
// panic is an error like another.
func (c *consumer) act(ctx context.Context, handler Handler, e Envelope) (err error) {
	ctx, span := telemetry.Span(ctx, "consume "+e.Type, trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(attribute.String("messaging.system", "kafka"), attribute.String("messaging.consumer.group.name", c.outbox.topic)))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}()
	return handler.act(ctx, e)
}

func (c *consumer) setAside(ctx context.Context, message kafka.Message, cause error) error {
	err := c.dead.WriteMessages(ctx, kafka.Message{
		Topic: dead(message.Topic), Key: message.Key, Value: message.Value,
		Headers: []kafka.Header{{Key: "group", Value: []byte(c.outbox.topic)}, {Key: "error", Value: []byte(cause.Error())}},
	})
	if err != nil {
		return fmt.Errorf("set an event aside: %w", err)
	}
	c.aside.Add(ctx, 1, metric.WithAttributes(attribute.String("group", c.outbox.topic)))
	slog.ErrorContext(ctx, "an event was set aside", "topic", dead(message.Topic), "group", c.outbox.topic, "error", cause.Error())
	return nil
}

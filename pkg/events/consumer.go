package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

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

// Consume acts on the events of other services. service names the consumer
// group, so that its replicas share the work. An event is committed after its
// handler succeeded: it is delivered at least once, in the order of its
// subject. While something that the handler needs is away
// (apierr.Unavailable) the event is tried for ever; an event that fails
// otherwise is tried eight times, set aside on its topic's ".dead" and
// counted, so that it does not hold up what comes after it.
func Consume(cfg Config, service string, from []string, handlers ...Handler) func(context.Context) error {
	return func(ctx context.Context) error {
		c := &consumer{cfg: cfg, group: "doorward." + service, handlers: map[string]Handler{}, dead: newWriter(cfg)}
		defer func() { _ = c.dead.Close() }()
		for _, h := range handlers {
			c.handlers[h.event] = h
		}
		for _, name := range from {
			c.topics = append(c.topics, Topic(name))
		}
		meter := otel.Meter(c.group)
		var err, err2 error
		c.done, err = meter.Int64Counter("doorward_events_consumed_total", metric.WithDescription("events that were acted on"))
		c.aside, err2 = meter.Int64Counter("doorward_events_dead_total", metric.WithDescription("events that were set aside on a .dead topic"))
		if err := errors.Join(err, err2); err != nil {
			return err
		}
		for failures := 0; ctx.Err() == nil; failures++ {
			err := c.session(ctx)
			if ctx.Err() != nil {
				return nil
			}
			slog.WarnContext(ctx, "the consumer starts again", "group", c.group, "error", err.Error())
			if pause(ctx, backoff(failures)) != nil {
				return nil
			}
		}
		return nil
	}
}

type consumer struct {
	cfg         Config
	group       string
	topics      []string
	handlers    map[string]Handler
	dead        *kafka.Writer
	done, aside metric.Int64Counter
}

// session reads until the broker or the dead-letter topic fails.
func (c *consumer) session(ctx context.Context) error {
	all := make([]string, 0, 2*len(c.topics))
	for _, topic := range c.topics {
		all = append(all, topic, dead(topic))
	}
	if err := createTopics(ctx, c.cfg, all...); err != nil {
		return err
	}
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: c.cfg.Brokers, GroupID: c.group, GroupTopics: c.topics, StartOffset: kafka.FirstOffset,
		MinBytes: 1, MaxBytes: 10 << 20, MaxWait: 250 * time.Millisecond, WatchPartitionChanges: true,
		Dialer:            &kafka.Dialer{Timeout: 5 * time.Second},
		SessionTimeout:    10 * time.Second,
		RebalanceTimeout:  10 * time.Second,
		HeartbeatInterval: time.Second,
	})
	defer func() { _ = reader.Close() }()
	for {
		message, err := reader.FetchMessage(ctx)
		if err != nil {
			return fmt.Errorf("fetch from Kafka: %w", err)
		}
		if err := c.digest(ctx, message); err != nil {
			return err
		}
		if err := reader.CommitMessages(ctx, message); err != nil {
			return fmt.Errorf("commit to Kafka: %w", err)
		}
	}
}

// digest acts on one message, or sets it aside. It fails only when neither can
// be done.
func (c *consumer) digest(ctx context.Context, message kafka.Message) error {
	var e Envelope
	if err := json.Unmarshal(message.Value, &e); err != nil {
		return c.setAside(ctx, message, fmt.Errorf("read the envelope: %w", err))
	}
	handler, ok := c.handlers[e.Type]
	if !ok {
		return nil
	}
	labels := metric.WithAttributes(attribute.String("event", e.Type), attribute.String("group", c.group))
	for failures := 1; ; failures++ {
		err := c.act(e.context(ctx), handler, e)
		if err == nil {
			c.done.Add(ctx, 1, labels)
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
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
		trace.WithAttributes(attribute.String("messaging.system", "kafka"), attribute.String("messaging.consumer.group.name", c.group)))
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
		Headers: []kafka.Header{{Key: "group", Value: []byte(c.group)}, {Key: "error", Value: []byte(cause.Error())}},
	})
	if err != nil {
		return fmt.Errorf("set an event aside: %w", err)
	}
	c.aside.Add(ctx, 1, metric.WithAttributes(attribute.String("group", c.group)))
	slog.ErrorContext(ctx, "an event was set aside", "topic", dead(message.Topic), "group", c.group, "error", cause.Error())
	return nil
}

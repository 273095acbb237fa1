package outbox

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/telemetry"
)

// instruments registers the metrics of a consumer.
func (c *consumer) instruments() error {
	meter := otel.Meter(c.outbox.topic)
	var err, err2, err3 error
	c.consumed, err = meter.Int64Counter("doorward_events_consumed_total",
		metric.WithDescription("events that were handled"))
	c.dead, err2 = meter.Int64Counter("doorward_events_dead_total",
		metric.WithDescription("messages that became dead letters, by reason: signature, malformed or failed"))
	c.lag, err3 = meter.Int64Gauge("doorward_events_lag",
		metric.WithDescription(
			"events of a partition that this process has still to handle, as the broker says every 15 s"))
	if err := errors.Join(err, err2, err3); err != nil {
		return err
	}
	// so that the first dead letter is an increase from 0
	for _, reason := range []string{"signature", "malformed", "failed"} {
		c.dead.Add(context.Background(), 0, metric.WithAttributes(attribute.String("group", c.group),
			attribute.String("reason", reason)))
	}
	return nil
}

// maxCounted bounds how many waiting events are counted in a scrape of the metrics.
const maxCounted = 100_000

// relayInstruments registers the metrics of the relays; end unregisters the gauges that query the
// databases.
func (o *Outbox) relayInstruments() (sent metric.Int64Counter, end func(), err error) {
	meter := otel.Meter(o.topic)
	topic := metric.WithAttributes(attribute.String("topic", o.topic))
	sent, err = meter.Int64Counter("doorward_events_relayed_total",
		metric.WithDescription("events that the broker acknowledged"))
	if err != nil {
		return nil, nil, err
	}
	sent.Add(context.Background(), 0, topic)
	waiting, err := meter.Int64ObservableGauge("doorward_events_outbox_waiting",
		metric.WithDescription(
			"events in the outbox of a service that the broker has not acknowledged, at most 100000 are counted"))
	if err != nil {
		return nil, nil, err
	}
	age, err := meter.Float64ObservableGauge("doorward_events_outbox_age_seconds",
		metric.WithDescription("age of the oldest event in the outbox of a service, 0 for an empty one"),
		metric.WithUnit("s"))
	if err != nil {
		return nil, nil, err
	}
	registered, err := meter.RegisterCallback(func(ctx context.Context, observer metric.Observer) error {
		ctx, cancel := telemetry.QueryContext(ctx)
		defer cancel()
		n, oldest, err := o.Waiting(ctx)
		if err != nil {
			return err
		}
		observer.ObserveInt64(waiting, n, topic)
		observer.ObserveFloat64(age, oldest.Seconds(), topic)
		return nil
	}, waiting, age)
	return sent, func() { _ = registered.Unregister() }, err // Unregister never fails
}

// Waiting returns how many events are in the outbox, at most maxCounted, and the age of the
// oldest.
func (o *Outbox) Waiting(ctx context.Context) (n int64, oldest time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	type row struct {
		Count int64
		First *id.ID
	}
	found, err := pg.One[row](ctx, o.db,
		`SELECT (SELECT count(*) FROM (SELECT 1 FROM outbox LIMIT $1) AS counted) AS count,
		(SELECT id FROM outbox ORDER BY seq LIMIT 1) AS first`, maxCounted)
	if err != nil || found.First == nil {
		return found.Count, 0, err
	}
	return found.Count, max(0, o.now().Sub(found.First.Time())), nil
}

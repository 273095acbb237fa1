package events

import (
	"errors"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
)

// instruments makes the instruments of a consumer.
func (c *consumer) instruments() error {
	meter := otel.Meter(c.outbox.topic)
	var err, err2, err3 error
	c.consumed, err = meter.Int64Counter("doorward_events_consumed_total", metric.WithDescription("events that were handled"))
	c.dead, err2 = meter.Int64Counter("doorward_events_dead_total",
		metric.WithDescription("messages that became dead letters, by reason: signature, malformed or failed"))
	c.lag, err3 = meter.Int64Gauge("doorward_events_lag",
		metric.WithDescription("events of a partition that this process has still to handle"))
	return errors.Join(err, err2, err3)
}

// instruments makes the instrument of a relay.
func (r *relay) instruments() (err error) {
	r.sent, err = otel.Meter(r.outbox.topic).Int64Counter("doorward_events_relayed_total",
		metric.WithDescription("events that the broker acknowledged"))
	return err
}

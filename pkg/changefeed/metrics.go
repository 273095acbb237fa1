package changefeed

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// registerMetrics registers the metric of the age of the last poll.
func (f *Follower) registerMetrics() {
	name := attribute.String("follower", f.cfg.Name)
	_, _ = otel.Meter("changefeed").Float64ObservableGauge("doorward_changefeed_age_seconds",
		metric.WithDescription("age of the last poll for changes of what a service caches of another; 0 before the first"),
		metric.WithUnit("s"),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			age := time.Duration(0)
			if !f.currentAt.IsZero() {
				age = f.cfg.Now().Sub(f.currentAt)
			}
			o.Observe(age.Seconds(), metric.WithAttributes(name))
			return nil
		}))
}

package cache

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// registerMetrics registers the metrics of the cache.
func (c *Cache[K, V]) registerMetrics() {
	meter, name := otel.Meter("cache"), attribute.String("cache", c.cfg.Name)
	for i, result := range []string{"miss", "hit", "stale"} {
		c.resultLabels[i] = metric.WithAttributeSet(attribute.NewSet(name, attribute.String("result", result)))
	}
	c.requestCounter, _ = meter.Int64Counter("doorward_cache_requests_total",
		metric.WithDescription(
			"look-ups in a cache by result: hit, miss, or stale, where a value could not be confirmed to be current"))
	_, _ = meter.Int64ObservableGauge("doorward_cache_entries", metric.WithDescription("values that a cache holds"),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(c.entries.Len()), metric.WithAttributes(name))
			return nil
		}))
}

// registerMetrics registers the metric of the age of the last poll.
func (f *follower) registerMetrics(name string) {
	label := attribute.String("follower", name)
	_, _ = otel.Meter("cache").Float64ObservableGauge("doorward_changefeed_age_seconds",
		metric.WithDescription(
			"age of the last poll for changes of what a service caches of another; 0 before the first"),
		metric.WithUnit("s"),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			age := time.Duration(0)
			if !f.currentAt.IsZero() {
				age = f.now().Sub(f.currentAt)
			}
			o.Observe(age.Seconds(), metric.WithAttributes(label))
			return nil
		}))
}

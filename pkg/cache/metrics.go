package cache

import (
	"context"

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
		metric.WithDescription("look-ups in a cache by result: hit, miss, or stale, where a value could not be confirmed to be current"))
	_, _ = meter.Int64ObservableGauge("doorward_cache_entries", metric.WithDescription("values that a cache holds"),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(c.entries.Len()), metric.WithAttributes(name))
			return nil
		}))
}

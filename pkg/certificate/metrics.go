package certificate

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// registerMetrics registers the metric of the expiry of the certificate.
func (c *Certificate) registerMetrics(labels []attribute.KeyValue) error {
	_, err := otel.Meter("certificate").Int64ObservableGauge("doorward_certificate_not_after_timestamp_seconds",
		metric.WithDescription("expiry of the TLS certificate of the process, as Unix time"),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(c.Current().Leaf.NotAfter.Unix(), metric.WithAttributes(labels...))
			return nil
		}))
	return err
}

package secure

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
)

// registerMetrics registers the metrics of the worker pool of password hashes.
func (p *Passwords) registerMetrics() {
	meter := otel.Meter("directory")
	buckets := metric.WithExplicitBucketBoundaries(.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10)
	var errs [3]error
	p.waitTime, errs[0] = meter.Float64Histogram("doorward_directory_password_wait_seconds",
		metric.WithDescription("time that a password waited for a worker"), metric.WithUnit("s"), buckets)
	p.hashTime, errs[1] = meter.Float64Histogram("doorward_directory_password_hash_seconds",
		metric.WithDescription("time to compute the hashes of one password"), metric.WithUnit("s"), buckets)
	_, errs[2] = meter.Int64ObservableGauge("doorward_directory_password_queue_length",
		metric.WithDescription("passwords that wait for a worker of the hash pool"),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(p.queue.Len()))
			return nil
		}))
	for _, err := range errs {
		if err != nil {
			otel.Handle(err)
		}
	}
}

// Package metrictest reads the metrics of the process in tests. It sets the meter provider of every
// test that imports it.
package metrictest

import (
	"context"

	"go.opentelemetry.io/otel"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

var reader = func() *sdkmetric.ManualReader {
	reader := sdkmetric.NewManualReader()
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	return reader
}()

// Find returns the metrics with a name, one for each meter that has it. It also returns the error of
// gauges that could not be observed.
func Find(ctx context.Context, name string) (found []metricdata.Metrics, err error) {
	var all metricdata.ResourceMetrics
	err = reader.Collect(ctx, &all)
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name == name {
				found = append(found, m)
			}
		}
	}
	return found, err
}

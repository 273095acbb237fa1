// Package metrictest reads the metrics of a test's process: it is the meter provider of
// every test that imports it.
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

// Find returns the metrics of a name, one for each meter that has it. An error is that of
// the gauges that could not be observed; the others are returned beside it.
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

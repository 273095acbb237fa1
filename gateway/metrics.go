package gateway

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/doorward/doorward/pkg/apierr"
)

// refusalCounter counts the requests that the gateway itself refuses, by reason: the metric
// doorward_gateway_refused_total.
type refusalCounter struct {
	counter metric.Int64Counter
}

func newRefusalCounter() (*refusalCounter, error) {
	counter, err := otel.Meter("gateway").Int64Counter("doorward_gateway_refused_total",
		metric.WithDescription("requests refused by the gateway, by reason"))
	return &refusalCounter{counter}, err
}

// countAs counts a refusal under a reason and returns its error.
func (r *refusalCounter) countAs(reason string, err error) error {
	r.counter.Add(context.Background(), 1, metric.WithAttributes(attribute.String("reason", reason)))
	return err
}

// count counts a refusal under the reason of its error, and returns the error. Errors other than
// apierr.Unauthorized and a limitError are not counted.
func (r *refusalCounter) count(err error) error {
	var limit *limitError
	switch {
	case errors.Is(err, apierr.Unauthorized):
		return r.countAs("unauthorized", err)
	case errors.As(err, &limit):
		return r.countAs(limit.reason, err)
	}
	return err
}

// registerGauge registers the metric doorward_gateway_limits_shared.
func (l *Limiter) registerGauge() (metric.Registration, error) {
	meter := otel.Meter("gateway")
	gauge, err := meter.Int64ObservableGauge("doorward_gateway_limits_shared",
		metric.WithDescription(
			"1 while the rate limits are synchronised between the gateways, 0 while each applies them alone"))
	if err != nil {
		return nil, err
	}
	return meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		value := int64(0)
		if l.synced.Load() {
			value = 1
		}
		o.ObserveInt64(gauge, value)
		return nil
	}, gauge)
}

package rest

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/rpc"
	"github.com/doorward/doorward/pkg/telemetry"
)

// Observe is the middleware that traces and counts the requests of a process: the metrics
// doorward_<service>_request_duration_seconds (Prometheus, latency histogram) and
// doorward_<service>_requests_in_flight, and a span for each request. It calls the error handler
// itself, so that the status of an error is known.
func Observe(service string) fiber.Handler {
	duration, err := otel.Meter(service).Float64Histogram("doorward_"+service+"_request_duration_seconds",
		metric.WithDescription("time to answer a request"), metric.WithUnit("s"),
		metric.WithExplicitBucketBoundaries(.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10))
	if err != nil {
		otel.Handle(err)
	}
	var inFlight atomic.Int64
	_, err = otel.Meter(service).Int64ObservableGauge("doorward_"+service+"_requests_in_flight",
		metric.WithDescription("requests that are being answered"),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(inFlight.Load())
			return nil
		}))
	if err != nil {
		otel.Handle(err)
	}
	series := labelCache{options: map[requestLabels][]metric.RecordOption{}}
	asServer := trace.WithSpanKind(trace.SpanKindServer)
	return func(c *fiber.Ctx) error {
		started := time.Now()
		inFlight.Add(1)
		defer inFlight.Add(-1)
		ctx, span := telemetry.Span(rpc.ExtractTrace(c.UserContext(), &c.Request().Header), service, asServer)
		defer span.End()
		c.SetUserContext(ctx)
		if err := recoverPanic(c); err != nil {
			if err := c.App().ErrorHandler(c, err); err != nil {
				return err
			}
		}
		found := requestLabels{c.Method(), Route(c), c.Response().StatusCode()}
		duration.Record(ctx, time.Since(started).Seconds(), series.of(found)...)
		if span.IsRecording() {
			span.SetName(service + " " + found.method + " " + found.route)
			span.SetAttributes(attribute.String("http.request.method", found.method),
				attribute.String("http.route", found.route),
				attribute.Int("http.response.status_code", found.status))
			if tenant := caller.From(c.UserContext()).Tenant; !tenant.IsZero() {
				span.SetAttributes(attribute.String("doorward.tenant", tenant.String()))
			}
			if found.status >= 500 {
				span.SetStatus(codes.Error, "")
			}
		}
		return nil
	}
}

// requestLabels are the labels of a request in the metrics.
type requestLabels struct {
	method, route string
	status        int
}

// labelCache caches the labels that occurred, in the form in which they are recorded:
// to make an attribute set takes longer than to record a value.
type labelCache struct {
	mu      sync.RWMutex
	options map[requestLabels][]metric.RecordOption
}

func (s *labelCache) of(found requestLabels) []metric.RecordOption {
	s.mu.RLock()
	options, known := s.options[found]
	s.mu.RUnlock()
	if known {
		return options
	}
	options = []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(
		attribute.String("method", found.method), attribute.String("route", found.route), attribute.Int("status",
			found.status)))}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.options[found] = options
	return options
}

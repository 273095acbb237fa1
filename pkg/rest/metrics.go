package rest

import (
	"context"
	"net"
	"strconv"
	"strings"
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
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/rpc"
	"github.com/doorward/doorward/pkg/telemetry"
)

// Observe is the middleware of a service that traces its requests, as children of the spans of its callers, and counts
// them: observe.
func Observe(service string) fiber.Handler {
	asServer := trace.WithSpanKind(trace.SpanKindServer)
	return observe(service, service+" ", scheme, func(c *fiber.Ctx) (context.Context, trace.Span) {
		return telemetry.Span(rpc.ExtractTrace(c.UserContext(), &c.Request().Header), service, asServer)
	})
}

// ObserveEdge is Observe for the gateway. The span of a request is the root of a trace of its own, with a link to the
// trace that the client names: a client decides neither whether its requests are recorded nor in which trace. Where
// proxies in front are trusted, it continues theirs.
func ObserveEdge(service string, isTrusted bool) fiber.Handler {
	asServer := trace.WithSpanKind(trace.SpanKindServer)
	return observe(service, "", func(*fiber.Ctx) string {
		return "https"
	}, func(c *fiber.Ctx) (context.Context, trace.Span) {
		ctx := c.UserContext()
		named := rpc.ExtractTrace(ctx, &c.Request().Header)
		if isTrusted {
			return telemetry.Span(named, service, asServer)
		}
		options := []trace.SpanStartOption{asServer, trace.WithNewRoot()}
		if client := trace.SpanContextFromContext(named); client.IsValid() {
			options = append(options, trace.WithLinks(trace.Link{SpanContext: client}))
		}
		return telemetry.Span(ctx, service, options...)
	})
}

// observe is the middleware that traces and counts the requests of a process: the metrics
// doorward_<service>_request_duration_seconds (Prometheus, latency histogram) and
// doorward_<service>_requests_in_flight, and a span for each request. It calls the error handler
// itself, so that the status of an error is known. begin begins the span of a request, whose name is the prefix, the
// method and the route.
func observe(service, prefix string, scheme func(*fiber.Ctx) string,
	begin func(*fiber.Ctx) (context.Context, trace.Span),
) fiber.Handler {
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
	return func(c *fiber.Ctx) error {
		started := time.Now()
		inFlight.Add(1)
		defer inFlight.Add(-1)
		ctx, span := begin(c)
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
			span.SetName(prefix + found.method + " " + found.route)
			span.SetAttributes(attribute.String("url.scheme", scheme(c)))
			describe(span, c, found)
		}
		return nil
	}
}

// describe sets the attributes of the span of a request, by the semantic conventions of OpenTelemetry for HTTP servers.
func describe(span trace.Span, c *fiber.Ctx, found requestLabels) {
	span.SetAttributes(attribute.String("http.request.method", found.method),
		attribute.String("http.route", found.route),
		attribute.Int("http.response.status_code", found.status),
		attribute.String("url.path", withoutTokens(c.Path(), found.route)),
		attribute.String("server.address", hostOf(c)))
	from := caller.From(c.UserContext())
	if !from.Tenant.IsZero() {
		span.SetAttributes(attribute.String("doorward.tenant", from.Tenant.String()))
	}
	if from.Address.IsValid() {
		span.SetAttributes(attribute.String("client.address", from.Address.String()))
	}
	if found.status >= 500 {
		span.SetAttributes(attribute.String("error.type", strconv.Itoa(found.status)))
		span.SetStatus(codes.Error, "")
	}
}

// scheme returns the scheme of a request to a service.
func scheme(c *fiber.Ctx) string {
	if c.Context().IsTLS() {
		return "https"
	}
	return "http"
}

// hostOf returns the host that the client has named, without a port.
func hostOf(c *fiber.Ctx) string {
	named := string(c.Request().Host())
	if host, _, err := net.SplitHostPort(named); err == nil {
		return host
	}
	return named
}

// withoutTokens returns the path of a request with the placeholder of its route in place of each parameter that is not
// the id of a resource: it may be a token. A path that does not have the form of the route is the route.
func withoutTokens(path, route string) string {
	parts, pattern := strings.Split(path, "/"), strings.Split(route, "/")
	if len(parts) != len(pattern) {
		return route
	}
	for i, part := range pattern {
		switch {
		case !strings.HasPrefix(part, ":"):
			if part != parts[i] {
				return route
			}
		case part == ":token" || !id.HasShape(parts[i]):
			parts[i] = part
		}
	}
	return strings.Join(parts, "/")
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

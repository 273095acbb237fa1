// Package rest is what every HTTP application of the product has in common:
// the Fiber app with its error handler and its caller (app.go), bodies and
// answers (answer.go), and pages of collections (page.go).
package rest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/utils"
	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/rpc"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/telemetry"
)

// MaxBody is the largest body of any request: 10 MiB of customData must fit
// into an account (docs/interface/limits.md#request-size).
const MaxBody = 12 << 20

// requestTimeout bounds the work on one request. A client that disconnects does not cancel it
// (fasthttp cannot know), this does.
const requestTimeout = 15 * time.Second

// NewFiber makes the Fiber app of a process. Immutable keeps strings valid
// after the handler returned; the read buffer fits the longest URL and header
// that the interface allows.
func NewFiber(fail fiber.ErrorHandler) *fiber.App {
	app := fiber.New(fiber.Config{
		Immutable: true, CaseSensitive: true, StrictRouting: false, UnescapePath: false,
		ReadBufferSize: 40 << 10, BodyLimit: MaxBody, IdleTimeout: time.Minute, ReadTimeout: time.Minute,
		DisableStartupMessage: true, ErrorHandler: fail,
		DisablePreParseMultipartForm: true, // else a form with files is written to disk before a handler runs
		RequestMethods: []string{
			fiber.MethodGet, fiber.MethodHead, fiber.MethodPost, fiber.MethodPut, fiber.MethodDelete, fiber.MethodOptions,
		},
	})
	app.Server().CloseOnShutdown = true // asks the others to send their next request elsewhere
	return app
}

// Config describes the HTTP application of one service.
type Config struct {
	Service string
	Base    href.Base
	Signer  *caller.Signer
}

// publicPath is in the paths under /v1 that browsers and identity providers come
// to without an API key, and so without a tenant.
const samlPath = "/saml/sso/"

// New makes the HTTP application of a service: it refuses a request without a
// valid Caller, continues its trace, bounds its time, counts it, audits it (audit.go),
// and turns errors into answers.
func New(cfg Config) *fiber.App {
	app := NewFiber(func(c *fiber.Ctx, err error) error {
		if isServiceCall(c) {
			return c.JSON(logAndSetStatus(c, err))
		}
		return Fail(c, cfg.Base, err)
	})
	app.Use(auditRequest, Observe(cfg.Service))
	base := any(cfg.Base)
	app.Use(func(c *fiber.Ctx) error {
		from, err := cfg.Signer.Verify(c.Request().Header.Peek(caller.Header))
		if errors.Is(err, caller.ErrClock) {
			c.Response().SetConnectionClose() // rpc.Upstream asks the other replicas for a while
			differ := apierr.Unavailable.Because("the clocks of two processes differ by a minute or more; repeat the request later")
			return fmt.Errorf("%w (%w)", differ, err)
		}
		if err != nil {
			return apierr.Forbidden.Because("this address is for the gateway; send requests there")
		}
		if from.Tenant.IsZero() && strings.HasPrefix(c.Path(), "/v1/") && !strings.Contains(c.Path(), samlPath) {
			return apierr.Forbidden.Because("a request to the management API needs a tenant")
		}
		ctx, cancel := context.WithTimeout(caller.Into(c.UserContext(), from), requestTimeout)
		defer cancel()
		if len(c.Request().Header.Peek(caller.ChangedHeader)) > 0 {
			ctx = caller.IntoChanged(ctx)
		}
		c.SetUserContext(ctx)
		c.Locals(baseKey{}, base)
		return c.Next()
	})
	return app
}

// isInternal reports whether a request is a call of another service (package rpc).
func isServiceCall(c *fiber.Ctx) bool { return strings.HasPrefix(c.Path(), rpc.Prefix) }

// recovered turns a panic of a handler into an error.
func recoverPanic(c *fiber.Ctx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return c.Next()
}

// Caller returns the caller of the request.
func Caller(c *fiber.Ctx) caller.Caller { return caller.From(c.UserContext()) }

// SetTenant names the tenant of a request that came without one (caller.WithTenant).
func SetTenant(c *fiber.Ctx, tenant id.ID) {
	c.SetUserContext(caller.WithTenant(c.UserContext(), tenant))
}

// Observe traces and counts the requests of a process. The error of a request
// is answered here, so that its status is known.
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
			span.SetAttributes(attribute.String("http.request.method", found.method), attribute.String("http.route", found.route),
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

// labels are what a request is counted by.
type requestLabels struct {
	method, route string
	status        int
}

// series are the labels that occurred, in the form in which they are recorded:
// to make it costs more than to record.
type labelCache struct {
	mu   sync.RWMutex
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
		attribute.String("method", found.method), attribute.String("route", found.route), attribute.Int("status", found.status)))}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.options[found] = options
	return options
}

type routeKey struct{}

// SetRoute names the route of a request where Fiber's own does not: the
// gateway routes by its table.
func SetRoute(c *fiber.Ctx, route string) { c.Locals(routeKey{}, route) }

// Route returns the pattern that the request matched, never its path: a label
// has no id in it.
func Route(c *fiber.Ctx) string {
	if route, ok := c.Locals(routeKey{}).(string); ok {
		return route
	}
	// Where no route was matched Fiber makes one up from the path, without handlers.
	if route := c.Route(); route.Path != "/" && len(route.Handlers) > 0 {
		return route.Path
	}
	return "none"
}

// Fail answers a request with an error.
func Fail(c *fiber.Ctx, base href.Base, err error) error {
	refusal := logAndSetStatus(c, err)
	c.Set(fiber.HeaderContentType, MIME)
	requestID := caller.From(c.UserContext()).RequestID
	if requestID == "" { // the caller could not be read
		requestID = utils.UUIDv4()
	}
	return c.Send(refusal.Body(base.Host()+"/errors/"+strconv.Itoa(refusal.Code), requestID))
}

// refuse finds the error of the catalogue for err, sets the status and the headers
// that belong to it, and logs it when it is a fault of this product. It is the only
// function that does either.
func logAndSetStatus(c *fiber.Ctx, err error) *apierr.Error {
	refusal := catalogueError(c, err)
	// An Unavailable that wraps nothing is intentional, such as load shedding; it is not
	// logged.
	_, deliberate := err.(*apierr.Error) //nolint:errorlint // what is wrapped is a fault
	if refusal.Status >= 500 && !(deliberate && refusal.Status == apierr.Unavailable.Status) {
		slog.ErrorContext(c.UserContext(), "request failed", "method", c.Method(), "route", Route(c), "status", refusal.Status, "error",
			err.Error())
	}
	if refusal.RetryAfter > 0 {
		c.Set(fiber.HeaderRetryAfter, strconv.Itoa(int((refusal.RetryAfter+time.Second-1)/time.Second)))
	}
	if refusal.Allow != "" {
		c.Set(fiber.HeaderAllow, refusal.Allow)
	}
	if refusal.Location != "" {
		c.Set(fiber.HeaderLocation, refusal.Location)
	}
	c.Locals(codeKey{}, refusal.Code)
	c.Status(refusal.Status)
	return refusal
}

// refusalOf finds the error of the catalogue for an error of a handler or of
// Fiber.
func catalogueError(c *fiber.Ctx, err error) *apierr.Error {
	var own *fiber.Error
	if !errors.As(err, &own) {
		refusal := apierr.From(err)
		if errors.Is(refusal, apierr.NotFound) && refusal.Reason == "" {
			return resourceNotFound(c, "id")
		}
		return refusal
	}
	switch own.Code {
	case fiber.StatusNotFound:
		return apierr.UnknownPath
	case fiber.StatusMethodNotAllowed:
		refusal := *apierr.MethodNotAllowed.Because("%s is not offered on this path; use a method of the header Allow", c.Method())
		refusal.Allow = c.GetRespHeader(fiber.HeaderAllow)
		return &refusal
	case fiber.StatusRequestEntityTooLarge:
		return apierr.TooLarge.Because("the body is larger than %d bytes", MaxBody)
	case fiber.StatusRequestHeaderFieldsTooLarge, fiber.StatusRequestURITooLong:
		return apierr.TooLarge.Because("the URL or a header is too long")
	}
	if own.Code < 500 {
		return apierr.BadRequest.Because("%s", own.Message)
	}
	return apierr.Internal
}

// Serve runs an app on a listener as a part of a process. While the process drains,
// each answer closes its connection, so that none is open and idle when the process
// closes: a request that a client sends at that moment would be lost.
func Serve(p *run.Process, name string, app *fiber.App, listener net.Listener) {
	server := app.Server()
	handler := server.Handler
	server.Handler = func(c *fasthttp.RequestCtx) {
		handler(c)
		if p.Draining() {
			c.SetConnectionClose()
		}
	}
	p.Go(name, func(context.Context) error { return app.Listener(listener) })
	p.OnClose(name, func(ctx context.Context) error {
		err := app.ShutdownWithContext(ctx)
		_ = listener.Close() // also when the app had not begun to serve yet
		return err
	})
}

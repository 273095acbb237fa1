// Package rest is what every HTTP application of the product has in common:
// the Fiber app with its error handler and its caller (app.go), bodies and
// answers (answer.go), and pages of collections (page.go).
package rest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/rpc"
	"github.com/doorward/doorward/pkg/run"
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

// Package rest is what every HTTP application of the product has in common: the Fiber app and its
// middlewares (app.go), the error handler (errors.go), metrics and traces of requests (metrics.go),
// the audit log (audit.go), JSON bodies and answers (answer.go), handlers made of a rule and a view
// (resource.go), and pages of collections (page.go).
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

// requestTimeout bounds the work on one request. A client that closes its connection does not
// cancel the context of its request, because fasthttp does not notice it.
const requestTimeout = 15 * time.Second

// NewFiber makes the Fiber app of a process. Immutable keeps strings valid
// after the handler returned; the read buffer fits the longest URL and header
// that the interface allows.
func NewFiber(fail fiber.ErrorHandler) *fiber.App {
	app := fiber.New(fiber.Config{
		Immutable: true, CaseSensitive: true, StrictRouting: false, UnescapePath: false,
		ReadBufferSize: 56 << 10, BodyLimit: MaxBody, IdleTimeout: time.Minute, ReadTimeout: time.Minute,
		DisableStartupMessage: true, ErrorHandler: fail,
		DisablePreParseMultipartForm: true, // else a form with files is written to disk before a handler runs
		RequestMethods: []string{
			fiber.MethodGet, fiber.MethodHead, fiber.MethodPost, fiber.MethodPut, fiber.MethodDelete,
			fiber.MethodOptions,
		},
	})
	// answers have Connection: close, so that clients open their next connection to another replica
	app.Server().CloseOnShutdown = true
	return app
}

// Config describes the HTTP application of one service.
type Config struct {
	Service string
	Base    href.Base
	Signer  *caller.Signer
}

// samlPath is in the paths under /v1 that browsers and identity providers call without an API
// key, so that their requests have no tenant.
const samlPath = "/saml/sso/"

// New makes the HTTP application of a service. Its middlewares refuse a request without a valid
// Caller, continue the trace of the request, set its timeout, count it, write it to the audit log
// (audit.go), name what it has ended (caller.EndedHeader), and turn errors into answers (errors.go).
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
			c.Response().SetConnectionClose() // then rpc.Upstream prefers the other replicas for a while
			differ := apierr.Unavailable.Because(
				"the clocks of two processes differ by a minute or more; repeat the request later")
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
		ctx, endings := caller.CollectEndings(ctx)
		c.SetUserContext(ctx)
		c.Locals(baseKey{}, base)
		err = c.Next()
		if ended := endings.Header(); ended != "" {
			c.Set(caller.EndedHeader, ended)
		}
		return err
	})
	return app
}

// isServiceCall reports whether a request is a call of another service (package rpc).
func isServiceCall(c *fiber.Ctx) bool { return strings.HasPrefix(c.Path(), rpc.Prefix) }

// recoverPanic calls the next handler and turns its panic into an error.
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

// SetTenant sets the tenant of a request that came without one, such as that of a hosted page
// (caller.WithTenant).
func SetTenant(c *fiber.Ctx, tenant id.ID) {
	c.SetUserContext(caller.WithTenant(c.UserContext(), tenant))
}

type routeKey struct{}

// SetRoute sets what Route returns. The gateway calls it, because it does not use Fiber's
// router.
func SetRoute(c *fiber.Ctx, route string) { c.Locals(routeKey{}, route) }

// Route returns the pattern that the request matched, such as /v1/accounts/:id, and not the path,
// because the label of a metric must have no id in it.
func Route(c *fiber.Ctx) string {
	if route, ok := c.Locals(routeKey{}).(string); ok {
		return route
	}
	// Where no route matches, Fiber returns a route with the path and without handlers.
	if route := c.Route(); route.Path != "/" && len(route.Handlers) > 0 {
		return route.Path
	}
	return "none"
}

// Serve runs an app on a listener as a part of a process (graceful shutdown: pkg/run/run.go). While
// the process drains, each answer closes its connection, so that no connection is idle when the
// process closes: a request that a client sends on it at that moment would be lost.
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

package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/rest"
)

// identify sets the request id (correlation id, elsewhere X-Request-Id), under which the
// client, the logs and the services know the request.
func (g *Gateway) identify(c *fiber.Ctx) error {
	request := g.name(c)
	err := c.Next()
	c.Set(g.requestHeader, request) // last: the service's answer replaces all headers
	return err
}

func (g *Gateway) name(c *fiber.Ctx) string {
	request := uuid.NewString()
	c.SetUserContext(caller.Into(c.UserContext(), caller.Caller{RequestID: request}))
	return request
}

// fail answers a request with an error. The server itself comes here too, with
// what it could not read.
func (g *Gateway) fail(c *fiber.Ctx, err error) error {
	if unread, ok := errors.AsType[*fiber.Error](err); ok {
		switch unread.Code {
		case fiber.StatusRequestTimeout, fiber.StatusBadGateway: // the client stopped sending, or is gone
			_ = c.Context().Conn().Close()
			return nil
		case fiber.StatusRequestEntityTooLarge:
			if err = g.tooLarge(&c.Request().Header); errors.Is(err, apierr.TooLarge) {
				_ = g.refusals.countAs("too_large", err)
			} else {
				_ = g.refusals.count(err)
			}
		case fiber.StatusRequestHeaderFieldsTooLarge:
			err = g.refusals.countAs("too_large", apierr.TooLarge.Because("the headers are too large"))
		}
		if conn, ok := c.Context().Conn().(*conn); ok {
			conn.linger()
			_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout)) // the server keeps that of the answer before
		}
		c.Set(g.requestHeader, g.name(c))
		rest.SetRoute(c, "unread") // Fiber would name the path, which may hold a secret
	}
	if errors.Is(err, apierr.Unauthorized) {
		c.Set(fiber.HeaderWWWAuthenticate, g.challenge)
	}
	if limit, ok := errors.AsType[*limited](err); ok {
		c.Set("RateLimit-Policy", limit.policy)
		c.Set("RateLimit", limit.state)
	}
	if g.isClientAPI(&c.Request().Header) {
		return rest.FailClient(c, err)
	}
	if err := rest.Fail(c, g.cfg.Common.Base, err); err != nil || !wantsPage(c) {
		return err
	}
	return g.failurePage(c)
}

// refusalCounter counts the requests that the gateway itself refuses.
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

// count counts a refusal under the reason that its error has, and returns the error.
func (r *refusalCounter) count(err error) error {
	var limit *limited
	switch {
	case errors.Is(err, apierr.Unauthorized):
		return r.countAs("unauthorized", err)
	case errors.As(err, &limit):
		return r.countAs(limit.reason, err)
	}
	return err
}

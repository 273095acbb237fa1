package gateway

import (
	"errors"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"github.com/doorward/doorward/gateway/connection"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/rest"
)

// identify makes the request id (correlation id, elsewhere X-Request-Id). It is in the answer,
// in the logs and in the caller that the services get.
func (g *Gateway) identify(c *fiber.Ctx) error {
	requestID := g.newRequestID(c)
	err := c.Next()
	c.Set(g.requestHeader, requestID) // last: the service's answer replaces all headers
	return err
}

// newRequestID makes the id of a request and puts it into the context of the request.
func (g *Gateway) newRequestID(c *fiber.Ctx) string {
	requestID := uuid.NewString()
	c.SetUserContext(caller.Into(c.UserContext(), caller.Caller{RequestID: requestID}))
	return requestID
}

// handleError is the error handler: it answers a request with an error. The server calls it too,
// for a request that it could not read.
func (g *Gateway) handleError(c *fiber.Ctx, err error) error {
	if readError, ok := errors.AsType[*fiber.Error](err); ok {
		switch readError.Code {
		case fiber.StatusRequestTimeout, fiber.StatusBadGateway: // the client stopped sending, or closed the connection
			_ = c.Context().Conn().Close()
			return nil
		case fiber.StatusRequestHeaderFieldsTooLarge:
			err = g.refusals.countAs("too_large", apierr.TooLarge.Because("the headers are too large"))
		}
		if conn, ok := c.Context().Conn().(*connection.Conn); ok {
			conn.Linger()
			_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout)) // the deadline of the last answer would still apply
		}
		c.Set(g.requestHeader, g.newRequestID(c))
		rest.SetRoute(c, "unread") // Fiber would log the path, which may hold a secret
	}
	if errors.Is(err, apierr.Unauthorized) {
		c.Set(fiber.HeaderWWWAuthenticate, g.wwwAuthenticate)
	}
	if limit, ok := errors.AsType[*limitError](err); ok {
		c.Set("RateLimit-Policy", limit.policy)
		c.Set("RateLimit", limit.state)
		if r := g.router.match(c.Request().URI().Path()); r != nil && r.clients {
			return rest.FailOAuth(c, g.cfg.Common.Base, err)
		}
	}
	if g.isClientAPI(&c.Request().Header) {
		return rest.FailClient(c, err)
	}
	if err := rest.Fail(c, g.cfg.Common.Base, err); err != nil || !wantsPage(c) {
		return err
	}
	return g.failurePage(c, apierr.From(err).Reason)
}

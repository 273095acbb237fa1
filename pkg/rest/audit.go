package rest

import (
	"log/slog"
	"regexp"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/telemetry"
)

// codeKey is where refuse leaves the code of the error that answers a request.
type codeKey struct{}

// unaudited are the routes by which an agent of a directory reports all day long.
var routesWithoutAudit = map[string]bool{
	"/v1/agents/:id/ping": true, "/v1/agents/:id/sync": true, "/v1/agents/:id/authentications/:check": true,
}

// created is the path that ends the address of a resource which a request has made.
var createdResource = regexp.MustCompile(`/v1/[A-Za-z]+/([0-9A-Za-z]{1,32})$`)

// loggedID is an id that may stand in a log. Whatever else a client wrote into the
// path may not.
var safeID = regexp.MustCompile(`^[0-9A-Za-z]{1,32}$`)

// audited writes a line of the audit log for each request of a client that asks for a
// change, also for one that is refused (docs/operations.md#audit-log). It calls
// handlers that have answered their error already.
func auditRequest(c *fiber.Ctx) error {
	if err := c.Next(); err != nil {
		return err
	}
	switch c.Method() {
	case fiber.MethodGet, fiber.MethodHead, fiber.MethodOptions:
		return nil
	}
	route, status := Route(c), c.Response().StatusCode()
	if isServiceCall(c) || routesWithoutAudit[route] {
		return nil
	}
	attrs := []slog.Attr{slog.String("method", c.Method()), slog.String("route", route), slog.Int("status", status)}
	if id := c.Params("id"); safeID.MatchString(id) {
		attrs = append(attrs, slog.String("id", id))
	}
	if found := createdResource.FindStringSubmatch(c.GetRespHeader(fiber.HeaderLocation)); found != nil && status == fiber.StatusCreated {
		attrs = append(attrs, slog.String("created", found[1]))
	}
	if code, ok := c.Locals(codeKey{}).(int); ok {
		attrs = append(attrs, slog.Int("code", code))
	}
	telemetry.Audit(c.UserContext(), "request", attrs...)
	return nil
}

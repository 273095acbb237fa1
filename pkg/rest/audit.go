package rest

import (
	"log/slog"
	"regexp"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/telemetry"
)

// codeKey is the key under which logAndSetStatus leaves the error code of a request.
type codeKey struct{}

// routesWithoutAudit are the routes that an LDAP agent calls all the time.
var routesWithoutAudit = map[string]bool{
	"/v1/agents/:id/ping": true, "/v1/agents/:id/sync": true, "/v1/agents/:id/authentications/:check": true,
}

// createdResource matches the path at the end of a Location: that of a resource that was created.
var createdResource = regexp.MustCompile(`/v1/[A-Za-z]+/([0-9A-Za-z]{1,32})$`)

// safeID matches an id that may be logged. Other text of a path may hold personal data or
// forge log lines.
var safeID = regexp.MustCompile(`^[0-9A-Za-z]{1,32}$`)

// auditRequest is the middleware that writes a line of the audit log for each request of a client
// that changes something, also if it is refused (docs/operations.md#audit-log). The
// handlers behind it have answered their errors already.
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
	if found := createdResource.FindStringSubmatch(c.GetRespHeader(fiber.HeaderLocation)); found != nil &&
		status == fiber.StatusCreated {
		attrs = append(attrs, slog.String("created", found[1]))
	}
	if code, ok := c.Locals(codeKey{}).(int); ok {
		attrs = append(attrs, slog.Int("code", code))
	}
	telemetry.Audit(c.UserContext(), "request", attrs...)
	return nil
}

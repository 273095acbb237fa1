package rest

import (
	"errors"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
)

// FailClient answers a request to a Client API with an error: its status and its
// message, nothing else (docs/interface/client-api.md#errors). Token endpoints answer
// as RFC 6749, section 5.2, or with what a login demands.
func FailClient(c *fiber.Ctx, err error) error {
	refusal := logAndSetStatus(c, err)
	if strings.Contains(c.Path(), "/oauth/") && c.Method() != fiber.MethodOptions &&
		refusal.Status != http.StatusNotFound &&
		refusal.Status != http.StatusMethodNotAllowed {
		return failToken(c, refusal)
	}
	return c.JSON(fiber.Map{"status": refusal.Status, "message": refusal.Message})
}

func failToken(c *fiber.Ctx, refusal *apierr.Error) error {
	code, _ := refusal.Fields["error"].(string)
	switch {
	case refusal.RetryAfter > 0 || refusal.Status >= http.StatusInternalServerError:
		code = "temporarily_unavailable"
	case errors.Is(refusal, apierr.TenantSuspended):
		code = "access_denied"
	case code == "access_denied":
		return c.JSON(refusal.Fields)
	case code == "invalid_client":
		c.Status(http.StatusUnauthorized)
	case refusal.Status != http.StatusRequestEntityTooLarge:
		c.Status(http.StatusBadRequest)
	}
	if code == "" {
		code = "invalid_request"
	}
	return c.JSON(fiber.Map{"error": code, "message": refusal.Message})
}

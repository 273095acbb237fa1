package rest

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/href"
)

// OAuthErrors is the middleware that answers an error as RFC 6749, section 5.2, says: error, error_description and
// error_uri. The member error is the field of that name of the error. A path or a method that is not there is
// answered as everywhere.
func OAuthErrors(base href.Base) fiber.Handler {
	return func(c *fiber.Ctx) error {
		err := c.Next()
		if status := apierr.From(err); err == nil || status.Status == http.StatusNotFound ||
			status.Status == http.StatusMethodNotAllowed {
			return err
		}
		return FailOAuth(c, base, err)
	}
}

// FailOAuth answers with an error as OAuthErrors says.
func FailOAuth(c *fiber.Ctx, base href.Base, err error) error {
	refusal := logAndSetStatus(c, err)
	code, _ := refusal.Fields["error"].(string)
	switch {
	case refusal.RetryAfter > 0 || refusal.Status == http.StatusServiceUnavailable:
		code = "temporarily_unavailable"
	case refusal.Status >= http.StatusInternalServerError:
		code = "server_error"
	case errors.Is(refusal, apierr.TenantSuspended):
		code = "access_denied"
	case code == "":
		code = "invalid_request"
	}
	return c.JSON(fiber.Map{
		"error": code, "error_description": refusal.Description(),
		"error_uri": base.Host() + "/errors/" + strconv.Itoa(refusal.Code),
	})
}

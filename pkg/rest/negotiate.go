package rest

import (
	"regexp"
	"strings"

	"github.com/gofiber/fiber/v2"
)

var charset = regexp.MustCompile(`;\s*charset\s*=[^;,]*`)

// negotiate returns the media type that the client prefers among the offers (content negotiation
// by the header Accept), or "" if it accepts none. Without the header it is the first offer. A
// charset in the header is ignored, because all answers are UTF-8.
func negotiate(c *fiber.Ctx, offers ...string) string {
	accepted := strings.ToLower(c.Get(fiber.HeaderAccept))
	c.Request().Header.Set(fiber.HeaderAccept, charset.ReplaceAllString(accepted, ""))
	return c.Accepts(offers...)
}

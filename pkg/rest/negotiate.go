package rest

import (
	"regexp"
	"strings"

	"github.com/gofiber/fiber/v2"
)

var charset = regexp.MustCompile(`;\s*charset\s*=[^;,]*`)

// preferred returns the media type among the offers, in lower case, that the client
// accepts before the others, or nothing. Without the header Accept it is the first
// offer. A charset that is asked for says nothing: all that is sent is UTF-8.
func negotiate(c *fiber.Ctx, offers ...string) string {
	accepted := strings.ToLower(c.Get(fiber.HeaderAccept))
	c.Request().Header.Set(fiber.HeaderAccept, charset.ReplaceAllString(accepted, ""))
	return c.Accepts(offers...)
}

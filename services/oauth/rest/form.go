package rest

import (
	"mime"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth"
)

// maxForm is the body limit of a form, in bytes (docs/interface/limits.md#request-size).
const maxForm = 64 << 10

// charsets are the charsets that the Content-Type of a form may name. All are read as UTF-8
// (docs/interface/limits.md#encoding-and-cors).
var charsets = []string{"utf-8", "iso-8859-1", "us-ascii"}

// readForm reads the form of a token or revocation endpoint from the body or, where that is
// empty, from the query (docs/interface/oauth.md#endpoints). Neither is written to logs or
// traces.
func readForm(c *fiber.Ctx) (oauth.Form, error) {
	if len(c.Body()) == 0 {
		return parseForm(string(c.Request().URI().QueryString()))
	}
	return bodyForm(c)
}

// bodyForm reads the form in the body.
func bodyForm(c *fiber.Ctx) (oauth.Form, error) {
	kind, params, err := mime.ParseMediaType(c.Get(fiber.HeaderContentType))
	if err != nil || kind != fiber.MIMEApplicationForm {
		return nil, invalidRequest(apierr.Format.Because("the Content-Type of the body must be %s", fiber.MIMEApplicationForm))
	}
	if charset := params["charset"]; charset != "" && !slices.Contains(charsets, strings.ToLower(charset)) {
		return nil, invalidRequest(apierr.Encoding.Because("the charset %q is not supported; send UTF-8", charset))
	}
	return parseForm(string(c.Body()))
}

// parseForm parses a form. A repeated field is refused, a field without a value counts as
// absent (RFC 6749, section 3.2).
func parseForm(body string) (oauth.Form, error) {
	if len(body) > maxForm {
		return nil, apierr.TooLarge.Because("the form is larger than %d bytes", maxForm)
	}
	values, err := url.ParseQuery(body)
	if err != nil {
		return nil, invalidRequest(apierr.Format.Because("the form must consist of name=value pairs joined by &"))
	}
	fields := oauth.Form{}
	for name, given := range values {
		switch {
		case len(given) > 1:
			return nil, invalidRequest(apierr.ParameterRepeated.Because("the form field %q must not be repeated", name))
		case !utf8.ValidString(given[0]):
			return nil, invalidRequest(apierr.Encoding.Because("the form field %q is not valid UTF-8", name))
		case strings.ContainsRune(given[0], 0):
			return nil, invalidRequest(apierr.Format.Because("the form field %q must not contain the character NUL", name))
		case given[0] != "":
			fields[name] = secure.Secret(given[0])
		}
	}
	return fields, nil
}

func invalidRequest(refusal *apierr.Error) error { return refusal.With("error", "invalid_request") }

// noStore is the middleware that forbids caches to store the answer (Cache-Control:
// no-store; RFC 6749, section 5.1).
func noStore(c *fiber.Ctx) error {
	err := c.Next()
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Set(fiber.HeaderPragma, "no-cache")
	return err
}

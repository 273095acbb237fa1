package rest

import (
	"cmp"
	"net/url"
	"slices"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/services/idsite/pages"
	"github.com/doorward/doorward/services/idsite/screens"
)

// translator returns a text in the language of a browser.
type translator func(key string, values ...string) string

func translatorOf(c *fiber.Ctx) translator {
	language := languageOf(c)
	return func(key string, values ...string) string { return pages.Text(language, key, values...) }
}

func languageOf(c *fiber.Ctx) string { return screens.Language(c.Get(fiber.HeaderAcceptLanguage)) }

// refusalText says why the service has refused something: the text of a key or, on an
// English page, the message of the service, which is in English and says more.
func refusalText(c *fiber.Ctx, err error, key string) string {
	if languageOf(c) == "en" {
		return apierr.From(err).Message
	}
	return translatorOf(c)(key)
}

// readForm reads what a page sent, safe from cross-site request forgery (CSRF): the token
// in it is known to the recipient of the mail alone, and a browser that says that
// another site sent the form is refused all the same.
func (h *handlers) readForm(c *fiber.Ctx) (url.Values, error) {
	if origin := c.Get(fiber.HeaderOrigin); origin != "" && origin != h.base.Host() {
		return nil, apierr.Forbidden.Because("the form was sent by the page of another site")
	}
	form, err := url.ParseQuery(string(c.Body()))
	if err != nil {
		return nil, apierr.BadRequest.Because("the body is not a form")
	}
	for name, values := range form {
		if slices.ContainsFunc(values, func(value string) bool { return !field.IsText(value) }) {
			return nil, apierr.BadRequest.Because("the form field %q must be UTF-8 without the character NUL", name)
		}
	}
	return form, nil
}

// renderError answers an error with a page.
func (h *handlers) renderError(c *fiber.Ctx, err error) error {
	return h.renderLinkError(c, err, "anotherLink")
}

// renderPage answers with a page that is not stored or framed, and whose address no other
// site learns from a Referer.
func (h *handlers) renderPage(c *fiber.Ctx, status int, p pages.Page) error {
	p.Product, p.Language = cmp.Or(p.Product, h.svc.Product()), languageOf(c)
	body, err := pages.Render(p)
	if err != nil {
		return err
	}
	pageHeaders(c, pages.Policy, "same-origin") // with no-referrer browsers send forms with the origin null
	return c.Status(status).Send(body)
}

// pageHeaders sets the security headers of a page: no frames (clickjacking), no sniffing, no
// caching.
func pageHeaders(c *fiber.Ctx, policy, referrer string) {
	c.Set(fiber.HeaderContentSecurityPolicy, policy)
	c.Set(fiber.HeaderXFrameOptions, "DENY")
	c.Set(fiber.HeaderReferrerPolicy, referrer)
	c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Set("Cross-Origin-Opener-Policy", "same-origin")
	c.Vary(fiber.HeaderAcceptLanguage)
	c.Set(fiber.HeaderContentType, fiber.MIMETextHTMLCharsetUTF8)
}

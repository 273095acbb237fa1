package rest

import (
	"cmp"
	"net/url"
	"slices"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/redirecturi"
	"github.com/doorward/doorward/services/idsite/pages"
	"github.com/doorward/doorward/services/idsite/screens"
)

// The pages that need no script: their texts, their forms and their security headers. What the pages
// show is in link.go and signup.go, and the HTML in ../pages.

// translator returns the text of a key in the language of a browser, with values put in.
type translator func(key string, values ...string) string

// translatorOf returns the translator for the header Accept-Language.
func translatorOf(c *fiber.Ctx) translator {
	language := languageOf(c)
	return func(key string, values ...string) string { return pages.Text(language, key, values...) }
}

// languageOf is the language of a page for the header Accept-Language.
func languageOf(c *fiber.Ctx) string { return screens.Language(c.Get(fiber.HeaderAcceptLanguage)) }

// refusalText is the text of a page for an error: the text of a key or, on an English page, the
// message of the error, which is in English and more precise.
func refusalText(c *fiber.Ctx, err error, key string) string {
	if languageOf(c) == "en" {
		return apierr.From(err).Message
	}
	return translatorOf(c)(key)
}

// readForm reads the form of a page. Against cross-site request forgery (CSRF) it refuses a form
// whose Origin is another site. It does not check a token: the form of a mailed link has a token
// that only the recipient of the mail knows, and requestSignUp (signup.go) compares the CSRF
// token of the sign-up form with its cookie.
func (h *handlers) readForm(c *fiber.Ctx) (url.Values, error) {
	if origin := c.Get(fiber.HeaderOrigin); origin != "" && !redirecturi.IsListedOrigin(origin, []string{h.base.Host()}) {
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

// renderError answers an error with a page: the error page, or for apierr.NotFound the page of an
// expired link. It returns an error of this service (5xx), which the error handler answers.
func (h *handlers) renderError(c *fiber.Ctx, err error) error {
	return h.renderLinkError(c, err, "anotherLink")
}

// renderPage answers with a page. It is not cached, cannot be framed, and no other site gets its
// address by a Referer.
func (h *handlers) renderPage(c *fiber.Ctx, status int, p pages.Page) error {
	return h.renderPageWith(c, status, pages.Policy, p)
}

// renderPageWith is renderPage with another Content-Security-Policy.
func (h *handlers) renderPageWith(c *fiber.Ctx, status int, policy string, p pages.Page) error {
	p.Product, p.Language = cmp.Or(p.Product, h.svc.Product()), languageOf(c)
	body, err := pages.Render(p)
	if err != nil {
		return err
	}
	pageHeaders(c, policy, "same-origin") // with no-referrer browsers send forms with the origin null
	return c.Status(status).Send(body)
}

// pageHeaders sets the security headers of a page: Content-Security-Policy (CSP), no frames
// (clickjacking), no content sniffing, no caching.
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

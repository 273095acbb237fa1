package rest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite"
	"github.com/doorward/doorward/services/idsite/pages"
)

// The session cookie of single sign-on (SSO), and the cookie that binds a login to the browser that
// has begun it (login CSRF). Both are sent to /sso alone.
const (
	sessionCookie    = "sso"
	browserCookie    = "sso.rq"
	browserCookieTTL = 30 * time.Minute
)

// sso answers GET /sso. With jwtRequest it begins a hosted login, with jwtResponse it creates the
// session after the login, and with signOn it continues the login that a SAML service provider
// has requested.
func (h *handlers) sso(c *fiber.Ctx) error {
	if c.Query("jwtResponse") != "" {
		return h.redirectBy(c, "jwtResponse", h.svc.FinishLogin)
	}
	if c.Query("signOn") != "" {
		return h.redirectBy(c, "signOn", h.svc.ContinueSignOn)
	}
	return h.redirectBy(c, "jwtRequest", h.svc.BeginLogin)
}

// headOfRedirect answers HEAD of endpoints whose GET consumes a token: a link scanner or a preview
// must not consume the token.
func headOfRedirect(c *fiber.Ctx) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Status(http.StatusOK)
	return nil
}

// ssoLogout answers GET /sso/logout: it ends the session of the browser. With RelayState and without
// jwtRequest the browser comes back from the single logout (SLO) of a SAML identity provider.
func (h *handlers) ssoLogout(c *fiber.Ctx) error {
	if relay := c.Query("RelayState"); c.Query("jwtRequest") == "" && relay != "" {
		return h.ssoLogoutCallback(c, secure.Secret(relay), secure.Secret(c.Query("SAMLResponse")))
	}
	return h.redirectBy(c, "jwtRequest", h.svc.Logout)
}

// redirectBy redirects the browser to the address that a rule returns, and sets the cookies. The
// error of a rule is answered with a page, or with JSON for a client that accepts no page.
func (h *handlers) redirectBy(
	c *fiber.Ctx, parameter string, rule func(context.Context, idsite.BrowserRequest) (idsite.Redirect, error),
) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Set(fiber.HeaderReferrerPolicy, "no-referrer")
	to, err := rule(c.UserContext(), idsite.BrowserRequest{
		Token: secure.Secret(c.Query(parameter)), Browser: secure.Secret(c.Cookies(browserCookie)),
		Session: secure.Secret(c.Cookies(sessionCookie)),
	})
	if err != nil {
		return h.renderLoginError(c, err)
	}
	if to.Browser != "" {
		c.Cookie(ssoCookie(browserCookie, to.Browser.Reveal(), browserCookieTTL))
	}
	switch {
	case to.EndSession:
		expired := ssoCookie(sessionCookie, "", 0)
		expired.Expires = time.Unix(1, 0)
		c.Cookie(expired)
	case to.Session != "":
		c.Cookie(ssoCookie(sessionCookie, to.Session.Reveal(), to.SessionLife))
	}
	c.Set(fiber.HeaderLocation, to.Location)
	c.Status(http.StatusFound)
	return nil
}

// ssoCookie makes a cookie of single sign-on with its flags (HttpOnly, Secure, SameSite)
// (docs/interface/id-site.md#sessions).
func ssoCookie(name, value string, life time.Duration) *fiber.Cookie {
	return &fiber.Cookie{
		Name: name, Value: value, Path: "/sso", MaxAge: int(life / time.Second), HTTPOnly: true, Secure: true,
		SameSite: fiber.CookieSameSiteNoneMode,
	}
}

// renderLoginError answers an error of a login: with a page for a browser and JSON for a program.
func (h *handlers) renderLoginError(c *fiber.Ctx, err error) error {
	refusal := apierr.From(err)
	if refusal.Status >= http.StatusInternalServerError || errors.Is(err, apierr.TooMany) ||
		!strings.Contains(c.Get(fiber.HeaderAccept), fiber.MIMETextHTML) {
		return err
	}
	t := translatorOf(c)
	return h.renderPage(c, refusal.Status, pages.Page{
		Product: idsite.ApplicationNameOf(err), Title: t("requestTitle"), Text: t("requestText"),
		Detail: t("requestReason", "reason", refusal.Reason),
	})
}

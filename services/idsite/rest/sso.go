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

// The session cookie of single sign-on, and the cookie of a browser that is at a
// login. Both are sent to the redirecting endpoints alone.
const (
	sessionCookie    = "sso"
	browserCookie    = "sso.rq"
	browserCookieTTL = 30 * time.Minute
)

// sso begins a hosted login, or with jwtResponse makes the session of one that has
// ended, or with samlSignOn goes on with one that a SAML service provider asked for.
func (h *handlers) sso(c *fiber.Ctx) error {
	if c.Query("jwtResponse") != "" {
		return h.redirectBy(c, "jwtResponse", h.svc.FinishLogin)
	}
	if c.Query("signOn") != "" {
		return h.redirectBy(c, "signOn", h.svc.ContinueSignOn)
	}
	return h.redirectBy(c, "jwtRequest", h.svc.BeginLogin)
}

// headOfRedirect answers HEAD of the endpoints whose GET uses a token up: a scanner or a
// preview that looks at a link must not.
func headOfRedirect(c *fiber.Ctx) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Status(http.StatusOK)
	return nil
}

// ssoLogout ends the session of the browser. With RelayState and without a request
// it comes back from a logout at a SAML identity provider.
func (h *handlers) ssoLogout(c *fiber.Ctx) error {
	if relay := c.Query("RelayState"); c.Query("jwtRequest") == "" && relay != "" {
		return h.ssoLogoutCallback(c, secure.Secret(relay), secure.Secret(c.Query("SAMLResponse")))
	}
	return h.redirectBy(c, "jwtRequest", h.svc.Logout)
}

// redirectBy sends the browser where a rule says. A token that leads nowhere is a
// page, or JSON for a client that does not ask for a page.
func (h *handlers) redirectBy(c *fiber.Ctx, parameter string, rule func(context.Context, idsite.BrowserRequest) (idsite.Redirect, error)) error {
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

// ssoCookie makes a session cookie of single sign-on with its flags
// (docs/interface/id-site.md#sessions).
func ssoCookie(name, value string, life time.Duration) *fiber.Cookie {
	return &fiber.Cookie{
		Name: name, Value: value, Path: "/sso", MaxAge: int(life / time.Second), HTTPOnly: true, Secure: true,
		SameSite: fiber.CookieSameSiteNoneMode,
	}
}

// renderLoginError answers a browser with a page and a program with JSON.
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

package rest

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite"
	"github.com/doorward/doorward/services/idsite/journey"
	"github.com/doorward/doorward/services/idsite/pages"
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

// redirectBy redirects the browser to the address that a rule returns for the token of a parameter.
func (h *handlers) redirectBy(
	c *fiber.Ctx, parameter string, rule func(context.Context, idsite.BrowserRequest) (idsite.Redirect, error),
) error {
	in := browserRequest(c)
	in.Token = secure.Secret(c.Query(parameter))
	to, err := rule(c.UserContext(), in)
	return h.redirect(c, http.StatusFound, to, err)
}

// redirect sends a browser on with its cookies, by a status or by a page that posts a form. The error of a rule is
// answered with a page, or with JSON for a client that accepts no page.
func (h *handlers) redirect(c *fiber.Ctx, status int, to journey.Redirect, err error) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Set(fiber.HeaderReferrerPolicy, "no-referrer")
	if err != nil {
		return h.renderLoginError(c, err)
	}
	if to.Browser != "" {
		setLoginCookie(c, hostedCookie, to.Browser)
	}
	switch {
	case to.EndSession:
		clearCookie(c, sessionCookie)
	case to.Session != "":
		setCookie(c, sessionCookie, to.Session, to.SessionLife)
	}
	if to.Form != nil {
		return h.renderForm(c, to)
	}
	c.Set(fiber.HeaderLocation, to.Location)
	c.Status(status)
	return nil
}

// renderLoginError answers an error of a login: with a page for a browser and JSON for a program.
func (h *handlers) renderLoginError(c *fiber.Ctx, err error) error {
	if !apierr.IsRefusal(err) || errors.Is(err, apierr.TooMany) || !acceptsPage(c) {
		return err
	}
	refusal := apierr.From(err)
	t, origin := translatorOf(c), idsite.OriginOf(err)
	return h.renderPage(c, refusal.Status, pages.Page{
		Product: origin.Name, Title: t("requestTitle"), Text: t("requestText"),
		Detail: t("requestReason", "reason", refusal.Reason), Link: homeLink(t, origin),
	})
}

// acceptsPage reports whether the client is a browser that shows a page, not a program.
func acceptsPage(c *fiber.Ctx) bool {
	return strings.Contains(c.Get(fiber.HeaderAccept), fiber.MIMETextHTML)
}

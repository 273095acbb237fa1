package rest

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite"
)

// authorizeCookie binds a login at a provider to the browser that began it. It is
// sent where a link leads to, and not with what pages of others ask for.
const (
	authorizeCookie = "authorize.rq"
	authorizeLife   = 30 * time.Minute
)

// leaveFor sends a browser to another site, which does not learn where it comes from.
func leaveFor(c *fiber.Ctx, location string) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Set(fiber.HeaderReferrerPolicy, "no-referrer")
	c.Set(fiber.HeaderLocation, location)
	c.Status(http.StatusFound)
	return nil
}

// authorize begins a login at the provider of a directory.
func (c *clientCall) authorize(f *fiber.Ctx) error {
	// A client may append a query of its own to an authorizeUri, with another question mark.
	store, _, _ := strings.Cut(f.Query("account_store_href"), "?")
	in := idsite.Authorize{
		ResponseType: f.Query("response_type"), AccountStore: store, RedirectURI: f.Query("redirect_uri"),
		Scope: f.Query("scope"), Organization: f.Query("organization_href"), NameKey: f.Query("organization_name_key"),
		Self: c.self, Browser: secure.Secret(f.Cookies(authorizeCookie)),
	}
	if f.Context().QueryArgs().Has("state") {
		state := f.Query("state")
		in.State = &state
	}
	location, browser, err := c.Authorize(f.UserContext(), in)
	if err != nil {
		return err
	}
	f.Cookie(&fiber.Cookie{
		Name: authorizeCookie, Value: browser.Reveal(), Path: "/", MaxAge: int(authorizeLife / time.Second), HTTPOnly: true, Secure: true,
		SameSite: fiber.CookieSameSiteLaxMode,
	})
	return leaveFor(f, location)
}

// providerReturn reads what a provider has sent along with a browser.
func providerReturn(f *fiber.Ctx, cookie string) idsite.ProviderReturn {
	return idsite.ProviderReturn{
		State: secure.Secret(f.Query("state")), Code: secure.Secret(f.Query("code")), Error: f.Query("error"),
		ErrorDescription: f.Query("error_description"), Token: secure.Secret(f.Query("oauth_token")),
		Verifier: secure.Secret(f.Query("oauth_verifier")), Denied: f.Query("denied") != "", Browser: secure.Secret(f.Cookies(cookie)),
	}
}

// authorized ends a login at a provider.
func (c *clientCall) authorized(f *fiber.Ctx) error {
	location, err := c.Authorized(f.UserContext(), providerReturn(f, authorizeCookie))
	if err != nil {
		return err
	}
	return leaveFor(f, location)
}

// maxProviderForm bounds a form that a provider lets the browser post.
const maxProviderForm = 16 << 10

// repost asks the browser for a GET of what a provider let it post: a cookie that is
// not sent with posts of other sites comes along then.
func repost(f *fiber.Ctx, to string) error {
	form, err := url.ParseQuery(string(f.Body()))
	if err != nil || len(f.Body()) > maxProviderForm {
		return apierr.Format.Because("the body is not a form of name=value pairs joined by &")
	}
	query := url.Values{}
	for _, name := range []string{"state", "code", "error", "error_description"} {
		if form.Has(name) {
			query.Set(name, form.Get(name))
		}
	}
	if err := leaveFor(f, to+"?"+query.Encode()); err != nil {
		return err
	}
	f.Status(http.StatusSeeOther)
	return nil
}

func (c *clientCall) authorizedByForm(f *fiber.Ctx) error {
	return repost(f, c.self+"/authorize/callback")
}

// fromProvider ends a login at a provider that a hosted page began.
func (h *handlers) fromProvider(c *fiber.Ctx) error {
	location, err := h.svc.ReturnFromProvider(c.UserContext(), providerReturn(c, browserCookie))
	if err != nil {
		return h.refusedHosted(c, err)
	}
	return leaveFor(c, location)
}

func (h *handlers) fromProviderByForm(c *fiber.Ctx) error {
	return repost(c, h.base.Host()+"/sso/provider")
}

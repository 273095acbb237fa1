package rest

import (
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/services/idsite"
)

// redirectTo redirects a browser, without a Referer.
func redirectTo(c *fiber.Ctx, location string) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Set(fiber.HeaderReferrerPolicy, "no-referrer")
	c.Set(fiber.HeaderLocation, location)
	c.Status(http.StatusFound)
	return nil
}

// authorize begins a login at the provider of a directory (social login). Its callback is in
// providercallback.go.
func (c *clientCall) authorize(f *fiber.Ctx) error {
	// A client may append a query of its own to an authorizeUri, with another question mark.
	store, _, _ := strings.Cut(f.Query("account_store_href"), "?")
	in := idsite.Authorize{
		ResponseType: f.Query("response_type"), AccountStore: store, RedirectURI: f.Query("redirect_uri"),
		Scope: f.Query("scope"), Organization: f.Query("organization_href"), NameKey: f.Query("organization_name_key"),
		Self: c.baseURL,
	}
	if f.Context().QueryArgs().Has("state") {
		state := f.Query("state")
		in.State = &state
	}
	location, browser, err := c.Authorize(f.UserContext(), in)
	if err != nil {
		return c.renderLoginError(f, err) // the browser is at this address, and no script reads the answer
	}
	setLoginCookie(f, authorizeCookie, browser)
	return redirectTo(f, location)
}

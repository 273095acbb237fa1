package rest

import (
	"net/http"
	"net/url"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/journey"
)

// The callbacks (redirect_uri) of social logins. The state is verified in the package idsite
// (providercallback.go).

// readProviderResponse reads the parameters that a provider has added to its redirect, and the
// cookies of the browser for a kind of login.
func readProviderResponse(f *fiber.Ctx, cookie string) journey.ProviderResponse {
	return journey.ProviderResponse{
		State: secure.Secret(f.Query("state")), Code: secure.Secret(f.Query("code")), Error: f.Query("error"),
		ErrorDescription: f.Query("error_description"), Token: secure.Secret(f.Query("oauth_token")),
		Verifier: secure.Secret(f.Query("oauth_verifier")), Denied: f.Query("denied") != "",
		Browsers: readLoginCookies(f, cookie),
	}
}

// authorizeCallback is the callback of a social login that the Client API began.
func (c *clientCall) authorizeCallback(f *fiber.Ctx) error {
	location, err := c.AuthorizeCallback(f.UserContext(), readProviderResponse(f, authorizeCookie))
	if err != nil {
		return c.renderLoginError(f, err)
	}
	return redirectTo(f, location)
}

// maxProviderForm bounds a form that a provider makes the browser post, in bytes.
const maxProviderForm = 16 << 10

// redirectFormAsGet answers a callback by POST (response_mode=form_post) with a redirect to the
// same callback by GET. The browser sends the cookie of the login, which has SameSite=Lax, with
// the GET and not with the POST of another site.
func redirectFormAsGet(f *fiber.Ctx, to string) error {
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
	if err := redirectTo(f, to+"?"+query.Encode()); err != nil {
		return err
	}
	f.Status(http.StatusSeeOther)
	return nil
}

// authorizeCallbackByForm is the callback of the Client API by POST.
func (c *clientCall) authorizeCallbackByForm(f *fiber.Ctx) error {
	return redirectFormAsGet(f, c.baseURL+"/authorize/callback")
}

// providerCallback is the callback of a social login that a hosted page began.
func (h *handlers) providerCallback(c *fiber.Ctx) error {
	location, err := h.svc.ProviderCallback(c.UserContext(), readProviderResponse(c, hostedCookie))
	if err != nil {
		return h.renderLoginError(c, err)
	}
	return redirectTo(c, location)
}

// providerCallbackByForm is the callback of a hosted page by POST.
func (h *handlers) providerCallbackByForm(c *fiber.Ctx) error {
	return redirectFormAsGet(c, h.base.Host()+"/sso/provider")
}

package rest

import (
	"net/http"
	"net/url"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite"
)

// readProviderResponse reads what a provider has sent along with a browser.
func readProviderResponse(f *fiber.Ctx, cookie string) idsite.ProviderResponse {
	return idsite.ProviderResponse{
		State: secure.Secret(f.Query("state")), Code: secure.Secret(f.Query("code")), Error: f.Query("error"),
		ErrorDescription: f.Query("error_description"), Token: secure.Secret(f.Query("oauth_token")),
		Verifier: secure.Secret(f.Query("oauth_verifier")), Denied: f.Query("denied") != "", Browser: secure.Secret(f.Cookies(cookie)),
	}
}

// authorizeCallback ends a login at a provider.
func (c *clientCall) authorizeCallback(f *fiber.Ctx) error {
	location, err := c.AuthorizeCallback(f.UserContext(), readProviderResponse(f, authorizeCookie))
	if err != nil {
		return err
	}
	return redirectTo(f, location)
}

// maxProviderForm bounds a form that a provider lets the browser post.
const maxProviderForm = 16 << 10

// redirectFormAsGet asks the browser for a GET of what a provider let it post: a cookie that is
// not sent with posts of other sites comes along then.
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

func (c *clientCall) authorizeCallbackByForm(f *fiber.Ctx) error {
	return redirectFormAsGet(f, c.baseURL+"/authorize/callback")
}

// providerCallback ends a login at a provider that a hosted page began.
func (h *handlers) providerCallback(c *fiber.Ctx) error {
	location, err := h.svc.ProviderCallback(c.UserContext(), readProviderResponse(c, browserCookie))
	if err != nil {
		return h.renderLoginError(c, err)
	}
	return redirectTo(c, location)
}

func (h *handlers) providerCallbackByForm(c *fiber.Ctx) error {
	return redirectFormAsGet(c, h.base.Host()+"/sso/provider")
}

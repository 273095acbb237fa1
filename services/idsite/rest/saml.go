package rest

import (
	"mime"
	"net/http"
	"net/url"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite"
	"github.com/doorward/doorward/services/idsite/pages"
	"github.com/doorward/doorward/services/idsite/screens"
)

// maxSAMLForm bounds the body that an identity provider or a service provider makes a browser post, in
// bytes (docs/interface/limits.md#request-size).
const maxSAMLForm = 512 << 10

// beginSAML redirects the browser to the SAML identity provider of a directory.
func (h *handlers) beginSAML(c *fiber.Ctx) error {
	at, err := rest.ID(c, "id")
	if err != nil {
		return err
	}
	location, err := h.svc.BeginSAML(c.UserContext(), at, secure.Secret(c.Query("accessToken")))
	if err != nil {
		return h.renderLoginError(c, err)
	}
	return redirectTo(c, location)
}

// pageBeginSAML returns to a hosted page the address of a directory's identity provider.
func (h *handlers) pageBeginSAML(c *fiber.Ctx, page *idsite.PageAPI, at id.ID, _ noBody) error {
	location, err := page.BeginSAML(c.UserContext(), at, c.Query("accountStore.href"))
	if err != nil {
		return err
	}
	c.Set(h.redirectHeader, location)
	return c.SendStatus(http.StatusNoContent)
}

// finishSAML is the assertion consumer service (ACS): it answers the SAML response of the identity
// provider of a directory.
func (h *handlers) finishSAML(c *fiber.Ctx) error {
	at, err := rest.ID(c, "id")
	if err != nil {
		return err
	}
	form, err := samlForm(c)
	if err != nil {
		return h.renderLoginError(c, err)
	}
	response, relay := secure.Secret(form.Get("SAMLResponse")), secure.Secret(form.Get("RelayState"))
	location, err := h.svc.FinishSAML(c.UserContext(), at, response, relay)
	if err != nil {
		return h.renderLoginError(c, err)
	}
	return redirectTo(c, location)
}

// samlForm reads a form of SAML (HTTP-POST binding). A parameter that occurs twice is an error.
func samlForm(c *fiber.Ctx) (url.Values, error) {
	kind, _, err := mime.ParseMediaType(c.Get(fiber.HeaderContentType))
	if err != nil || kind != fiber.MIMEApplicationForm {
		return nil, apierr.ContentType.Because("the body must be a form: %s", fiber.MIMEApplicationForm)
	}
	if len(c.Body()) > maxSAMLForm {
		return nil, apierr.TooLarge.Because("a form of SAML may have %d bytes", maxSAMLForm)
	}
	form, err := url.ParseQuery(string(c.Body()))
	if err != nil {
		return nil, apierr.SAMLMalformed.Because("the body is not a form")
	}
	for name, values := range form {
		if len(values) > 1 {
			return nil, apierr.SAMLMalformed.Because("the form has %.50q twice", name)
		}
	}
	return form, nil
}

// ssoLogoutByForm answers the LogoutResponse of an identity provider by HTTP-POST.
func (h *handlers) ssoLogoutByForm(c *fiber.Ctx) error {
	form, err := samlForm(c)
	if err != nil {
		return h.renderLoginError(c, err)
	}
	return h.ssoLogoutCallback(c, secure.Secret(form.Get("RelayState")), secure.Secret(form.Get("SAMLResponse")))
}

// ssoLogoutCallback redirects a browser after the logout at its identity provider.
func (h *handlers) ssoLogoutCallback(c *fiber.Ctx, relay, response secure.Secret) error {
	location, err := h.svc.FinishSAMLLogout(c.UserContext(), relay, response)
	if err != nil {
		return h.renderLoginError(c, err)
	}
	return redirectTo(c, location)
}

// samlSignOn answers GET {client_url}/saml/sso, where this deployment is the SAML identity provider:
// it begins the login of an AuthnRequest, or with the parameter flow ends it.
func (c *clientCall) samlSignOn(f *fiber.Ctx) error {
	if flow := f.Query("flow"); flow != "" {
		return c.finishSAMLSignOn(f, flow)
	}
	in := idsite.SignOn{
		Request: f.Query("SAMLRequest"), RelayState: f.Query("RelayState"), Query: string(f.Request().URI().QueryString()),
	}
	return c.beginSAMLSignOn(f, in)
}

// samlSignOnByForm begins the login of an AuthnRequest by HTTP-POST.
func (c *clientCall) samlSignOnByForm(f *fiber.Ctx) error {
	form, err := samlForm(f)
	if err != nil {
		return c.renderLoginError(f, err)
	}
	return c.beginSAMLSignOn(f, idsite.SignOn{Request: form.Get("SAMLRequest"), RelayState: form.Get("RelayState")})
}

func (c *clientCall) beginSAMLSignOn(f *fiber.Ctx, in idsite.SignOn) error {
	address := c.baseURL + "/saml/sso"
	to, err := c.BeginSignOn(f.UserContext(), address, in)
	if err != nil {
		return c.renderLoginError(f, err)
	}
	setLoginCookie(f, signOnCookie, to.Browser)
	return redirectTo(f, to.Location)
}

// finishSAMLSignOn answers with a page that posts the SAML response to the service provider.
func (c *clientCall) finishSAMLSignOn(f *fiber.Ctx, flow string) error {
	signed, err := c.FinishSignOn(f.UserContext(), flow, readLoginCookies(f, signOnCookie),
		secure.Secret(f.Query("jwtResponse")))
	if err != nil {
		return c.renderLoginError(f, err)
	}
	hidden := map[string]string{"SAMLResponse": signed.Response.Reveal()}
	if signed.RelayState != nil {
		hidden["RelayState"] = *signed.RelayState
	}
	t := translatorOf(f)
	body, err := pages.Render(pages.Page{
		Language: screens.Language(f.Get(fiber.HeaderAcceptLanguage)), Product: c.Application.Name, Title: t("postTitle"),
		Text: t("postText"),
		Form: &pages.Form{Action: signed.ConsumerURL, Button: t("post"), Hidden: hidden},
	})
	if err != nil {
		return err
	}
	pageHeaders(f, pages.PostPolicy, "strict-origin")
	return f.Send(body)
}

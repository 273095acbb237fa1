// Package rest is the HTTP layer of the idsite service. routes.go lists its endpoints.
//
//   - site.go: the settings
//   - openid.go: what browsers see of OpenID providers: authorization, consent, devices, logout
//   - sso.go: the redirects of a hosted login; cookie.go: the cookies of its session and of logins
//   - pageapi.go: what hosted pages call; screens.go: the hosted pages themselves
//   - providercallback.go: the callbacks of social logins; saml.go: the endpoints of SAML
//   - clientapi.go, clientaccount.go, clienttoken.go, clientfactor.go, authorize.go: the Client
//     API; clientcookie.go: its cookies
//   - link.go: the pages of mailed links; signup.go: sign-up and invitations; page.go: how both
//     are rendered, and how their forms are read
package rest

import (
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/alias"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/idsite"
	"github.com/doorward/doorward/services/idsite/screens"
	"github.com/doorward/doorward/services/idsite/store"
)

type handlers struct {
	svc            *idsite.Service
	base           href.Base
	aliasTitle     string // the alias of the deployment as headers have it
	redirectHeader string // header with the address to which a page redirects its browser
	challenge      string // value of WWW-Authenticate
	screens        *screens.Screens
}

// Mount adds the service's endpoints to its app.
func Mount(app *fiber.App, svc *idsite.Service, base href.Base) error {
	built, err := screens.New(base.Host())
	if err != nil {
		return err
	}
	h := &handlers{svc: svc, base: base, aliasTitle: svc.AliasTitle(),
		redirectHeader: svc.AliasTitle() + redirectHeaderSuffix,
		challenge:      alias.Alias(strings.ToLower(svc.AliasTitle())).WWWAuthenticate(), screens: built}
	v1 := app.Group("/v1")

	sites := rest.List(store.Sites, svc.ListSites, h.siteView)
	v1.Get("/tenants/:id/idSites", sites)
	v1.Get("/tenants/:id/idsites", func(c *fiber.Ctx) error { // another spelling of the same collection
		c.Request().URI().SetPath(strings.TrimSuffix(c.Path(), "idsites") + "idSites")
		return sites(c)
	})
	v1.Get("/idSites/:id", rest.Get(svc.Site, h.siteView))
	v1.Post("/idSites/:id", rest.Update(svc.UpdateSite, h.siteView))

	v1.Get("/accounts/:id/sessions", rest.List(store.Sessions, svc.Journey.ListSessions, h.sessionView))
	v1.Delete("/accounts/:id/sessions", rest.Delete(svc.Journey.DeleteSessions))
	v1.Get("/sessions/:id", rest.Get(svc.Journey.Session, h.sessionView))
	v1.Delete("/sessions/:id", rest.Delete(svc.Journey.DeleteSession))
	v1.Get("/accounts/:id/consents", rest.List(store.Consents, svc.Journey.ListConsents, h.consentView))
	v1.Get("/consents/:id", rest.Get(svc.Journey.Consent, h.consentView))
	v1.Delete("/consents/:id", rest.Delete(svc.Journey.DeleteConsent))

	for _, path := range []string{"/v1/applications/:id/saml/sso/idpRedirect", "/sso", "/sso/logout", "/sso/provider"} {
		app.Head(path, headOfRedirect)
	}
	v1.Get("/applications/:id/saml/sso/idpRedirect", h.beginSAML)
	v1.Post("/directories/:id/saml/sso/post", h.finishSAML)

	app.Get("/sso", h.sso)
	app.Get("/sso/logout", h.ssoLogout)
	app.Post("/sso/logout", h.ssoLogoutByForm)
	app.Get("/sso/provider", h.providerCallback)
	app.Post("/sso/provider", h.providerCallbackByForm)
	h.mountOpenID(app)
	h.mountPageAPI(app)
	app.Get("/site", h.serveHostedPages)
	app.Get("/site/*", h.serveHostedPages)
	app.All("/client/:dnsLabel/*", h.clientAPI)

	app.Get("/register", h.showRegister)
	app.Post("/register", h.submitRegister)
	app.Get("/emailVerificationTokens", h.showVerification)
	app.Post("/emailVerificationTokens", h.submitVerification)
	app.Get("/passwordReset", h.showPasswordReset)
	app.Post("/passwordReset", h.submitPasswordReset)
	return nil
}

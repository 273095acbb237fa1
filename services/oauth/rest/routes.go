// Package rest is the HTTP layer of the OAuth service: routes.go lists its endpoints, each
// noun has a file of handlers, form.go reads the bodies of the token endpoints, and views.go
// renders resources.
package rest

import (
	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/alias"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/oauth"
	"github.com/doorward/doorward/services/oauth/store"
)

type handlers struct {
	svc   *oauth.Service
	base  href.Base
	alias alias.Alias
}

// Mount adds the service's endpoints to its app. word is the alias of the deployment, which
// replaces "service" in the answer of the token endpoint.
func Mount(app *fiber.App, svc *oauth.Service, base href.Base, word alias.Alias) {
	h := &handlers{svc, base, word}
	v1 := app.Group("/v1")
	h.mountOpenID(app)

	v1.Post("/applications/:id/oauth/token", noStore, h.issueTokens)
	v1.Post("/applications/:id/oauth/revoke", noStore, h.revokeToken)
	v1.Get("/applications/:id/authTokens/:token", h.validateToken)

	v1.Get("/accessTokens/:id", h.getToken(store.Access))
	v1.Delete("/accessTokens/:id", h.deleteToken(store.Access))
	v1.Get("/accounts/:id/accessTokens", h.listAccountTokens(store.Access))
	v1.Get("/refreshTokens/:id", h.getToken(store.Refresh))
	v1.Delete("/refreshTokens/:id", h.deleteToken(store.Refresh))
	v1.Get("/accounts/:id/refreshTokens", h.listAccountTokens(store.Refresh))

	v1.Get("/oAuthPolicies/:id", rest.Get(svc.Policy, h.policyView))
	v1.Post("/oAuthPolicies/:id", rest.Update(svc.UpdatePolicy, h.policyView))

	v1.Get("/openIdProviders/:id", rest.Get(h.getProvider, h.providerView))
	v1.Post("/openIdProviders/:id", rest.Update(h.updateProvider, h.providerView))
	v1.Get("/openIdProviders/:id/registrationTokens", rest.List(list.Spec{}, svc.OpenID.RegistrationTokens,
		h.registrationTokenView))
	v1.Post("/openIdProviders/:id/registrationTokens", rest.Create(svc.OpenID.CreateRegistrationToken,
		h.newRegistrationTokenView))
	v1.Delete("/openIdProviders/:id/registrationTokens/:token", deleteItem("token", svc.OpenID.DeleteRegistrationToken))
	v1.Get("/applications/:id/openIdClients", rest.List(store.OpenIDClients, svc.OpenID.ListClients, h.clientView))
	v1.Post("/applications/:id/openIdClients", rest.Create(svc.OpenID.CreateClient, h.clientView))
	v1.Get("/openIdClients/:id", rest.Get(svc.OpenID.Client, h.clientView))
	v1.Post("/openIdClients/:id", rest.Update(svc.OpenID.UpdateClient, h.clientView))
	v1.Delete("/openIdClients/:id", rest.Delete(svc.OpenID.DeleteClient))
	rest.CustomData(v1, "openIdClients", svc.OpenID.CustomData())
	v1.Get("/openIdClients/:id/secrets", rest.List(list.Spec{}, svc.OpenID.Secrets, h.secretView))
	v1.Post("/openIdClients/:id/secrets", h.createSecret)
	v1.Delete("/openIdClients/:id/secrets/:secret", deleteItem("secret", svc.OpenID.DeleteSecret))
	v1.Post("/openIdClients/:id/tokenPreviews", h.previewTokens)

	v1.Get("/tenants/:id/signingKeys", rest.List(store.SigningKeys, svc.OpenID.ListSigningKeys, h.signingKeyView))
	v1.Post("/tenants/:id/signingKeys", rest.Create(svc.OpenID.CreateSigningKey, h.signingKeyView))
	v1.Get("/signingKeys/:id", rest.Get(svc.OpenID.SigningKey, h.signingKeyView))
	v1.Post("/signingKeys/:id", h.updateSigningKey)
	v1.Get("/openIdSettings/:id", rest.Get(svc.OpenID.Settings, h.openIDSettingsView))
	v1.Post("/openIdSettings/:id", rest.Update(svc.OpenID.UpdateSettings, h.openIDSettingsView))

	v1.Get("/applicationWebConfigs/:id", rest.Get(svc.WebConfig, h.webConfigView))
	v1.Post("/applicationWebConfigs/:id", rest.Update(svc.UpdateWebConfig, h.webConfigView))

	v1.Get("/accounts/:id/apiKeys", h.listAPIKeys("accounts", store.APIKeys, svc.ListAPIKeys))
	v1.Post("/accounts/:id/apiKeys", h.createAPIKey)
	v1.Get("/applications/:id/apiKeys", h.listAPIKeys("applications", store.APIKeyByID, svc.ListApplicationAPIKeys))
	v1.Get("/apiKeys/:id", h.getAPIKey)
	v1.Post("/apiKeys/:id", h.updateAPIKey)
	v1.Delete("/apiKeys/:id", h.deleteAPIKey)
}

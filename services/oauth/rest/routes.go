// Package rest is the HTTP layer of the OAuth service: routes.go lists its endpoints, each
// noun has a file of handlers, form.go reads the bodies of the token endpoints, and views.go
// renders resources.
package rest

import (
	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/alias"
	"github.com/doorward/doorward/pkg/href"
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

	v1.Get("/applicationWebConfigs/:id", rest.Get(svc.WebConfig, h.webConfigView))
	v1.Post("/applicationWebConfigs/:id", rest.Update(svc.UpdateWebConfig, h.webConfigView))

	v1.Get("/accounts/:id/apiKeys", h.listAPIKeys("accounts", store.APIKeys, svc.ListAPIKeys))
	v1.Post("/accounts/:id/apiKeys", h.createAPIKey)
	v1.Get("/applications/:id/apiKeys", h.listAPIKeys("applications", store.APIKeyByID, svc.ListApplicationAPIKeys))
	v1.Get("/apiKeys/:id", h.getAPIKey)
	v1.Post("/apiKeys/:id", h.updateAPIKey)
	v1.Delete("/apiKeys/:id", h.deleteAPIKey)
}

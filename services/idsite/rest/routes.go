// Package rest is the HTTP face of the idsite service: routes.go lists its
// endpoints, site.go has the settings' handlers and view, page.go what the
// links of mails lead to.
package rest

import (
	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/services/idsite"
)

type handlers struct {
	svc     *idsite.Service
	base    href.Base
	product string // the name that pages show
}

// Mount adds the service's endpoints to its app.
func Mount(app *fiber.App, svc *idsite.Service, base href.Base) {
	h := &handlers{svc, base, svc.Product()}
	v1 := app.Group("/v1")

	v1.Get("/tenants/:id/idSites", h.sites)
	v1.Get("/tenants/:id/idsites", h.sites) // some clients spell it so
	v1.Get("/idSites/:id", h.site)

	app.Get("/emailVerificationTokens", h.verification)
	app.Post("/emailVerificationTokens", h.verify)
	app.Get("/passwordReset", h.reset)
	app.Post("/passwordReset", h.setPassword)
}

// Package rest is the HTTP face of the directory service: routes.go lists its
// endpoints, each noun has a file of handlers that read, ask and answer, and
// views.go renders resources.
package rest

import (
	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/services/directory"
)

type handlers struct {
	svc  *directory.Service
	base href.Base
}

// Mount adds the service's endpoints to its app.
func Mount(app *fiber.App, svc *directory.Service, base href.Base) {
	h := &handlers{svc, base}
	v1 := app.Group("/v1")

	v1.Get("/tenants/current", h.currentTenant)
	v1.Get("/tenants/:id", h.tenant)
	v1.Get("/tenants/:id/directories", h.tenantDirectories)
	v1.Get("/tenants/:id/accounts", h.tenantAccounts)

	v1.Post("/directories", h.createDirectory)
	v1.Get("/directories/:id", h.directory)
	v1.Post("/directories/:id", h.updateDirectory)
	v1.Delete("/directories/:id", h.deleteDirectory)
	v1.Get("/directories/:id/accounts", h.directoryAccounts)
	v1.Post("/directories/:id/accounts", h.createAccount)

	v1.Post("/accounts/emailVerificationTokens/:token", h.verify)
	v1.Get("/accounts/:id", h.account)
	v1.Post("/accounts/:id", h.updateAccount)
	v1.Delete("/accounts/:id", h.deleteAccount)

	v1.Get("/accountCreationPolicies/:id", h.creationPolicy)
	v1.Post("/accountCreationPolicies/:id", h.updateCreationPolicy)
}

// Package rest is the HTTP face of the application service: routes.go lists its
// endpoints, each noun has a file of handlers that read, ask and answer, and
// views.go renders resources.
package rest

import (
	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/application"
)

type handlers struct {
	svc  *application.Service
	base href.Base
}

// Mount adds the service's endpoints to its app.
func Mount(app *fiber.App, svc *application.Service, base href.Base) {
	h := &handlers{svc, base}
	v1 := app.Group("/v1")

	v1.Get("/tenants/:id/applications", h.tenantApplications)

	v1.Post("/applications", h.createApplication)
	v1.Get("/applications/:id", h.application)
	v1.Post("/applications/:id", h.updateApplication)
	v1.Delete("/applications/:id", h.deleteApplication)
	v1.Get("/applications/:id/accounts", h.applicationAccounts)
	v1.Post("/applications/:id/accounts", h.createAccount)
	v1.Get("/applications/:id/accountStoreMappings", h.applicationMappings)
	v1.Post("/applications/:id/loginAttempts", h.attemptLogin)
	v1.Post("/applications/:id/verificationEmails", h.askVerification)
	v1.Post("/applications/:id/passwordResetTokens", h.askReset)
	v1.Get("/applications/:id/passwordResetTokens/:token", h.reset)
	v1.Post("/applications/:id/passwordResetTokens/:token", h.spendReset)
	rest.CustomData(v1, "applications", svc.CustomData())

	v1.Post("/accountStoreMappings", h.createMapping)
	v1.Get("/accountStoreMappings/:id", h.mapping)
	v1.Post("/accountStoreMappings/:id", h.updateMapping)
	v1.Delete("/accountStoreMappings/:id", h.deleteMapping)

	v1.Get("/directories/:id/applications", h.directoryApplications)
	v1.Get("/directories/:id/applicationMappings", h.directoryMappings)
}

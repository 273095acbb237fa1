// Package rest is the HTTP layer of the notification service: routes.go lists its
// endpoints, and each noun has a file with its representation.
package rest

import (
	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/notification"
	"github.com/doorward/doorward/services/notification/store"
)

// views renders resources: one method per noun, in the noun's file.
type views struct{ base href.Base }

// Mount adds the service's endpoints to its app.
func Mount(app *fiber.App, svc *notification.Service, base href.Base) {
	v := views{base}
	v1 := app.Group("/v1")

	v1.Get("/tenants/:id/smtpServers", rest.List(store.SMTPServers, svc.SMTPServers, v.smtpServer))
	v1.Post("/smtpServers", rest.CreateOwn(svc.CreateSMTPServer, v.smtpServer))
	v1.Get("/smtpServers/:id", rest.Get(svc.SMTPServer, v.smtpServer))
	v1.Post("/smtpServers/:id", rest.Update(svc.UpdateSMTPServer, v.smtpServer))
	v1.Delete("/smtpServers/:id", rest.Delete(svc.DeleteSMTPServer))

	app.Post("/sms/receipts/:tenant/:delivery", recordSMSReceipt(svc))
}

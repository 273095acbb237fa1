// Package rest is the HTTP face of the notification service: routes.go lists its
// endpoints, and each noun has a file with its representation.
package rest

import (
	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/services/notification"
)

// Mount adds the service's endpoints to its app.
func Mount(app *fiber.App, svc *notification.Service) {
	app.Post("/sms/receipts/:tenant/:delivery", receive(svc))
}

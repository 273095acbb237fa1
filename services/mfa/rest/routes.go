// Package rest is the HTTP layer of the mfa service: routes.go lists its
// endpoints, and each noun has a file with its representation and, where an
// endpoint is more than reading, asking and answering, its handler.
package rest

import (
	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/mfa"
	"github.com/doorward/doorward/services/mfa/store"
)

// views renders resources: one method per noun, in the noun's file.
type views struct{ base href.Base }

// Mount adds the service's endpoints to its app.
func Mount(app *fiber.App, svc *mfa.Service, base href.Base) {
	v := views{base}
	v1 := app.Group("/v1")

	v1.Get("/tenants/:id/phones", rest.List(store.Phones, svc.TenantPhones, v.phone))
	v1.Get("/accounts/:id/phones", rest.List(store.Phones, svc.AccountPhones, v.phone))
	v1.Post("/accounts/:id/phones", rest.Create(svc.CreatePhone, v.phone))
	v1.Get("/phones/:id", rest.Get(svc.Phone, v.phone))
	v1.Post("/phones/:id", rest.Update(svc.UpdatePhone, v.phone))
	v1.Delete("/phones/:id", rest.Delete(svc.DeletePhone))

	v1.Get("/accounts/:id/factors", rest.List(store.Factors, svc.AccountFactors, v.factor))
	v1.Post("/accounts/:id/factors", createFactor(svc, v))
	v1.Get("/factors/:id", rest.Get(svc.Factor, v.factor))
	v1.Post("/factors/:id", rest.Update(svc.UpdateFactor, v.factor))
	v1.Delete("/factors/:id", rest.Delete(svc.DeleteFactor))

	v1.Get("/factors/:id/challenges", rest.List(store.Challenges, svc.FactorChallenges, v.challenge))
	v1.Post("/factors/:id/challenges", emptyBody(rest.Create(svc.CreateChallenge, v.challenge)))
	v1.Get("/challenges/:id", rest.Get(svc.Challenge, v.challenge))
	v1.Post("/challenges/:id", rest.Update(svc.AnswerChallenge, v.challenge))
}

package rest

import (
	"net/http"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/directory"
)

// invitationView is an invitation of an administrator. It has no href: only the mailed link leads
// to it.
type invitationView struct {
	Email     string    `json:"email"`
	CreatedAt rest.Time `json:"createdAt"`
	ExpiresAt rest.Time `json:"expiresAt"`
	Tenant    href.Link `json:"tenant"`
}

func invite(svc *directory.Service, v views) fiber.Handler {
	return func(c *fiber.Ctx) error {
		at, in, err := rest.RefAndBody[directory.NewInvitation, invitationView](c)
		if err != nil {
			return err
		}
		made, err := svc.Invite(c.UserContext(), at, in)
		if err != nil {
			return err
		}
		c.Status(http.StatusCreated)
		return c.JSON(invitationView{
			made.Email, rest.Time(made.CreatedAt), rest.Time(made.ExpiresAt), v.Base.Link("tenants", made.Tenant),
		})
	}
}

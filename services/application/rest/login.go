package rest

import (
	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/application"
)

// attemptLogin answers with the link of the account that logged in.
func (h *handlers) attemptLogin(c *fiber.Ctx) error {
	at, err := ref(c)
	if err != nil {
		return err
	}
	var in application.LoginAttempt
	if err := rest.Body[struct{}](c, &in); err != nil {
		return err
	}
	a, err := h.svc.Attempt(c.UserContext(), at, in)
	if err != nil {
		return err
	}
	link := h.base.Link("accounts", a.ID)
	return rest.Updated(c, link.Href, loginView{Account: link})
}

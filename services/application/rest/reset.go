package rest

import (
	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/application"
)

// askVerification answers 202 without a body: the mail follows.
func (h *handlers) askVerification(c *fiber.Ctx) error {
	at, err := ref(c)
	if err != nil {
		return err
	}
	var in application.NewVerification
	if err := rest.Body[struct{}](c, &in); err != nil {
		return err
	}
	if err := h.svc.AskVerification(c.UserContext(), at, in); err != nil {
		return err
	}
	return rest.Accepted(c)
}

// askReset answers 200, not 201 (resolutions, section 2.5).
func (h *handlers) askReset(c *fiber.Ctx) error {
	at, err := ref(c)
	if err != nil {
		return err
	}
	var in application.NewReset
	if err := rest.Body[resetView](c, &in); err != nil {
		return err
	}
	made, err := h.svc.AskReset(c.UserContext(), at, in)
	if err != nil {
		return err
	}
	view := h.resetView(at.ID, made)
	return rest.Updated(c, view.Href, view)
}

// reset reads a token and leaves it as it is.
func (h *handlers) reset(c *fiber.Ctx) error {
	at, err := ref(c)
	if err != nil {
		return err
	}
	found, err := h.svc.Reset(c.UserContext(), at, secure.Secret(c.Params("token")))
	if err != nil {
		return err
	}
	return rest.OK(c, h.resetView(at.ID, found))
}

// spendReset sets the new password.
func (h *handlers) spendReset(c *fiber.Ctx) error {
	at, err := ref(c)
	if err != nil {
		return err
	}
	var in application.NewPassword
	if err := rest.Body[resetView](c, &in); err != nil {
		return err
	}
	spent, err := h.svc.SpendReset(c.UserContext(), at, secure.Secret(c.Params("token")), in)
	if err != nil {
		return err
	}
	view := h.resetView(at.ID, spent)
	return rest.Updated(c, view.Href, view)
}

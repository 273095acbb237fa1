package rest

import (
	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory"
)

func (h *handlers) createAccount(c *fiber.Ctx) error {
	at, err := ref(c)
	if err != nil {
		return err
	}
	in, err := directoryapi.ReadNewAccount(c)
	if err != nil {
		return err
	}
	in.Tenant, in.Directory = at.Tenant, at.ID
	a, err := h.svc.NewAccount(c.UserContext(), in)
	if err != nil {
		return err
	}
	return rest.Created(c, h.base.To("accounts", a.ID), h.accountView(a))
}

func (h *handlers) account(c *fiber.Ctx) error {
	in, err := ref(c)
	if err != nil {
		return err
	}
	a, err := h.svc.Account(c.UserContext(), in)
	if err != nil {
		return err
	}
	return rest.OK(c, h.accountView(a))
}

func (h *handlers) updateAccount(c *fiber.Ctx) error {
	at, err := ref(c)
	if err != nil {
		return err
	}
	var in directory.Change
	if err := rest.Body[directoryapi.AccountView](c, &in); err != nil {
		return err
	}
	a, err := h.svc.UpdateAccount(c.UserContext(), at.Tenant, at.ID, in)
	if err != nil {
		return err
	}
	return rest.Updated(c, h.base.To("accounts", a.ID), h.accountView(a))
}

func (h *handlers) deleteAccount(c *fiber.Ctx) error {
	at, err := ref(c)
	if err != nil {
		return err
	}
	if err := h.svc.DeleteAccount(c.UserContext(), at.Tenant, at.ID); err != nil {
		return err
	}
	return rest.NoContent(c)
}

// verify spends a mailed token. The answer is the link of its account.
func (h *handlers) verify(c *fiber.Ctx) error {
	a, err := h.svc.Verify(c.UserContext(), rest.Caller(c).Tenant, secure.Secret(c.Params("token")))
	if err != nil {
		return err
	}
	link := href.Link{Href: h.base.To("accounts", a.ID)}
	return rest.Updated(c, link.Href, link)
}

package rest

import (
	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/directory"
	"github.com/doorward/doorward/services/directory/store"
)

// ref reads the resource of the path within the caller's tenant.
func ref(c *fiber.Ctx) (directoryapi.Ref, error) {
	v, err := rest.ID(c, "id")
	return directoryapi.Ref{Tenant: rest.Caller(c).Tenant, ID: v}, err
}

func (h *handlers) createDirectory(c *fiber.Ctx) error {
	var in directory.NewDirectory
	if err := rest.Body[directoryView](c, &in); err != nil {
		return err
	}
	d, err := h.svc.NewDirectory(c.UserContext(), rest.Caller(c).Tenant, in)
	if err != nil {
		return err
	}
	return rest.Created(c, h.base.To("directories", d.ID), h.directoryView(d))
}

func (h *handlers) directory(c *fiber.Ctx) error {
	in, err := ref(c)
	if err != nil {
		return err
	}
	d, err := h.svc.Directory(c.UserContext(), in)
	if err != nil {
		return err
	}
	return rest.OK(c, h.directoryView(d))
}

func (h *handlers) updateDirectory(c *fiber.Ctx) error {
	at, err := ref(c)
	if err != nil {
		return err
	}
	var in directory.NewDirectory
	if err := rest.Body[directoryView](c, &in); err != nil {
		return err
	}
	d, err := h.svc.UpdateDirectory(c.UserContext(), at.Tenant, at.ID, in)
	if err != nil {
		return err
	}
	return rest.Updated(c, h.base.To("directories", d.ID), h.directoryView(d))
}

func (h *handlers) deleteDirectory(c *fiber.Ctx) error {
	in, err := ref(c)
	if err != nil {
		return err
	}
	if _, err := h.svc.DeleteDirectory(c.UserContext(), in); err != nil {
		return err
	}
	return rest.NoContent(c)
}

func (h *handlers) directoryAccounts(c *fiber.Ctx) error {
	in, err := ref(c)
	if err != nil {
		return err
	}
	query, err := rest.Query(c, store.Accounts)
	if err != nil {
		return err
	}
	d, err := h.svc.Directory(c.UserContext(), in)
	if err != nil {
		return err
	}
	page, err := h.svc.ListAccounts(c.UserContext(), directoryapi.ListAccounts{
		Tenant: d.TenantID, Stores: []directoryapi.Store{{Kind: "directories", ID: d.ID}}, Query: query,
	})
	if err != nil {
		return err
	}
	return rest.Page(c, h.base.To("directories", d.ID, "accounts"), page, h.accountView)
}

package rest

import (
	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/directory/store"
)

func (h *handlers) currentTenant(c *fiber.Ctx) error {
	return rest.Redirect(c, h.base.To("tenants", rest.Caller(c).Tenant))
}

// ownTenant reads the tenant of the path, which must be the caller's.
func (h *handlers) ownTenant(c *fiber.Ctx) (directoryapi.Tenant, error) {
	wanted, err := rest.ID(c, "id")
	if err != nil {
		return directoryapi.Tenant{}, err
	}
	return h.svc.Tenant(c.UserContext(), rest.Caller(c).Tenant, wanted)
}

func (h *handlers) tenant(c *fiber.Ctx) error {
	tenant, err := h.ownTenant(c)
	if err != nil {
		return err
	}
	return rest.OK(c, h.tenantView(tenant))
}

func (h *handlers) tenantDirectories(c *fiber.Ctx) error {
	tenant, err := h.ownTenant(c)
	if err != nil {
		return err
	}
	query, err := rest.Query(c, store.Directories)
	if err != nil {
		return err
	}
	page, err := h.svc.ListDirectories(c.UserContext(), tenant.ID, query)
	if err != nil {
		return err
	}
	return rest.Page(c, h.base.To("tenants", tenant.ID, "directories"), page, h.directoryView)
}

func (h *handlers) tenantAccounts(c *fiber.Ctx) error {
	tenant, err := h.ownTenant(c)
	if err != nil {
		return err
	}
	query, err := rest.Query(c, store.Accounts)
	if err != nil {
		return err
	}
	page, err := h.svc.TenantAccounts(c.UserContext(), tenant.ID, query)
	if err != nil {
		return err
	}
	return rest.Page(c, h.base.To("tenants", tenant.ID, "accounts"), page, h.accountView)
}

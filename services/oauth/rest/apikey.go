package rest

import (
	"regexp"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/oauth"
	"github.com/doorward/doorward/services/oauth/store"
)

func (h *handlers) accountKeys(c *fiber.Ctx) error {
	tenant, account, err := at(c)
	if err != nil {
		return err
	}
	query, view, err := h.keysQuery(c, store.Keys)
	if err != nil {
		return err
	}
	page, err := h.svc.ListKeys(c.UserContext(), tenant, account, query)
	if err != nil {
		return err
	}
	return rest.Page(c, h.base.To("accounts", account, "apiKeys"), page, view)
}

func (h *handlers) applicationKeys(c *fiber.Ctx) error {
	tenant, application, err := at(c)
	if err != nil {
		return err
	}
	query, view, err := h.keysQuery(c, store.KeyByID)
	if err != nil {
		return err
	}
	page, err := h.svc.ApplicationKeys(c.UserContext(), tenant, application, query)
	if err != nil {
		return err
	}
	return rest.Page(c, h.base.To("applications", application, "apiKeys"), page, view)
}

func (h *handlers) createKey(c *fiber.Ctx) error {
	tenant, account, err := at(c)
	if err != nil {
		return err
	}
	view, err := h.viewOfKey(c)
	if err != nil {
		return err
	}
	var in oauth.KeyText
	if err := rest.OptionalBody[keyView](c, &in); err != nil {
		return err
	}
	key, err := h.svc.CreateKey(c.UserContext(), tenant, account, in)
	if err != nil {
		return err
	}
	return rest.Created(c, h.base.Path("apiKeys", key.ID), view(key))
}

func (h *handlers) key(c *fiber.Ctx) error {
	view, err := h.viewOfKey(c)
	if err != nil {
		return err
	}
	key, err := h.svc.Key(c.UserContext(), rest.Caller(c).Tenant, c.Params("id"))
	if err != nil {
		return err
	}
	return rest.OK(c, view(key))
}

func (h *handlers) updateKey(c *fiber.Ctx) error {
	view, err := h.viewOfKey(c)
	if err != nil {
		return err
	}
	var in oauth.KeyChange
	if err := rest.Body[keyView](c, &in); err != nil {
		return err
	}
	key, err := h.svc.UpdateKey(c.UserContext(), rest.Caller(c).Tenant, c.Params("id"), in)
	if err != nil {
		return err
	}
	return rest.Updated(c, h.base.Path("apiKeys", key.ID), view(key))
}

// keyShape is the form of the id of an API key.
var keyShape = regexp.MustCompile(`^[0-9A-Z]{25,26}$`)

func (h *handlers) deleteKey(c *fiber.Ctx) error {
	if !keyShape.MatchString(c.Params("id")) {
		return apierr.NotFound
	}
	return rest.Deleted(c, h.svc.DeleteKey(c.UserContext(), rest.Caller(c).Tenant, c.Params("id")))
}

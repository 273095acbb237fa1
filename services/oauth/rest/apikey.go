package rest

import (
	"context"
	"errors"
	"regexp"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/oauth"
	"github.com/doorward/doorward/services/oauth/store"
)

// keys lists the keys of an account or an application, which kind says.
func (h *handlers) keys(
	kind string, spec list.Spec, read func(context.Context, id.ID, id.ID, list.Query) (list.Page[store.Key], error),
) fiber.Handler {
	return func(c *fiber.Ctx) error {
		tenant, owner, err := at(c)
		if err != nil {
			return err
		}
		query, view, err := h.keysQuery(c, spec)
		if err != nil {
			return err
		}
		page, err := read(c.UserContext(), tenant, owner, query)
		if err != nil {
			return err
		}
		return rest.Page(c, h.base.To(kind, owner, "apiKeys"), page, view)
	}
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

// keyShape is the form of the ids of API keys that this service makes. The operator
// may choose another for the first key of a tenant.
var keyShape = regexp.MustCompile(`^[0-9A-Z]{25,26}$`)

func (h *handlers) deleteKey(c *fiber.Ctx) error {
	err := h.svc.DeleteKey(c.UserContext(), rest.Caller(c).Tenant, c.Params("id"))
	if errors.Is(err, apierr.NotFound) && !keyShape.MatchString(c.Params("id")) {
		return err
	}
	return rest.Deleted(c, err)
}

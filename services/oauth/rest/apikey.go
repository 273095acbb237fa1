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

// listAPIKeys returns the handler that lists the API keys of an account or an application.
// kind is the collection of that resource in its href, read returns a page of keys.
func (h *handlers) listAPIKeys(
	kind string, spec list.Spec, read func(context.Context, id.ID, id.ID, list.Query) (list.Page[store.APIKey], error),
) fiber.Handler {
	return func(c *fiber.Ctx) error {
		tenant, owner, err := tenantAndID(c)
		if err != nil {
			return err
		}
		query, view, err := h.apiKeysQuery(c, spec)
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

func (h *handlers) createAPIKey(c *fiber.Ctx) error {
	tenant, account, err := tenantAndID(c)
	if err != nil {
		return err
	}
	view, err := h.apiKeyRenderer(c)
	if err != nil {
		return err
	}
	var in oauth.NewAPIKey
	if err := rest.OptionalBody[apiKeyView](c, &in); err != nil {
		return err
	}
	key, err := h.svc.CreateAPIKey(c.UserContext(), tenant, account, in)
	if err != nil {
		return err
	}
	return rest.Created(c, h.base.Path("apiKeys", key.ID), view(key))
}

func (h *handlers) getAPIKey(c *fiber.Ctx) error {
	view, err := h.apiKeyRenderer(c)
	if err != nil {
		return err
	}
	key, err := h.svc.ReadAPIKey(c.UserContext(), rest.Caller(c).Tenant, c.Params("id"))
	if err != nil {
		return err
	}
	return rest.OK(c, view(key))
}

func (h *handlers) updateAPIKey(c *fiber.Ctx) error {
	view, err := h.apiKeyRenderer(c)
	if err != nil {
		return err
	}
	var in oauth.APIKeyChange
	if err := rest.Body[apiKeyView](c, &in); err != nil {
		return err
	}
	key, err := h.svc.UpdateAPIKey(c.UserContext(), rest.Caller(c).Tenant, c.Params("id"), in)
	if err != nil {
		return err
	}
	return rest.Updated(c, h.base.Path("apiKeys", key.ID), view(key))
}

// generatedAPIKeyID is the form of the ids of API keys that the OAuth service generates. The
// operator may choose another id for the first key of a tenant.
var generatedAPIKeyID = regexp.MustCompile(`^[0-9A-Z]{25,26}$`)

// deleteAPIKey revokes a key. A repeated deletion is answered as the first, unless the id has
// a form that no generated key has.
func (h *handlers) deleteAPIKey(c *fiber.Ctx) error {
	err := h.svc.DeleteAPIKey(c.UserContext(), rest.Caller(c).Tenant, c.Params("id"))
	if errors.Is(err, apierr.NotFound) && !generatedAPIKeyID.MatchString(c.Params("id")) {
		return err
	}
	return rest.Deleted(c, err)
}

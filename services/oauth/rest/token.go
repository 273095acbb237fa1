package rest

import (
	"context"
	"net/url"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth"
	"github.com/doorward/doorward/services/oauth/store"
)

// at reads the resource of the path, which is looked for in the caller's
// tenant.
func at(c *fiber.Ctx) (tenant, resource id.ID, err error) {
	resource, err = rest.ID(c, "id")
	return rest.Caller(c).Tenant, resource, err
}

func (h *handlers) issue(c *fiber.Ctx) error {
	tenant, application, err := at(c)
	if err != nil {
		return err
	}
	fields, err := form(c)
	if err != nil {
		return err
	}
	issued, err := h.svc.Token(c.UserContext(), oauth.TokenRequest{
		Tenant: tenant, Application: application, Key: rest.Caller(c).Key, Form: fields,
	})
	if err != nil {
		return err
	}
	return rest.OK(c, h.issuedView(issued))
}

func (h *handlers) revoke(c *fiber.Ctx) error {
	tenant, application, err := at(c)
	if err != nil {
		return err
	}
	fields, err := form(c)
	if err != nil {
		return err
	}
	if err := h.svc.Revoke(c.UserContext(), oauth.Revocation{Tenant: tenant, Application: application, Form: fields}); err != nil {
		return err
	}
	c.Status(fiber.StatusOK)
	return nil
}

func (h *handlers) validate(c *fiber.Ctx) error {
	tenant, application, err := at(c)
	if err != nil {
		return err
	}
	text, err := url.PathUnescape(c.Params("token")) // some clients escape the dots too
	if err != nil {
		return apierr.NotFound
	}
	token, err := h.svc.Validate(c.UserContext(), tenant, application, secure.Secret(text))
	if err != nil {
		return err
	}
	return rest.Redirect(c, h.base.To(collections[token.Kind], token.ID))
}

func (h *handlers) token(kind store.Kind) fiber.Handler {
	return rest.Get(func(ctx context.Context, at id.Ref) (store.LiveToken, error) {
		return h.svc.LiveToken(ctx, kind, at.Tenant, at.ID)
	}, h.tokenView)
}

func (h *handlers) deleteToken(kind store.Kind) fiber.Handler {
	return rest.Delete(func(ctx context.Context, at id.Ref) error { return h.svc.DeleteToken(ctx, kind, at.Tenant, at.ID) })
}

func (h *handlers) accountTokens(kind store.Kind) fiber.Handler {
	return func(c *fiber.Ctx) error {
		tenant, account, err := at(c)
		if err != nil {
			return err
		}
		query, err := rest.Query(c, store.Tokens)
		if err != nil {
			return err
		}
		page, err := h.svc.ListTokens(c.UserContext(), kind, tenant, account, query)
		if err != nil {
			return err
		}
		return rest.Page(c, h.base.To("accounts", account, collections[kind]), page, h.tokenView)
	}
}

package rest

import (
	"context"
	"net/url"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth"
	"github.com/doorward/doorward/services/oauth/store"
)

// tenantAndID returns the tenant of the caller and the id of the resource in the path.
func tenantAndID(c *fiber.Ctx) (tenant, resource id.ID, err error) {
	resource, err = rest.ID(c, "id")
	return rest.Caller(c).Tenant, resource, err
}

func (h *handlers) issueTokens(c *fiber.Ctx) error {
	tenant, application, err := tenantAndID(c)
	if err != nil {
		return err
	}
	fields, err := readForm(c)
	if err != nil {
		return err
	}
	issued, err := h.svc.Token(c.UserContext(), oauth.TokenRequest{
		Tenant: tenant, Application: application, Key: rest.Caller(c).Key, Form: fields,
	})
	if err != nil {
		return err
	}
	return rest.OK(c, h.issuedTokensView(issued))
}

func (h *handlers) revokeToken(c *fiber.Ctx) error {
	tenant, application, err := tenantAndID(c)
	if err != nil {
		return err
	}
	fields, err := readForm(c)
	if err != nil {
		return err
	}
	if err := h.svc.Revoke(c.UserContext(), oauth.Revocation{Tenant: tenant, Application: application, Form: fields}); err != nil {
		return err
	}
	c.Status(fiber.StatusOK)
	return nil
}

func (h *handlers) validateToken(c *fiber.Ctx) error {
	tenant, application, err := tenantAndID(c)
	if err != nil {
		return err
	}
	text, err := url.PathUnescape(c.Params("token")) // some clients escape the dots too
	if err != nil {
		return apierr.NotFound
	}
	sent := oauthapi.PresentedToken{Token: secure.Secret(text), Method: c.Method(),
		Address: h.base.To("applications", application, "authTokens", text), Proofs: rest.Proofs(c)}
	if len(sent.Proofs) > 0 {
		sent.Scheme = "dpop" // Authorization has the API key of the caller
	}
	token, err := h.svc.Validate(c.UserContext(), oauthapi.ValidateToken{Tenant: tenant, Application: application,
		PresentedToken: sent})
	if err != nil {
		return err
	}
	return rest.Redirect(c, h.base.To(collections[token.Kind], token.ID))
}

func (h *handlers) getToken(kind store.TokenKind) fiber.Handler {
	return rest.Get(func(ctx context.Context, at id.Ref) (store.TokenWithJWT, error) {
		return h.svc.LiveToken(ctx, kind, at.Tenant, at.ID)
	}, h.tokenView)
}

func (h *handlers) deleteToken(kind store.TokenKind) fiber.Handler {
	return rest.Delete(func(ctx context.Context, at id.Ref) error { return h.svc.DeleteToken(ctx, kind, at.Tenant, at.ID) })
}

func (h *handlers) listAccountTokens(kind store.TokenKind) fiber.Handler {
	return func(c *fiber.Ctx) error {
		tenant, account, err := tenantAndID(c)
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

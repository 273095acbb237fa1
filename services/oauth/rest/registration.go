package rest

import (
	"context"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/openid"
	"github.com/doorward/doorward/services/oauth/relyingparty"
	"github.com/doorward/doorward/services/oauth/store"
)

// registration reads a call of a registration endpoint (RFC 7591; RFC 7592).
func registration(c *fiber.Ctx) (in openid.Registration, err error) {
	if in.Application, err = rest.ID(c, "id"); err != nil {
		return in, err
	}
	if c.Params("client") != "" {
		if in.Client, err = rest.ID(c, "client"); err != nil {
			return in, err
		}
	}
	scheme, text, _ := strings.Cut(c.Get(fiber.HeaderAuthorization), " ")
	if strings.EqualFold(scheme, "bearer") {
		in.Token = secure.Secret(strings.TrimSpace(text))
	}
	in.Body = c.Body()
	return in, nil
}

// registered answers a call of a registration endpoint with the metadata of the client.
func registered(status int, rule func(context.Context, openid.Registration) (map[string]any, error)) fiber.Handler {
	return func(c *fiber.Ctx) error {
		in, err := registration(c)
		if err != nil {
			return err
		}
		found, err := rule(c.UserContext(), in)
		if err != nil {
			return err
		}
		return c.Status(status).JSON(found)
	}
}

func (h *handlers) deleteRegistration(c *fiber.Ctx) error {
	in, err := registration(c)
	if err != nil {
		return err
	}
	if err := h.svc.DeleteRegisteredClient(c.UserContext(), in); err != nil {
		return err
	}
	return rest.NoContent(c)
}

// registrationTokenView is the representation of an initial access token (docs/interface/openid.md#registration).
type registrationTokenView struct {
	Href      string    `json:"href"`
	CreatedAt rest.Time `json:"createdAt"`
	ExpiresAt rest.Time `json:"expiresAt"`
	Uses      int       `json:"uses"`
	Token     string    `json:"token,omitempty"`
}

// Self is the address of the token.
func (v registrationTokenView) Self() string { return v.Href }

func (h *handlers) registrationTokenView(t store.RegistrationToken) registrationTokenView {
	return registrationTokenView{
		Href:      h.base.To("openIdProviders", t.ApplicationID, "registrationTokens", t.ID.String()),
		CreatedAt: rest.Time(t.CreatedAt), ExpiresAt: rest.Time(t.ExpiresAt), Uses: t.Uses,
	}
}

// newRegistrationTokenView shows the text of a token that was just made.
func (h *handlers) newRegistrationTokenView(t relyingparty.NewRegistrationToken) registrationTokenView {
	v := h.registrationTokenView(t.RegistrationToken)
	v.Token = t.Text.Reveal()
	return v
}

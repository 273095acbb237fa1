package rest

import (
	"context"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/oauth/openid"
	"github.com/doorward/doorward/services/oauth/relyingparty"
	"github.com/doorward/doorward/services/oauth/store"
)

// providerView is the representation of an OpenID provider (docs/interface/openid.md#provider).
type providerView struct {
	rest.Head
	Issuer string `json:"issuer"`
	store.OpenIDProviderSettings
	Scopes          []scopeView `json:"scopes"`
	AccessTokenTTL  string      `json:"accessTokenTtl"`
	RefreshTokenTTL string      `json:"refreshTokenTtl"`
	// RegistrationTokens are the initial access tokens.
	RegistrationTokens href.Link `json:"registrationTokens"`
	Application        href.Link `json:"application"`
	Tenant             href.Link `json:"tenant"`
}

type scopeView struct {
	store.OpenIDScope
	Groups []href.Link `json:"groups"`
}

// provider is a provider with the lifetimes of the OAuth policy.
type provider struct {
	store.OpenIDProvider
	access, refresh string
}

// withLifetimes adds the lifetimes of the OAuth policy to a provider that was read, unless err is set.
func (h *handlers) withLifetimes(ctx context.Context, p store.OpenIDProvider, err error) (provider, error) {
	if err != nil {
		return provider{}, err
	}
	access, refresh, err := h.svc.OpenID.Lifetimes(ctx, id.Ref{Tenant: p.TenantID, ID: p.ApplicationID})
	return provider{p, access, refresh}, err
}

func (h *handlers) getProvider(ctx context.Context, application id.Ref) (provider, error) {
	p, err := h.svc.OpenID.Provider(ctx, application)
	return h.withLifetimes(ctx, p, err)
}

func (h *handlers) updateProvider(ctx context.Context, application id.Ref, in openid.ProviderChange) (provider, error) {
	p, err := h.svc.OpenID.UpdateProvider(ctx, application, in)
	return h.withLifetimes(ctx, p, err)
}

func (h *handlers) providerView(p provider) providerView {
	v := providerView{
		Head:   rest.NewHead(h.base.To("openIdProviders", p.ApplicationID), p.CreatedAt, p.ModifiedAt),
		Issuer: p.Issuer, OpenIDProviderSettings: p.Settings, Scopes: []scopeView{},
		RegistrationTokens: h.base.Link("openIdProviders", p.ApplicationID, "registrationTokens"),
		AccessTokenTTL:     p.access, RefreshTokenTTL: p.refresh,
		Application: h.base.Link("applications", p.ApplicationID), Tenant: h.base.Link("tenants", p.TenantID),
	}
	for _, scope := range p.Settings.Scopes {
		view := scopeView{OpenIDScope: scope, Groups: []href.Link{}}
		for _, group := range scope.Groups {
			view.Groups = append(view.Groups, h.base.Link("groups", group))
		}
		v.Scopes = append(v.Scopes, view)
	}
	return v
}

// clientView is the representation of a client (docs/interface/openid.md#clients).
type clientView struct {
	rest.Head
	ClientID    string  `json:"clientId"`
	Name        string  `json:"name"`
	Description *string `json:"description"`
	Status      string  `json:"status"`
	store.OpenIDClientSettings
	FAPI        bool      `json:"fapi"`
	Secrets     href.Link `json:"secrets"`
	CustomData  href.Link `json:"customData"`
	Application href.Link `json:"application"`
	Tenant      href.Link `json:"tenant"`
}

func (h *handlers) clientView(c store.OpenIDClient) clientView {
	return clientView{
		Head:     rest.NewHead(h.base.To("openIdClients", c.ID), c.CreatedAt, c.ModifiedAt),
		ClientID: c.ClientID, Name: c.Name, Description: c.Description, Status: c.Status, OpenIDClientSettings: c.Settings,
		FAPI:       relyingparty.CheckFAPI(c.Settings) == nil,
		CustomData: h.base.Link("openIdClients", c.ID, "customData"),
		Secrets:    h.base.Link("openIdClients", c.ID, "secrets"), Application: h.base.Link("applications", c.ApplicationID),
		Tenant: h.base.Link("tenants", c.TenantID),
	}
}

type secretView struct {
	Href       string     `json:"href"`
	CreatedAt  rest.Time  `json:"createdAt"`
	LastUsedAt *rest.Time `json:"lastUsedAt"`
	Secret     string     `json:"secret,omitempty"`
}

// Self is the address of the secret.
func (v secretView) Self() string { return v.Href }

func (h *handlers) secretView(s store.ClientSecret) secretView {
	return secretView{
		Href: h.base.To("openIdClients", s.ClientID, "secrets", s.ID.String()), CreatedAt: rest.Time(s.CreatedAt),
		LastUsedAt: optionalTime(s.LastUsedAt),
	}
}

// createSecret makes a secret, which stands in this answer alone.
func (h *handlers) createSecret(c *fiber.Ctx) error {
	client, err := rest.Ref(c)
	if err != nil {
		return err
	}
	made, err := h.svc.OpenID.CreateSecret(c.UserContext(), client)
	if err != nil {
		return err
	}
	view := h.secretView(made.ClientSecret)
	view.Secret = made.Secret.Reveal()
	return rest.Created(c, view.Href, view)
}

// deleteItem deletes an item of the resource of the path. The parameter name is the id of the item.
func deleteItem(name string, remove func(ctx context.Context, parent id.Ref, item id.ID) error) fiber.Handler {
	return func(c *fiber.Ctx) error {
		parent, err := rest.Ref(c)
		if err != nil {
			return err
		}
		item, err := rest.ID(c, name)
		if err == nil {
			err = remove(c.UserContext(), parent, item)
		}
		return rest.Deleted(c, err)
	}
}

// previewTokens answers with the claims that a login would give.
func (h *handlers) previewTokens(c *fiber.Ctx) error {
	client, in, err := rest.RefAndBody[openid.PreviewRequest, openid.Preview](c)
	if err != nil {
		return err
	}
	preview, err := h.svc.OpenID.Preview(c.UserContext(), client, in)
	if err != nil {
		return err
	}
	return rest.OK(c, preview)
}

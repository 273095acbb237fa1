package rest

import (
	"slices"

	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/oauth"
)

// webConfigView is the representation of a web config
// (docs/interface/client-api.md#web-config).
type webConfigView struct {
	rest.Head
	DNSLabel       *string           `json:"dnsLabel"`
	DomainName     *string           `json:"domainName"`
	Status         string            `json:"status"`
	OAuth2         enabled[bool]     `json:"oauth2"`
	Register       enabled[bool]     `json:"register"`
	Login          enabled[bool]     `json:"login"`
	VerifyEmail    enabled[*bool]    `json:"verifyEmail"`
	ForgotPassword enabled[*bool]    `json:"forgotPassword"`
	ChangePassword enabled[*bool]    `json:"changePassword"`
	Me             webConfigMeView   `json:"me"`
	MFA            *webConfigMFAView `json:"mfa,omitempty"`
	SigningAPIKey  *href.Link        `json:"signingApiKey"`
	Application    href.Link         `json:"application"`
	Tenant         href.Link         `json:"tenant"`
}

// enabled is the representation of a switch of endpoints.
type enabled[T bool | *bool] struct {
	Enabled T `json:"enabled"`
}

type webConfigMeView struct {
	enabled[bool]
	Expand map[string]bool `json:"expand"`
}

// webConfigMFAView is left out of a web config while it is the default: some clients take
// every unknown object of a resource for a link, and fail because it has no href.
type webConfigMFAView struct {
	Required    bool     `json:"required"`
	FactorTypes []string `json:"factorTypes"`
}

func (h *handlers) webConfigView(c oauth.WebConfig) webConfigView {
	view := webConfigView{
		Head:   rest.NewHead(h.base.To("applicationWebConfigs", c.Application.WebConfigID), c.CreatedAt, c.ModifiedAt),
		Status: c.Status,
		OAuth2: enabled[bool]{c.OAuth2}, Register: enabled[bool]{c.Register}, Login: enabled[bool]{c.Login},
		VerifyEmail: enabled[*bool]{c.VerifyEmail}, ForgotPassword: enabled[*bool]{c.ForgotPassword},
		ChangePassword: enabled[*bool]{c.ChangePassword},
		Me:             webConfigMeView{enabled[bool]{c.Me}, map[string]bool{}},
		Application:    h.base.Link("applications", c.ApplicationID), Tenant: h.base.Link("tenants", c.TenantID),
	}
	if !oauth.IsDefaultMFA(c.MFA) {
		mfa := webConfigMFAView(c.MFA)
		view.MFA = &mfa
	}
	for _, name := range oauth.MeExpansions {
		view.Me.Expand[name] = slices.Contains(c.MeExpand, name)
	}
	if c.DomainName != "" {
		view.DNSLabel, view.DomainName = &c.Application.DNSLabel, &c.DomainName
	}
	if c.SigningKeyID != "" {
		view.SigningAPIKey = &href.Link{Href: h.base.Path("apiKeys", c.SigningKeyID)}
	}
	return view
}

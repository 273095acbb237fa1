package rest

import (
	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
)

// applicationView is the representation of an application
// (docs/interface/applications.md#fields).
type applicationView struct {
	rest.Head
	Name                       string     `json:"name"`
	Description                *string    `json:"description"`
	Status                     string     `json:"status"`
	AuthorizedCallbackURIs     []string   `json:"authorizedCallbackUris"`
	AuthorizedOriginURIs       []string   `json:"authorizedOriginUris"`
	HomeURL                    *string    `json:"homeUrl"`
	Tenant                     href.Link  `json:"tenant"`
	DefaultAccountStoreMapping *href.Link `json:"defaultAccountStoreMapping"`
	DefaultGroupStoreMapping   *href.Link `json:"defaultGroupStoreMapping"`
	Accounts                   href.Link  `json:"accounts"`
	Groups                     href.Link  `json:"groups"`
	AccountStoreMappings       href.Link  `json:"accountStoreMappings"`
	LoginAttempts              href.Link  `json:"loginAttempts"`
	PasswordResetTokens        href.Link  `json:"passwordResetTokens"`
	VerificationEmails         href.Link  `json:"verificationEmails"`
	AuthTokens                 href.Link  `json:"authTokens"`
	APIKeys                    href.Link  `json:"apiKeys"`
	CustomData                 href.Link  `json:"customData"`
	OAuthPolicy                href.Link  `json:"oAuthPolicy"`
	SAMLPolicy                 href.Link  `json:"samlPolicy"`
	WebConfig                  href.Link  `json:"webConfig"`
	AccountLinkingPolicy       href.Link  `json:"accountLinkingPolicy"`
	OpenIDProvider             href.Link  `json:"openIdProvider"`
	OpenIDClients              href.Link  `json:"openIdClients"`
}

func (v views) application(a applicationapi.Application) applicationView {
	link := func(below string) href.Link { return v.Base.Link("applications", a.ID, below) }
	return applicationView{
		Head: rest.NewHead(v.Base.To("applications", a.ID), a.CreatedAt, a.ModifiedAt),
		Name: a.Name, Description: a.Description, Status: a.Status,
		AuthorizedCallbackURIs: a.AuthorizedCallbackURIs, AuthorizedOriginURIs: a.AuthorizedOriginURIs,
		HomeURL:                    a.HomeURL,
		Tenant:                     v.Base.Link("tenants", a.TenantID),
		DefaultAccountStoreMapping: v.Base.OptionalLink("accountStoreMappings", a.DefaultAccountStore),
		DefaultGroupStoreMapping:   v.Base.OptionalLink("accountStoreMappings", a.DefaultGroupStore),
		Accounts:                   link("accounts"), Groups: link("groups"),
		AccountStoreMappings: link("accountStoreMappings"),
		LoginAttempts:        link("loginAttempts"), PasswordResetTokens: link("passwordResetTokens"),
		VerificationEmails: link("verificationEmails"),
		AuthTokens:         link("authTokens"), APIKeys: link("apiKeys"), CustomData: link("customData"),
		OAuthPolicy: v.Base.Link("oAuthPolicies", a.ID), SAMLPolicy: v.Base.Link("samlPolicies", a.SAMLPolicyID),
		WebConfig:            v.Base.Link("applicationWebConfigs", a.WebConfigID),
		AccountLinkingPolicy: v.Base.Link("accountLinkingPolicies", a.AccountLinkingPolicyID),
		OpenIDProvider:       v.Base.Link("openIdProviders", a.ID), OpenIDClients: link("openIdClients"),
	}
}

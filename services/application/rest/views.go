package rest

import (
	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/application/store"
)

// applicationView is the representation of an application (resolutions,
// section 2.1).
type applicationView struct {
	Href                       string     `json:"href"`
	CreatedAt                  rest.Time  `json:"createdAt"`
	ModifiedAt                 rest.Time  `json:"modifiedAt"`
	Name                       string     `json:"name"`
	Description                *string    `json:"description"`
	Status                     string     `json:"status"`
	AuthorizedCallbackURIs     []string   `json:"authorizedCallbackUris"`
	AuthorizedOriginURIs       []string   `json:"authorizedOriginUris"`
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
}

func (h *handlers) applicationView(a applicationapi.Application) applicationView {
	link := func(below string) href.Link { return h.base.Link("applications", a.ID, below) }
	return applicationView{
		Href: h.base.To("applications", a.ID), CreatedAt: rest.Time(a.CreatedAt), ModifiedAt: rest.Time(a.ModifiedAt),
		Name: a.Name, Description: a.Description, Status: a.Status,
		AuthorizedCallbackURIs: a.AuthorizedCallbackURIs, AuthorizedOriginURIs: a.AuthorizedOriginURIs,
		Tenant:                     h.base.Link("tenants", a.TenantID),
		DefaultAccountStoreMapping: h.base.OptionalLink("accountStoreMappings", a.DefaultAccountStore),
		DefaultGroupStoreMapping:   h.base.OptionalLink("accountStoreMappings", a.DefaultGroupStore),
		Accounts:                   link("accounts"), Groups: link("groups"), AccountStoreMappings: link("accountStoreMappings"),
		LoginAttempts: link("loginAttempts"), PasswordResetTokens: link("passwordResetTokens"), VerificationEmails: link("verificationEmails"),
		AuthTokens: link("authTokens"), APIKeys: link("apiKeys"), CustomData: link("customData"),
		OAuthPolicy: h.base.Link("oAuthPolicies", a.ID), SAMLPolicy: h.base.Link("samlPolicies", a.SAMLPolicyID),
		WebConfig:            h.base.Link("applicationWebConfigs", a.WebConfigID),
		AccountLinkingPolicy: h.base.Link("accountLinkingPolicies", a.AccountLinkingPolicyID),
	}
}

type mappingView struct {
	Href                  string    `json:"href"`
	CreatedAt             rest.Time `json:"createdAt"`
	ModifiedAt            rest.Time `json:"modifiedAt"`
	ListIndex             int       `json:"listIndex"`
	IsDefaultAccountStore bool      `json:"isDefaultAccountStore"`
	IsDefaultGroupStore   bool      `json:"isDefaultGroupStore"`
	Application           href.Link `json:"application"`
	AccountStore          href.Link `json:"accountStore"`
}

func (h *handlers) mappingView(m store.Mapping) mappingView {
	return mappingView{
		Href: h.base.To("accountStoreMappings", m.ID), CreatedAt: rest.Time(m.CreatedAt), ModifiedAt: rest.Time(m.ModifiedAt),
		ListIndex: m.ListIndex, IsDefaultAccountStore: m.IsDefaultAccountStore, IsDefaultGroupStore: m.IsDefaultGroupStore,
		Application: h.base.Link("applications", m.ApplicationID), AccountStore: h.base.Link(m.StoreKind, m.StoreID),
	}
}

// loginView is the answer to a login attempt.
type loginView struct {
	Account href.Link `json:"account"`
}

// resetView is the representation of a password reset token (resolutions,
// section 2.5).
type resetView struct {
	Href    string    `json:"href"`
	Email   string    `json:"email"`
	Account href.Link `json:"account"`
}

func (h *handlers) resetView(application id.ID, r directoryapi.PasswordReset) resetView {
	return resetView{
		Href:  h.base.To("applications", application, "passwordResetTokens", r.Token.Reveal()),
		Email: r.Account.Email, Account: h.base.Link("accounts", r.Account.ID),
	}
}

func (h *handlers) accountView(a directoryapi.Account) directoryapi.AccountView {
	return a.View(h.base)
}

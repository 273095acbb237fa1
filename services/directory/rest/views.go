package rest

import (
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/directory/store"
)

type tenantView struct {
	Href                           string    `json:"href"`
	CreatedAt                      rest.Time `json:"createdAt"`
	ModifiedAt                     rest.Time `json:"modifiedAt"`
	Name                           string    `json:"name"`
	Key                            string    `json:"key"`
	CustomData                     href.Link `json:"customData"`
	Organizations                  href.Link `json:"organizations"`
	Applications                   href.Link `json:"applications"`
	Directories                    href.Link `json:"directories"`
	Accounts                       href.Link `json:"accounts"`
	Agents                         href.Link `json:"agents"`
	Groups                         href.Link `json:"groups"`
	IDSites                        href.Link `json:"idSites"`
	SMTPServers                    href.Link `json:"smtpServers"`
	Phones                         href.Link `json:"phones"`
	RegisteredSAMLServiceProviders href.Link `json:"registeredSamlServiceProviders"`
}

func (h *handlers) tenantView(t directoryapi.Tenant) tenantView {
	link := func(below string) href.Link { return h.base.Link("tenants", t.ID, below) }
	return tenantView{
		Href: h.base.To("tenants", t.ID), CreatedAt: rest.Time(t.CreatedAt), ModifiedAt: rest.Time(t.ModifiedAt), Name: t.Name, Key: t.Key,
		CustomData: link("customData"), Organizations: link("organizations"), Applications: link("applications"), Directories: link("directories"),
		Accounts: link("accounts"), Agents: link("agents"), Groups: link("groups"), IDSites: link("idSites"), SMTPServers: link("smtpServers"),
		Phones: link("phones"), RegisteredSAMLServiceProviders: link("registeredSamlServiceProviders"),
	}
}

type directoryView struct {
	Href                  string    `json:"href"`
	CreatedAt             rest.Time `json:"createdAt"`
	ModifiedAt            rest.Time `json:"modifiedAt"`
	Name                  string    `json:"name"`
	Description           *string   `json:"description"`
	Status                string    `json:"status"`
	Tenant                href.Link `json:"tenant"`
	Accounts              href.Link `json:"accounts"`
	Groups                href.Link `json:"groups"`
	Provider              href.Link `json:"provider"`
	CustomData            href.Link `json:"customData"`
	AccountCreationPolicy href.Link `json:"accountCreationPolicy"`
	PasswordPolicy        href.Link `json:"passwordPolicy"`
	AccountSchema         href.Link `json:"accountSchema"`
	Applications          href.Link `json:"applications"`
	ApplicationMappings   href.Link `json:"applicationMappings"`
	Organizations         href.Link `json:"organizations"`
	OrganizationMappings  href.Link `json:"organizationMappings"`
}

func (h *handlers) directoryView(d directoryapi.Directory) directoryView {
	link := func(below string) href.Link { return h.base.Link("directories", d.ID, below) }
	return directoryView{
		Href: h.base.To("directories", d.ID), CreatedAt: rest.Time(d.CreatedAt), ModifiedAt: rest.Time(d.ModifiedAt),
		Name: d.Name, Description: d.Description, Status: d.Status, Tenant: h.base.Link("tenants", d.TenantID),
		Accounts: link("accounts"), Groups: link("groups"), Provider: link("provider"), CustomData: link("customData"),
		AccountCreationPolicy: h.base.Link("accountCreationPolicies", d.ID), PasswordPolicy: h.base.Link("passwordPolicies", d.ID),
		AccountSchema: h.base.Link("schemas", d.SchemaID), Applications: link("applications"), ApplicationMappings: link("applicationMappings"),
		Organizations: link("organizations"), OrganizationMappings: link("organizationMappings"),
	}
}

func (h *handlers) accountView(a directoryapi.Account) directoryapi.AccountView {
	return a.View(h.base)
}

type creationPolicyView struct {
	Href                              string    `json:"href"`
	CreatedAt                         rest.Time `json:"createdAt"`
	ModifiedAt                        rest.Time `json:"modifiedAt"`
	VerificationEmailStatus           string    `json:"verificationEmailStatus"`
	VerificationSuccessEmailStatus    string    `json:"verificationSuccessEmailStatus"`
	WelcomeEmailStatus                string    `json:"welcomeEmailStatus"`
	EmailDomainWhitelist              []string  `json:"emailDomainWhitelist"`
	EmailDomainBlacklist              []string  `json:"emailDomainBlacklist"`
	VerificationEmailTemplates        href.Link `json:"verificationEmailTemplates"`
	VerificationSuccessEmailTemplates href.Link `json:"verificationSuccessEmailTemplates"`
	WelcomeEmailTemplates             href.Link `json:"welcomeEmailTemplates"`
	Directory                         href.Link `json:"directory"`
	Tenant                            href.Link `json:"tenant"`
}

func (h *handlers) creationPolicyView(p store.CreationPolicy) creationPolicyView {
	link := func(below string) href.Link { return h.base.Link("accountCreationPolicies", p.DirectoryID, below) }
	return creationPolicyView{
		Href: h.base.To("accountCreationPolicies", p.DirectoryID), CreatedAt: rest.Time(p.CreatedAt), ModifiedAt: rest.Time(p.ModifiedAt),
		VerificationEmailStatus: p.VerificationEmailStatus, VerificationSuccessEmailStatus: p.VerificationSuccessEmailStatus,
		WelcomeEmailStatus: p.WelcomeEmailStatus, EmailDomainWhitelist: p.EmailDomainWhitelist, EmailDomainBlacklist: p.EmailDomainBlacklist,
		VerificationEmailTemplates: link("verificationEmailTemplates"), VerificationSuccessEmailTemplates: link("verificationSuccessEmailTemplates"),
		WelcomeEmailTemplates: link("welcomeEmailTemplates"),
		Directory:             h.base.Link("directories", p.DirectoryID), Tenant: h.base.Link("tenants", p.TenantID),
	}
}

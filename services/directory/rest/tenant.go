package rest

import (
	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
)

// currentTenant redirects to the tenant of the caller's key.
func (v views) currentTenant(c *fiber.Ctx) error {
	return rest.Redirect(c, v.Base.To("tenants", rest.Caller(c).Tenant))
}

type tenantView struct {
	rest.Head
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
	SigningKeys                    href.Link `json:"signingKeys"`
	OpenIDSettings                 href.Link `json:"openIdSettings"`
}

func (v views) tenant(t directoryapi.Tenant) tenantView {
	link := func(below string) href.Link { return v.Base.Link("tenants", t.ID, below) }
	return tenantView{
		Head: rest.NewHead(v.Base.To("tenants", t.ID), t.CreatedAt, t.ModifiedAt), Name: t.Name, Key: t.Key,
		CustomData: link("customData"), Organizations: link("organizations"), Applications: link("applications"),
		Directories: link("directories"),
		Accounts:    link("accounts"), Agents: link("agents"), Groups: link("groups"), IDSites: link("idSites"),
		SMTPServers: link("smtpServers"),
		Phones:      link("phones"), RegisteredSAMLServiceProviders: link("registeredSamlServiceProviders"),
		SigningKeys: link("signingKeys"), OpenIDSettings: v.Base.Link("openIdSettings", t.ID),
	}
}

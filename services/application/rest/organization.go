package rest

import (
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/application/store"
)

type organizationView struct {
	rest.Head
	Name                       string     `json:"name"`
	NameKey                    string     `json:"nameKey"`
	Description                *string    `json:"description"`
	Status                     string     `json:"status"`
	Tenant                     href.Link  `json:"tenant"`
	DefaultAccountStoreMapping *href.Link `json:"defaultAccountStoreMapping"`
	DefaultGroupStoreMapping   *href.Link `json:"defaultGroupStoreMapping"`
	Accounts                   href.Link  `json:"accounts"`
	Groups                     href.Link  `json:"groups"`
	AccountStoreMappings       href.Link  `json:"accountStoreMappings"`
	CustomData                 href.Link  `json:"customData"`
	AccountLinkingPolicy       href.Link  `json:"accountLinkingPolicy"`
}

func (v views) organization(o store.Organization) organizationView {
	link := func(below string) href.Link { return v.Base.Link("organizations", o.ID, below) }
	return organizationView{
		Head: rest.NewHead(v.Base.To("organizations", o.ID), o.CreatedAt, o.ModifiedAt),
		Name: o.Name, NameKey: o.NameKey, Description: o.Description, Status: o.Status,
		Tenant:                     v.Base.Link("tenants", o.TenantID),
		DefaultAccountStoreMapping: v.Base.OptionalLink("organizationAccountStoreMappings", o.DefaultAccountStore),
		DefaultGroupStoreMapping:   v.Base.OptionalLink("organizationAccountStoreMappings", o.DefaultGroupStore),
		Accounts:                   link("accounts"), Groups: link("groups"),
		AccountStoreMappings: link("accountStoreMappings"),
		CustomData:           link("customData"),
		AccountLinkingPolicy: v.Base.Link("accountLinkingPolicies", o.AccountLinkingPolicyID),
	}
}

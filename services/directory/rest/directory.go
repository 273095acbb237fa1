package rest

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/directory"
)

type directoryView struct {
	rest.Head
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

func (v views) directory(d directoryapi.Directory) directoryView {
	link := func(below string) href.Link { return v.Base.Link("directories", d.ID, below) }
	return directoryView{
		Head: rest.NewHead(v.Base.To("directories", d.ID), d.CreatedAt, d.ModifiedAt),
		Name: d.Name, Description: d.Description, Status: d.Status, Tenant: v.Base.Link("tenants", d.TenantID),
		Accounts: link("accounts"), Groups: link("groups"), Provider: link("provider"), CustomData: link("customData"),
		AccountCreationPolicy: v.Base.Link("accountCreationPolicies", d.ID),
		PasswordPolicy:        v.Base.Link("passwordPolicies", d.ID),
		AccountSchema:         v.Base.Link("schemas", d.SchemaID), Applications: link("applications"),
		ApplicationMappings: link("applicationMappings"),
		Organizations:       link("organizations"), OrganizationMappings: link("organizationMappings"),
	}
}

func deleteDirectory(svc *directory.Service) func(context.Context, id.Ref) error {
	return func(ctx context.Context, at id.Ref) error {
		_, err := svc.DeleteDirectory(ctx, at)
		return err
	}
}

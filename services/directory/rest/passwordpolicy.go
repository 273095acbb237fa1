package rest

import (
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/directory/store"
)

type passwordPolicyView struct {
	rest.Head
	ResetTokenTTL              int       `json:"resetTokenTtl"`
	ResetEmailStatus           string    `json:"resetEmailStatus"`
	ResetSuccessEmailStatus    string    `json:"resetSuccessEmailStatus"`
	Strength                   href.Link `json:"strength"`
	ResetEmailTemplates        href.Link `json:"resetEmailTemplates"`
	ResetSuccessEmailTemplates href.Link `json:"resetSuccessEmailTemplates"`
	Directory                  href.Link `json:"directory"`
	Tenant                     href.Link `json:"tenant"`
}

func (v views) passwordPolicy(p store.PasswordPolicy) passwordPolicyView {
	link := func(below string) href.Link { return v.Base.Link("passwordPolicies", p.DirectoryID, below) }
	return passwordPolicyView{
		Head:          rest.NewHead(v.Base.To("passwordPolicies", p.DirectoryID), p.CreatedAt, p.ModifiedAt),
		ResetTokenTTL: p.ResetTokenTTL, ResetEmailStatus: p.ResetEmailStatus,
		ResetSuccessEmailStatus: p.ResetSuccessEmailStatus,
		Strength:                link("strength"), ResetEmailTemplates: link("resetEmailTemplates"),
		ResetSuccessEmailTemplates: link("resetSuccessEmailTemplates"),
		Directory:                  v.Base.Link("directories", p.DirectoryID),
		Tenant:                     v.Base.Link("tenants", p.TenantID),
	}
}

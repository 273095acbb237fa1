package rest

import (
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/application/store"
)

// linkingPolicyView is the representation of an account linking policy
// (docs/interface/account-linking.md#policy). It has a link to its application or to its
// organization.
type linkingPolicyView struct {
	rest.Head
	Status                string     `json:"status"`
	AutomaticProvisioning string     `json:"automaticProvisioning"`
	MatchingProperty      *string    `json:"matchingProperty"`
	Application           *href.Link `json:"application,omitempty"`
	Organization          *href.Link `json:"organization,omitempty"`
	Tenant                href.Link  `json:"tenant"`
}

func (v views) linkingPolicy(p store.LinkingPolicy) linkingPolicyView {
	view := linkingPolicyView{
		Head:   rest.NewHead(v.Base.To("accountLinkingPolicies", p.ID), p.CreatedAt, p.ModifiedAt),
		Status: p.Status, AutomaticProvisioning: p.AutomaticProvisioning, MatchingProperty: p.MatchingProperty,
		Tenant: v.Base.Link("tenants", p.TenantID),
	}
	owner := v.Base.Link(string(p.OwnerKind), p.OwnerID)
	if p.OwnerKind == store.OrganizationKind {
		view.Organization = &owner
		return view
	}
	view.Application = &owner
	return view
}

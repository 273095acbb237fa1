package rest

import (
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/application/store"
)

// serviceProviderView is the representation of a registered SAML service provider
// (docs/interface/applications.md#saml-identity-provider).
type serviceProviderView struct {
	rest.Head
	Name                        *string   `json:"name"`
	Description                 *string   `json:"description"`
	AssertionConsumerServiceURL string    `json:"assertionConsumerServiceUrl"`
	EntityID                    string    `json:"entityId"`
	NameIDFormat                string    `json:"nameIdFormat"`
	EncodedX509Certificate      *string   `json:"encodedX509Certificate"`
	CertificateStatus           *string   `json:"certificateStatus"`
	RequestsMustBeSigned        bool      `json:"requestsMustBeSigned"`
	Tenant                      href.Link `json:"tenant"`
}

func (v views) serviceProvider(p store.SAMLServiceProvider) serviceProviderView {
	view := serviceProviderView{
		Head: rest.NewHead(v.Base.To("registeredSamlServiceProviders", p.ID), p.CreatedAt, p.ModifiedAt),
		Name: p.Name, Description: p.Description, AssertionConsumerServiceURL: p.AssertionConsumerServiceURL,
		EntityID:     p.EntityID,
		NameIDFormat: p.NameIDFormat, EncodedX509Certificate: p.EncodedX509Certificate,
		RequestsMustBeSigned: p.MustSignRequests(),
		Tenant:               v.Base.Link("tenants", p.TenantID),
	}
	if status := v.saml.CertificateStatus(p); status != "" {
		view.CertificateStatus = &status
	}
	return view
}

package rest

import (
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/application/store"
)

// registrationView is the representation of a service provider's registration with
// an identity provider (docs/interface/applications.md#saml-identity-provider).
type registrationView struct {
	rest.Head
	Status            string    `json:"status"`
	DefaultRelayState *string   `json:"defaultRelayState"`
	ServiceProvider   href.Link `json:"serviceProvider"`
	IdentityProvider  href.Link `json:"identityProvider"`
}

func (v views) registration(r store.SAMLRegistration) registrationView {
	return registrationView{
		Head:   rest.NewHead(v.Base.To("samlServiceProviderRegistrations", r.ID), r.CreatedAt, r.ModifiedAt),
		Status: r.Status, DefaultRelayState: r.DefaultRelayState,
		ServiceProvider:  v.Base.Link("registeredSamlServiceProviders", r.ServiceProviderID),
		IdentityProvider: v.Base.Link("samlIdentityProviders", r.IdentityProviderID),
	}
}

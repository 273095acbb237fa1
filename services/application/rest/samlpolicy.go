package rest

import (
	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/application/saml"
)

// samlPolicyView is the representation of an application's SAML policy
// (docs/interface/applications.md#saml-policy). The policy, the service provider and
// the identity provider of an application have one id.
type samlPolicyView struct {
	rest.Head
	ServiceProvider  href.Link `json:"serviceProvider"`
	IdentityProvider href.Link `json:"identityProvider"`
}

// ownServiceProviderView is the representation of an application as a SAML
// service provider.
type ownServiceProviderView struct {
	rest.Head
	SSOInitiationEndpoint href.Link `json:"ssoInitiationEndpoint"`
	DefaultRelayStates    href.Link `json:"defaultRelayStates"`
}

// relayStateView is the answer to a request for a default relay state.
type relayStateView struct {
	DefaultRelayState string `json:"defaultRelayState"`
}

func (v views) samlPolicy(a applicationapi.Application) samlPolicyView {
	return samlPolicyView{
		Head:             v.headOfSAMLPolicy("samlPolicies", a),
		ServiceProvider:  v.Base.Link("samlServiceProviders", a.SAMLPolicyID),
		IdentityProvider: v.Base.Link("samlIdentityProviders", a.SAMLPolicyID),
	}
}

func (v views) ownServiceProvider(a applicationapi.Application) ownServiceProviderView {
	return ownServiceProviderView{
		Head:                  v.headOfSAMLPolicy("samlServiceProviders", a),
		SSOInitiationEndpoint: v.Base.Link("applications", a.ID, "saml", "sso", "idpRedirect"),
		DefaultRelayStates:    v.Base.Link("samlServiceProviders", a.SAMLPolicyID, "defaultRelayStates"),
	}
}

// headOfSAMLPolicy returns the head of a SAML policy, or of a SAML service provider. Both are
// created with their application and never change.
func (v views) headOfSAMLPolicy(kind string, a applicationapi.Application) rest.Head {
	return rest.NewHead(v.Base.To(kind, a.SAMLPolicyID), a.CreatedAt, a.CreatedAt)
}

// createRelayState answers 200, not 201: a relay state has no href.
func createRelayState(svc *saml.Service) fiber.Handler {
	return func(c *fiber.Ctx) error {
		at, err := rest.Ref(c)
		if err != nil {
			return err
		}
		var in saml.NewRelayState
		if err := rest.OptionalBody[struct{}](c, &in); err != nil {
			return err
		}
		state, err := svc.CreateDefaultRelayState(c.UserContext(), at, in)
		if err != nil {
			return err
		}
		return rest.OK(c, relayStateView{state.Reveal()})
	}
}

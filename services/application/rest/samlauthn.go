package rest

import (
	"encoding/base64"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/application/saml"
)

// authnVerificationView is the answer for an AuthnRequest that was verified
// (docs/interface/applications.md#saml-identity-provider).
type authnVerificationView struct {
	RelayState        *string   `json:"relayState"`
	ServiceProvider   href.Link `json:"serviceProvider"`
	RequestID         string    `json:"requestId"`
	AuthnIssueInstant rest.Time `json:"authnIssueInstant"`
}

// samlResponseView is a signed SAML response in Base64.
type samlResponseView struct {
	Value string `json:"value"`
}

// verifyAuthnRequest answers 200, not 201: no resource with an href is created.
func verifyAuthnRequest(svc *saml.Service, v views) fiber.Handler {
	return func(c *fiber.Ctx) error {
		at, in, err := rest.RefAndBody[saml.AuthnVerificationRequest, struct{}](c)
		if err != nil {
			return err
		}
		verified, err := svc.VerifyAuthnRequest(c.UserContext(), at, in)
		if err != nil {
			return err
		}
		return rest.OK(c, authnVerificationView{
			verified.RelayState, v.Base.Link("registeredSamlServiceProviders", verified.ServiceProvider),
			verified.RequestID, rest.Time(verified.IssuedAt),
		})
	}
}

// createSAMLResponse answers 200, as verifyAuthnRequest does.
func createSAMLResponse(svc *saml.Service) fiber.Handler {
	return func(c *fiber.Ctx) error {
		at, in, err := rest.RefAndBody[saml.ResponseRequest, struct{}](c)
		if err != nil {
			return err
		}
		signed, err := svc.CreateSAMLResponse(c.UserContext(), at, in)
		if err != nil {
			return err
		}
		return rest.OK(c, samlResponseView{base64.StdEncoding.EncodeToString(signed)})
	}
}

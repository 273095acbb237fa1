package applicationapi

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// SAML is what the hosted login asks of the application service for both roles that
// an application has in SAML (docs/interface/applications.md#saml-policy).
type SAML interface {
	// SAMLRelayState reads a default relay state, or returns apierr.SAMLMalformed.
	SAMLRelayState(context.Context, SAMLRelayState) (SAMLDestination, error)

	// SAMLApplication returns the oldest application that a directory is mapped to,
	// or apierr.NotFound.
	SAMLApplication(context.Context, directoryapi.Ref) (Application, error)

	// VerifySAMLRequest verifies the request of a service provider to the identity
	// provider of an application. It returns apierr.Format, Reference for an unknown
	// service provider, and UnusableStatus for one that is not registered, or
	// disabled.
	VerifySAMLRequest(context.Context, VerifySAMLRequest) (SAMLRequest, error)

	// SAMLResponse returns the signed response to a request that was verified. It
	// returns apierr.NotFound for the service provider, apierr.UnusableStatus as
	// VerifySAMLRequest does or for an account that may not log in, and
	// apierr.Reference for one that the application does not reach.
	SAMLResponse(context.Context, SAMLAnswer) (SAMLResponse, error)
}

// SAMLRelayState is a default relay state.
type SAMLRelayState struct {
	Token secure.Secret `json:"token"`
}

// SAMLDestination is where a login leads that an identity provider began.
type SAMLDestination struct {
	Application  Application `json:"application"`
	CallbackURI  string      `json:"callbackUri,omitempty"` // empty: the default one
	AccountStore href.Link   `json:"accountStore,omitzero"` // an organization
	State        *string     `json:"state"`
}

// VerifySAMLRequest brings a request as a browser brought it.
type VerifySAMLRequest struct {
	Tenant      id.ID  `json:"tenant"`
	Application id.ID  `json:"application"`
	Request     string `json:"request"` // SAMLRequest
	RelayState  string `json:"relayState,omitempty"`
	Query       string `json:"query,omitempty"` // empty: it came by HTTP-POST
}

// SAMLRequest is a request of a service provider that was verified.
type SAMLRequest struct {
	ServiceProvider id.ID   `json:"serviceProvider"`
	ID              string  `json:"id"`
	RelayState      *string `json:"relayState"` // of the request, or else of the registration
	ForceAuthn      bool    `json:"forceAuthn,omitempty"`
	IsPassive       bool    `json:"isPassive,omitempty"`
}

// SAMLAnswer says how a login went that a service provider asked for.
type SAMLAnswer struct {
	Tenant          id.ID  `json:"tenant"`
	Application     id.ID  `json:"application"`
	ServiceProvider id.ID  `json:"serviceProvider"`
	RequestID       string `json:"requestId"`
	Account         id.ID  `json:"account,omitzero"` // zero: nobody has logged in
	Reason          string `json:"reason,omitempty"` // why nobody has: a status code of SAML
	Message         string `json:"message,omitempty"`
}

// SAMLResponse is a signed response.
type SAMLResponse struct {
	ConsumerURL string        `json:"consumerUrl"`
	Response    secure.Secret `json:"response"` // in Base64
}

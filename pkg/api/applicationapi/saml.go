package applicationapi

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// SAML has the methods for SAML logins on the hosted login, for both roles of an application:
// service provider and identity provider (docs/interface/applications.md#saml-policy).
type SAML interface {
	// SAMLRelayState verifies and reads the RelayState of an IdP-initiated login, or returns
	// apierr.SAMLMalformed.
	SAMLRelayState(context.Context, SAMLRelayState) (SAMLDestination, error)

	// SAMLApplication returns the application of an IdP-initiated SAML login of a directory
	// without a RelayState of this service: the oldest application that the directory is mapped
	// to and that lists the callback, else the oldest of all, or apierr.NotFound.
	SAMLApplication(context.Context, SAMLApplication) (Application, error)

	// VerifySAMLRequest verifies the AuthnRequest of a service provider to the identity provider
	// of an application. It returns apierr.Format for a malformed request or a wrong signature,
	// Reference for an unknown service provider, and UnusableStatus where its registration is
	// missing or disabled.
	VerifySAMLRequest(context.Context, VerifySAMLRequest) (SAMLRequest, error)

	// SAMLResponse returns the signed response to a request that was verified. It
	// returns apierr.NotFound for the service provider, apierr.UnusableStatus as
	// VerifySAMLRequest does or for an account that may not log in, and apierr.Reference for an
	// account that is in no account store of the application.
	SAMLResponse(context.Context, SAMLAnswer) (SAMLResponse, error)
}

// SAMLRelayState is the RelayState of an IdP-initiated login: a signed JWT.
type SAMLRelayState struct {
	Token secure.Secret `json:"token"`
}

// SAMLApplication asks which application an IdP-initiated login is for.
type SAMLApplication struct {
	Directory   directoryapi.Ref `json:"directory"`
	CallbackURI string           `json:"callbackUri,omitempty"` // an address that the RelayState names; empty: none
}

// SAMLDestination says where an IdP-initiated login leads.
type SAMLDestination struct {
	Application  Application `json:"application"`
	CallbackURI  string      `json:"callbackUri,omitempty"` // empty: the default one
	AccountStore href.Link   `json:"accountStore,omitzero"` // an organization
	State        *string     `json:"state"`
}

// VerifySAMLRequest has an AuthnRequest as the browser has sent it.
type VerifySAMLRequest struct {
	Tenant      id.ID  `json:"tenant"`
	Application id.ID  `json:"application"`
	Request     string `json:"request"` // SAMLRequest
	RelayState  string `json:"relayState,omitempty"`
	Query       string `json:"query,omitempty"`   // empty: sent by HTTP-POST
	Address     string `json:"address,omitempty"` // where it was sent, which the request may name as its Destination
}

// SAMLRequest is an AuthnRequest that was verified.
type SAMLRequest struct {
	ServiceProvider id.ID   `json:"serviceProvider"`
	ID              string  `json:"id"`
	RelayState      *string `json:"relayState"` // of the request, or else the default of the registration
	ForceAuthn      bool    `json:"forceAuthn,omitempty"`
	IsPassive       bool    `json:"isPassive,omitempty"`
}

// SAMLAnswer is the result of a login that a service provider has requested.
type SAMLAnswer struct {
	Tenant          id.ID  `json:"tenant"`
	Application     id.ID  `json:"application"`
	ServiceProvider id.ID  `json:"serviceProvider"`
	RequestID       string `json:"requestId"`
	Account         id.ID  `json:"account,omitzero"` // zero: the login has failed
	Reason          string `json:"reason,omitempty"` // SAML status code of a failed login
	Message         string `json:"message,omitempty"`

	AuthenticatedAt time.Time `json:"authenticatedAt,omitzero"` // when the user proved who he is
	SessionIndex    string    `json:"sessionIndex,omitempty"`   // of the session of the user; empty: none
}

// SAMLResponse is a signed SAML response.
type SAMLResponse struct {
	ConsumerURL string        `json:"consumerUrl"`
	Response    secure.Secret `json:"response"` // in Base64
}

package oauthapi

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// OpenID has the methods about OpenID providers for the hosted login (services/idsite), which owns authorization
// requests, consents and sessions.
type OpenID interface {
	// IssueCode stores an authorization code for a login that is complete, and returns it. The token endpoint exchanges
	// it once. It returns apierr.NotFound for an application or a client that is not there or disabled, and
	// apierr.BadRequest, with the error of RFC 6749 in its field error, for a redirect URI that is not registered, a
	// code challenge that is missing, and a scope that the client may not have.
	IssueCode(context.Context, IssueCode) (IssuedCode, error)
}

// IssueCode is the request for an authorization code.
type IssueCode struct {
	Tenant        id.ID    `json:"tenant"`
	Application   id.ID    `json:"application"`
	ClientID      string   `json:"clientId"`
	RedirectURI   string   `json:"redirectUri"`
	CodeChallenge string   `json:"codeChallenge,omitempty"` // S256
	Scopes        []string `json:"scopes"`                  // that the user has consented to
	Resource      string   `json:"resource,omitempty"`      // RFC 8707
	Nonce         string   `json:"nonce,omitempty"`
	DPoPKey       string   `json:"dpopKey,omitempty"` // thumbprint: dpop_jkt, or that of a proof (RFC 9449, section 10)
	Account       id.ID    `json:"account"`
	Organization  id.ID    `json:"organization,omitzero"` // that the login named
	Session       string   `json:"session,omitempty"`     // the claim sid
	ACR           string   `json:"acr,omitempty"`
	AMR           []string `json:"amr,omitempty"`
	// AuthenticatedAt is when the account proved itself, not when the session was last used.
	AuthenticatedAt time.Time `json:"authenticatedAt"`
	// RedirectURINamed says that the authorization request had redirect_uri, so that the token request needs it.
	RedirectURINamed bool `json:"redirectUriNamed,omitempty"`
}

// IssuedCode is an authorization code.
type IssuedCode struct {
	Code secure.Secret `json:"code"`
}

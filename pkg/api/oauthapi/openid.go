package oauthapi

import (
	"context"
	"encoding/json"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// OpenID has the methods about OpenID providers for the hosted login (services/idsite), which owns what a browser
// sees: authorization requests in progress, consents, sessions, logout and the page of devices.
type OpenID interface {
	// Authorization checks an authorization request (OpenID Connect Core, section 3.1.2.2), also one that was pushed
	// (RFC 9126) or that is a signed request object (RFC 9101). What the redirect URI may learn is in
	// Authorization.Refusal. It returns apierr.NotFound for an application that is not there or is disabled, and
	// apierr.BadRequest for a client or a redirect URI that is wrong, which a page must show. A pushed request is
	// not used by it, but by IssueCode.
	Authorization(context.Context, AskAuthorization) (Authorization, error)

	// IssueCode stores an authorization code for a login that is complete, and returns it. The token endpoint exchanges
	// it once. It returns apierr.NotFound for an application or a client that is not there or disabled, and
	// apierr.BadRequest, with the error of RFC 6749 in its field error, for a redirect URI that is not registered, a
	// code challenge that is missing, a scope that the client may not have, a pushed request that was used before, and
	// an account that is not the one of the id_token_hint (login_required).
	IssueCode(context.Context, IssueCode) (IssuedCode, error)

	// DeviceRequest returns what a device has asked for (RFC 8628, section 3.3), by the code that its user has typed.
	// It returns apierr.NotFound for a code that is unknown, expired or answered.
	DeviceRequest(context.Context, DeviceCode) (Authorization, error)

	// AnswerDevice records once that the user has allowed or refused what a device has asked for. It returns
	// apierr.NotFound as DeviceRequest.
	AnswerDevice(context.Context, DeviceAnswer) (Done, error)

	// LogoutRequest checks a logout request of a client (OpenID Connect RP-Initiated Logout, section 2). It returns
	// apierr.NotFound for an application that is not there or is disabled, and apierr.BadRequest for an id_token_hint
	// that is not valid, a client that is another one, and a redirect URI that is not registered or whose client is
	// not known.
	LogoutRequest(context.Context, AskLogout) (Logout, error)

	// EndTokens ends the tokens of an account that were made in a session, or for a client.
	EndTokens(context.Context, EndTokens) (Done, error)

	// LogoutToken signs a logout token for a client (OpenID Connect Back-Channel Logout, section 2.4). It returns
	// apierr.NotFound for a client that is not there, is disabled, or has no address for it any more.
	LogoutToken(context.Context, AskLogoutToken) (LogoutToken, error)

	// OpenIDClients returns clients of a tenant by their ids, also disabled ones, without those that are not there.
	OpenIDClients(context.Context, AskOpenIDClients) (OpenIDClients, error)
}

// The authentication context classes (claim acr) that a login may reach (docs/interface/openid.md#logins).
const (
	ACRPassword = "urn:doorward:acr:password"
	ACRMFA      = "urn:doorward:acr:mfa"
)

// Done answers a method that returns nothing.
type Done struct{}

// OpenIDClient is a client of an application (relying party), as pages show it.
type OpenIDClient struct {
	ID                    id.ID  `json:"id"`
	ClientID              string `json:"clientId"`
	Application           id.ID  `json:"application"`
	Issuer                string `json:"issuer"` // of the application
	Name                  string `json:"name"`
	LogoURI               string `json:"logoUri,omitempty"`
	ClientURI             string `json:"clientUri,omitempty"`
	PolicyURI             string `json:"policyUri,omitempty"`
	TosURI                string `json:"tosUri,omitempty"`
	InitiateLoginURI      string `json:"initiateLoginUri,omitempty"`
	FrontchannelLogoutURI string `json:"frontchannelLogoutUri,omitempty"`
	BackchannelLogoutURI  string `json:"backchannelLogoutUri,omitempty"`
	// Host is that of a client that brings its metadata along; empty: the client is registered.
	Host string `json:"host,omitempty"`
}

// AskAuthorization is the request to check an authorization request.
type AskAuthorization struct {
	Application id.ID               `json:"application"`
	Parameters  map[string][]string `json:"parameters"` // as they were sent
	// Account is that of the session that the browser has; zero: none.
	Account id.ID `json:"account,omitzero"`
}

// Authorization is an authorization request, or the request of a device, that is to be shown to a user.
type Authorization struct {
	Tenant      id.ID        `json:"tenant"`
	Application id.ID        `json:"application"`
	Issuer      string       `json:"issuer"`
	Client      OpenIDClient `json:"client"`

	RedirectURI      string `json:"redirectUri"`
	RedirectURINamed bool   `json:"redirectUriNamed,omitempty"`
	ResponseMode     string `json:"responseMode"` // query or form_post
	State            string `json:"state,omitempty"`
	// Refusal is the error that the redirect URI gets; nil: the request is good. The members above are set.
	Refusal *AuthorizationError `json:"refusal,omitempty"`

	Scopes        []string        `json:"scopes"`
	Resource      string          `json:"resource,omitempty"`
	Nonce         string          `json:"nonce,omitempty"`
	CodeChallenge string          `json:"codeChallenge,omitempty"`
	DPoPKey       string          `json:"dpopKey,omitempty"`
	Claims        json.RawMessage `json:"claims,omitempty"` // the parameter claims, checked
	Pushed        []byte          `json:"pushed,omitempty"` // digest of the request_uri that IssueCode uses up
	Prompt        []string        `json:"prompt,omitempty"` // none, login, consent, select_account, create
	MaxAge        *int            `json:"maxAge,omitempty"` // seconds since the user has proved who he is
	LoginHint     string          `json:"loginHint,omitempty"`
	HintSubject   string          `json:"hintSubject,omitempty"` // sub of id_token_hint
	// OtherAccount says that id_token_hint is of another account than that of the browser's session.
	OtherAccount bool     `json:"otherAccount,omitempty"`
	ACRValues    []string `json:"acrValues,omitempty"` // in the order of preference
	// ACRRequired says that the claim acr is asked for as essential: a login without one of ACRValues is an error.
	ACRRequired  bool     `json:"acrRequired,omitempty"`
	UILocales    []string `json:"uiLocales,omitempty"`
	Organization string   `json:"organization,omitempty"` // a nameKey
	AccountStore string   `json:"accountStore,omitempty"` // an href
	// Consent are the scopes that the user is asked for, unless he has allowed them before; none: nothing is asked.
	Consent []ConsentScope `json:"consent,omitempty"`
}

// AuthorizationError is an error of an authorization response (RFC 6749, section 4.1.2.1).
type AuthorizationError struct {
	Error       string `json:"error"`
	Description string `json:"description,omitempty"`
}

// ConsentScope is a scope as the consent page shows it.
type ConsentScope struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"` // of a scope of the application's APIs; "": the built-in text
}

// Login is a login that the hosted pages have completed, of which tokens are made.
type Login struct {
	Account      id.ID    `json:"account"`
	Organization id.ID    `json:"organization,omitzero"` // that the login named
	Session      string   `json:"session,omitempty"`     // the claim sid
	ACR          string   `json:"acr,omitempty"`
	AMR          []string `json:"amr,omitempty"`
	// AuthenticatedAt is when the account proved itself, not when the session was last used.
	AuthenticatedAt time.Time `json:"authenticatedAt"`
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
	// thumbprint: dpop_jkt, or that of a proof (RFC 9449, section 10)
	DPoPKey     string          `json:"dpopKey,omitempty"`
	Claims      json.RawMessage `json:"claims,omitempty"`
	Pushed      []byte          `json:"pushed,omitempty"`      // Authorization.Pushed
	HintSubject string          `json:"hintSubject,omitempty"` // Authorization.HintSubject
	// RedirectURINamed says that the authorization request had redirect_uri, so that the token request needs it.
	RedirectURINamed bool `json:"redirectUriNamed,omitempty"`
	Login
}

// IssuedCode is an authorization code.
type IssuedCode struct {
	Code secure.Secret `json:"code"`
}

// DeviceCode names the request of a device.
type DeviceCode struct {
	Application id.ID  `json:"application"`
	UserCode    string `json:"userCode"` // as the user has typed it
}

// DeviceAnswer is the answer of a user to a device.
type DeviceAnswer struct {
	DeviceCode
	Allowed bool     `json:"allowed,omitempty"`
	Scopes  []string `json:"scopes,omitempty"` // that the user has consented to
	Login            // zero unless Allowed
}

// AskLogout is the request to check a logout request.
type AskLogout struct {
	Application id.ID               `json:"application"`
	Parameters  map[string][]string `json:"parameters"` // as they were sent
}

// Logout is a logout request of a client.
type Logout struct {
	Tenant      id.ID         `json:"tenant"`
	Application id.ID         `json:"application"`
	Issuer      string        `json:"issuer"`
	Client      *OpenIDClient `json:"client,omitempty"` // nil: not known
	// sub of id_token_hint, whose signature is valid; "": there is none
	Subject     string   `json:"subject,omitempty"`
	Session     string   `json:"session,omitempty"` // sid of id_token_hint
	Account     id.ID    `json:"account,omitzero"`  // of Subject, where the client's subject type is public
	RedirectURI string   `json:"redirectUri,omitempty"`
	State       string   `json:"state,omitempty"`
	UILocales   []string `json:"uiLocales,omitempty"`
}

// EndTokens names tokens that end. Either Sessions or Client is set.
type EndTokens struct {
	Tenant   id.ID    `json:"tenant"`
	Account  id.ID    `json:"account"`
	Sessions []string `json:"sessions,omitempty"` // claims sid
	Client   id.ID    `json:"client,omitzero"`
	// KeepOffline keeps the tokens with the scope offline_access.
	KeepOffline bool `json:"keepOffline,omitempty"`
}

// AskLogoutToken is the request for a logout token.
type AskLogoutToken struct {
	Tenant  id.ID  `json:"tenant"`
	Client  id.ID  `json:"client"`
	Account id.ID  `json:"account"`
	Session string `json:"session"` // the claim sid
	JTI     string `json:"jti"`     // the same for each attempt
}

// LogoutToken is a logout token, and where it is sent.
type LogoutToken struct {
	Address string        `json:"address"`
	Token   secure.Secret `json:"token"`
}

// AskOpenIDClients is the request for clients by their ids.
type AskOpenIDClients struct {
	Tenant  id.ID   `json:"tenant"`
	Clients []id.ID `json:"clients"`
}

// OpenIDClients are clients, in no order.
type OpenIDClients struct {
	Items []OpenIDClient `json:"items"`
}

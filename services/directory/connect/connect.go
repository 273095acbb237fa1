// Package connect is social login (identity federation by OAuth 2.0 and OpenID Connect). It
// fetches the user of a login from the provider of a directory: social providers (google.go,
// facebook.go, github.go, linkedin.go, twitter.go; social.go has what they share), OAuth 2.0
// providers that tenants have configured (generic.go), and OpenID Connect providers by their
// discovery document (discovery.go, idtoken.go). transport.go limits every call, endpoints.go has
// the URLs of the social providers. The accounts of the users are in
// services/directory/provider/account.go.
package connect

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/outbound"
	"github.com/doorward/doorward/pkg/secure"
)

// loginTimeout bounds all calls of a login together. It is shorter than the timeout of a request.
const loginTimeout = 12 * time.Second

// The social providers.
const (
	google   = "google"
	facebook = "facebook"
	github   = "github"
	linkedin = "linkedin"
	twitter  = "twitter"
)

// Provider is the provider of a directory.
type Provider struct {
	ID           string // the providerId of the directory
	ClientID     string
	ClientSecret secure.Secret
	RedirectURI  string // for a login that names none
	Scope        []string
	HD           string // google: the domain that users must have
	Display      string // google
	AccessType   string // google
	// Endpoints are those of a generic provider. DiscoveryURL fills those that it
	// leaves out.
	Endpoints
	DiscoveryURL    string
	IDField         string // path of the user's id in the user object
	AccessTokenType string // bearer, access_token or oauth_token
	// AcceptForeignTokens admits access tokens of which the provider cannot be asked to which client
	// they were issued: whoever runs another application of the provider can log in as its users.
	AcceptForeignTokens bool
}

// Client calls providers. It is safe for use by several goroutines.
type Client struct {
	http      *http.Client
	endpoints map[string]Endpoints
	documents *documentCache
	now       func() time.Time
}

// New makes a client. endpoints are those of the social providers, by their ids.
func New(guard outbound.Guard, endpoints map[string]Endpoints, now func() time.Time) *Client {
	return &Client{
		http: newHTTP(guard.Transport()), endpoints: endpoints,
		documents: &documentCache{entries: map[string]document{}},
		now:       now,
	}
}

// AuthorizationRequest starts a login in a browser (RFC 6749, section 4.1.1).
type AuthorizationRequest struct {
	RedirectURI string // where the provider sends the browser back
	State       secure.Secret
	Scope       []string // replaces that of the provider, unless it is empty
}

// StartedLogin is the URL at which a login starts, and the secrets that are needed when the
// browser comes back.
type StartedLogin struct {
	URL           string        // authorization endpoint with its parameters, for the browser
	Verifier      secure.Secret // PKCE code verifier (RFC 7636); empty where the provider supports none
	Nonce         secure.Secret // expected in the id token; empty for a login without id token
	RequestSecret secure.Secret // twitter: secret of the request token
}

// Begin returns the URL to which the browser goes to log in at a provider, with state, nonce and
// PKCE challenge. It returns apierr.ProviderRefused for a provider that is misconfigured or cannot
// be reached.
func (c *Client) Begin(ctx context.Context, of Provider, in AuthorizationRequest) (StartedLogin, error) {
	ctx, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	p, err := c.resolve(ctx, of)
	if err != nil {
		return StartedLogin{}, err
	}
	if len(in.Scope) > 0 {
		p.Scope = in.Scope
	}
	p.Scope = p.withOpenID()
	if p.ID == twitter {
		return c.beginTwitter(ctx, p, in)
	}
	var out StartedLogin
	var options []oauth2.AuthCodeOption
	set := func(name, value string) {
		if value != "" {
			options = append(options, oauth2.SetAuthURLParam(name, value))
		}
	}
	if p.takesPKCE {
		out.Verifier = secure.Secret(oauth2.GenerateVerifier())
		options = append(options, oauth2.S256ChallengeOption(out.Verifier.Reveal()))
	}
	if p.Issuer != "" && (p.ID == google || slices.Contains(p.Scope, "openid")) {
		out.Nonce = secure.Token(32)
		set("nonce", out.Nonce.Reveal())
	}
	if p.ID == google {
		set("hd", p.HD)
		set("display", p.Display)
		set("access_type", p.AccessType)
	}
	if p.Issuer == appleIssuer {
		set("response_mode", "form_post") // Apple shares the email only in this mode
	}
	out.URL = p.oauth2(in.RedirectURI).AuthCodeURL(in.State.Reveal(), options...)
	return out, nil
}

const appleIssuer = "https://appleid.apple.com"

// Login is what a client or a browser received from a provider: the access token or the
// authorization code of a user.
type Login struct {
	AccessToken       secure.Secret
	AccessTokenSecret secure.Secret
	Code              secure.Secret
	RedirectURI       string        // to which the browser came back; empty for that of the provider
	Verifier          secure.Secret // of StartedLogin
	Nonce             secure.Secret // of StartedLogin
}

// User fetches the user of a login from the provider. The caller sets Tenant, Directory and
// Application of the result. It returns apierr.ProviderRefused where the provider refuses the
// login, cannot be reached or sends an invalid answer, ProviderOtherClient for a token that was
// issued to another client, and ProviderIncomplete for a user without an id.
func (c *Client) User(ctx context.Context, of Provider, in Login) (directoryapi.ProviderUser, error) {
	ctx, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	p, err := c.resolve(ctx, of)
	if err != nil {
		return directoryapi.ProviderUser{}, err
	}
	s := &providerLogin{Client: c, provider: p, login: in, tokens: directoryapi.ProviderTokens{
		AccessToken: in.AccessToken, AccessTokenSecret: in.AccessTokenSecret,
	}}
	if p.ID == twitter {
		return s.twitter(ctx)
	}
	if in.Code != "" {
		if err := s.exchange(ctx); err != nil {
			return directoryapi.ProviderUser{}, err
		}
	}
	return s.ownUser(ctx)
}

// ownUser fetches the user of the access token, which must have been issued to the client of the
// directory: apierr.ProviderOtherClient. The provider's answer for the user says best why a token is
// not valid, and goes before that of the check.
func (s *providerLogin) ownUser(ctx context.Context) (directoryapi.ProviderUser, error) {
	client, checkErr := s.tokenClient(ctx)
	if errors.Is(checkErr, apierr.ProviderOtherClient) {
		return directoryapi.ProviderUser{}, checkErr
	}
	if client != "" && client != s.provider.ClientID {
		return directoryapi.ProviderUser{}, s.otherClientError()
	}
	user, err := s.user(ctx)
	switch {
	case err != nil:
		return directoryapi.ProviderUser{}, err
	case checkErr != nil:
		return directoryapi.ProviderUser{}, checkErr
	case client == "":
		return directoryapi.ProviderUser{}, s.otherClientError()
	}
	return user, nil
}

// user fetches the user of the access token.
func (s *providerLogin) user(ctx context.Context) (directoryapi.ProviderUser, error) {
	switch s.provider.ID {
	case google:
		return s.google(ctx)
	case facebook:
		return s.facebook(ctx)
	case github:
		return s.github(ctx)
	case linkedin:
		return s.linkedin(ctx)
	}
	return s.generic(ctx)
}

// providerLogin is one login at a provider.
type providerLogin struct {
	*Client
	provider provider
	login    Login
	tokens   directoryapi.ProviderTokens
	idToken  string
	claims   map[string]any // of the id token, once it is verified
}

// provider is a Provider with its defaults and the result of discovery.
type provider struct {
	Provider
	takesPKCE           bool     // RFC 7636
	secretInHeader      bool     // at the token endpoint: HTTP Basic
	introspectionByForm bool     // at the introspection endpoint: client id and secret in the form, not HTTP Basic
	algorithms          []string // of id tokens
}

// withOpenID returns the scope of a login. Of an OpenID Connect provider it has openid, without
// which there is no id token (OpenID Connect Core, section 3.1.2.1); where the directory names none,
// also the scopes of the claims that an account is made of (section 5.4).
func (p provider) withOpenID() []string {
	switch {
	case p.DiscoveryURL == "" || slices.Contains(p.Scope, "openid"):
		return p.Scope
	case len(p.Scope) == 0:
		return []string{"openid", "profile", "email"}
	}
	return append([]string{"openid"}, p.Scope...)
}

// resolve returns the provider with the endpoints of a social provider, or those of its discovery
// document.
func (c *Client) resolve(ctx context.Context, p Provider) (provider, error) {
	out := provider{Provider: p}
	if known, social := c.endpoints[p.ID]; social {
		out.Endpoints = known
		out.takesPKCE = p.ID == google || p.ID == github || p.ID == facebook
		return out, nil
	}
	if p.DiscoveryURL == "" {
		return out, nil
	}
	return out, c.discover(ctx, &out)
}

func (p provider) oauth2(redirect string) *oauth2.Config {
	style := oauth2.AuthStyleInParams
	if p.secretInHeader {
		style = oauth2.AuthStyleInHeader
	}
	return &oauth2.Config{
		ClientID: p.ClientID, ClientSecret: p.ClientSecret.Reveal(), RedirectURL: redirect, Scopes: p.Scope,
		Endpoint: oauth2.Endpoint{AuthURL: p.Authorization, TokenURL: p.Token, AuthStyle: style},
	}
}

// exchange redeems the authorization code for tokens (RFC 6749, section 4.1.3), and verifies the
// id token among them.
func (s *providerLogin) exchange(ctx context.Context) error {
	redirect := s.login.RedirectURI
	if redirect == "" {
		redirect = s.provider.RedirectURI
	}
	var options []oauth2.AuthCodeOption
	if s.login.Verifier != "" {
		options = append(options, oauth2.VerifierOption(s.login.Verifier.Reveal()))
	}
	token, err := s.provider.oauth2(redirect).
		Exchange(context.WithValue(ctx, oauth2.HTTPClient, s.http), s.login.Code.Reveal(), options...)
	if err != nil {
		return s.callError(err)
	}
	s.tokens = directoryapi.ProviderTokens{
		AccessToken: secure.Secret(token.AccessToken), RefreshToken: secure.Secret(token.RefreshToken),
	}
	s.idToken, _ = token.Extra("id_token").(string)
	if s.idToken == "" {
		if s.login.Nonce != "" && s.provider.DiscoveryURL != "" {
			return s.providerError("it answered without an id token, though the scope has openid")
		}
		return nil
	}
	if s.provider.Issuer == "" {
		return nil // without an issuer no keys are known that could verify the id token
	}
	return s.verifyIDToken(ctx)
}

// providerError is the error for a login that fails at the provider. Secrets of the login are
// redacted from its text.
func (s *providerLogin) providerError(text string) *apierr.Error {
	for _, secret := range []secure.Secret{
		s.tokens.AccessToken, s.tokens.AccessTokenSecret, s.tokens.RefreshToken, s.provider.ClientSecret,
		s.login.AccessToken, s.login.AccessTokenSecret, s.login.Code, s.login.Verifier,
	} {
		if len(secret) > 3 {
			text = strings.ReplaceAll(strings.ReplaceAll(text, secret.Reveal(), "***"),
				url.QueryEscape(secret.Reveal()),
				"***")
		}
	}
	return providerError(s.provider.Provider, text)
}

// callError is the error for a failed call of the provider.
func (s *providerLogin) callError(err error) error {
	var refused *oauth2.RetrieveError
	if s.provider.ID == linkedin && errors.As(err, &refused) {
		if own := ownText(refused.Body); own != "" {
			return s.providerError(own)
		}
	}
	return s.providerError(failureText(err))
}

// answerError is the error for an answer that is none of success: its status and then the
// provider's own text, for linkedin its own text alone, as clients compare it.
func (s *providerLogin) answerError(status int, object map[string]any) error {
	own := textOfError(object)
	switch {
	case own == "":
		return s.providerError(statusText(status))
	case s.provider.ID == linkedin:
		return s.providerError(own)
	}
	return s.providerError(statusText(status) + ": " + own)
}

// providerError names the provider as clients compare it: with a capital letter.
func providerError(p Provider, text string) *apierr.Error {
	name := strings.ToLower(p.ID)
	if name != "" {
		name = strings.ToUpper(name[:1]) + name[1:]
	}
	return apierr.ProviderRefused.Because("%s error message: %s", name, text)
}

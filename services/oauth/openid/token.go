package openid

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/telemetry"
	"github.com/doorward/doorward/services/oauth/relyingparty"
	"github.com/doorward/doorward/services/oauth/store"
)

// Form has the fields of a form. Fields without a value are absent.
type Form map[string]secure.Secret

func (f Form) text(name string) string { return f[name].Reveal() }

// Call is a request to an endpoint of a provider that a client makes.
type Call struct {
	Application id.ID
	Form        Form
	// Basic are the credentials of HTTP Basic authentication, as they were sent; nil: none.
	Basic *BasicCredentials
	// Method and Endpoint are those of the request, for the proof of possession; Endpoint is the part of the
	// address behind the issuer: /token.
	Method, Endpoint string
	Address          string   // of a request that is not below the issuer; empty: it is
	Proofs           []string // headers DPoP
	Bearer           secure.Secret
	Scheme           string // of the header Authorization, in lower case
	// Authenticated is called with the client that the call has authenticated, or whose access token it has sent, for
	// the limits of clients; nil: nobody asks.
	Authenticated func(client id.Ref)
}

func (in Call) authenticated(client id.Ref) {
	if in.Authenticated != nil {
		in.Authenticated(client)
	}
}

// BasicCredentials are a client_id and a secret.
type BasicCredentials struct {
	ID     string
	Secret secure.Secret
}

// Tokens is the answer of the token endpoint (RFC 6749, section 5.1).
type Tokens struct {
	AccessToken     string `json:"access_token"`
	TokenType       string `json:"token_type"`
	ExpiresIn       int64  `json:"expires_in"`
	RefreshToken    string `json:"refresh_token,omitempty"`
	IDToken         string `json:"id_token,omitempty"`
	Scope           string `json:"scope"`
	IssuedTokenType string `json:"issued_token_type,omitempty"`
}

// request is a call of the token endpoint whose client is authenticated and whose proof of possession is checked:
// what a grant sees.
type request struct {
	issuer
	Call
	client store.OpenIDClient
	jkt    string // thumbprint of the key of the proof; empty: no proof was sent
	now    time.Time
}

// issue is what a grant allows to be issued. Its tokens are issued by Token alone, after the account and the
// scopes were checked.
type issue struct {
	login    store.Login // of an account; of a client itself, Account is zero
	scopes   []string
	audience string // address of an API; empty: the issuer
	grant    id.ID  // under which the tokens are issued; zero: under none
	expires  time.Time
	idToken  bool
	kind     string // issued_token_type of token exchange
	actor    string // client_id of the client that acts for the account; empty: none
	// refresh gives the refresh token of the answer; nil: none. save is called in the transaction that stores the
	// access token, and refuses it where the right was used or ended meanwhile.
	refresh secure.Secret
	save    func(ctx context.Context, tx *store.Tx) error
}

// grant checks one grant type of a request, and returns what may be issued. It issues nothing.
type grant func(s *Service, ctx context.Context, r request) (issue, error)

var grants = map[string]grant{
	relyingparty.GrantClient:   (*Service).clientGrant,
	relyingparty.GrantRefresh:  (*Service).refreshGrant,
	relyingparty.GrantCode:     (*Service).codeGrant,
	relyingparty.GrantDevice:   (*Service).deviceGrant,
	relyingparty.GrantExchange: (*Service).exchangeGrant,
}

// Token is the token endpoint. The phases stand here once, around every grant type: the client is authenticated, the
// proof of possession checked, the grant asked, access checked, and the tokens issued.
func (s *Service) Token(ctx context.Context, in Call) (issued Tokens, err error) {
	defer func() {
		kind := in.Form.text("grant_type")
		if grants[kind] == nil {
			kind = "unknown"
		}
		s.Count(ctx, "openid "+kind, err)
	}()
	i, err := s.issuer(ctx, in.Application)
	if err != nil {
		return Tokens{}, err
	}
	client, err := s.authenticateClient(ctx, i, in)
	if err != nil {
		return Tokens{}, err
	}
	r := request{issuer: i, Call: in, client: client, now: s.Now().Truncate(time.Second)}
	if r.jkt, err = s.checkProof(ctx, i, in, ""); err != nil {
		return Tokens{}, err
	}
	if r.jkt == "" && client.Settings.DPoPBoundAccessTokens {
		return Tokens{}, refuse("invalid_dpop_proof",
			"the client's tokens are bound to a key: send a proof in the header DPoP")
	}
	kind := in.Form.text("grant_type")
	check := grants[kind]
	switch {
	case kind == "":
		return Tokens{}, refuse("invalid_request", "grant_type is missing")
	case check == nil:
		return Tokens{}, refuse("unsupported_grant_type", "the grant type %q is not supported", kind)
	}
	if err := checkGrantType(client, kind); err != nil {
		return Tokens{}, err
	}
	allowed, err := check(s, ctx, r)
	if err != nil {
		return Tokens{}, err
	}
	account, err := s.checkIssue(ctx, r, &allowed)
	if err != nil {
		return Tokens{}, err
	}
	return s.issueTokens(ctx, r, allowed, account)
}

// checkGrantType refuses a grant type that a client is not registered with.
func checkGrantType(client store.OpenIDClient, kind string) error {
	if slices.Contains(client.Settings.GrantTypes, kind) {
		return nil
	}
	return refuse("unauthorized_client", "the client does not have the grant type %s", kind)
}

// checkIssue checks that the account may act through the application, and takes away the scopes that are given to
// the members of groups alone where it is none. It returns the account; of a client itself the zero one.
func (s *Service) checkIssue(ctx context.Context, r request, allowed *issue) (directoryapi.Account, error) {
	login := allowed.login
	if login.Account.IsZero() {
		allowed.scopes = slices.DeleteFunc(allowed.scopes, func(name string) bool {
			scope, ok := r.scope(name)
			return !ok || len(scope.Groups) > 0
		})
		return directoryapi.Account{}, nil
	}
	account, err := s.account(ctx, r.ref(), login)
	if apierr.IsRefusal(err) {
		err = refuse("invalid_grant", "the account may not act through the application: %s", apierr.From(err).Reason)
	}
	if err != nil {
		return account, err
	}
	allowed.scopes, err = s.withoutForeignScopes(ctx, r.issuer, login.Account, allowed.scopes)
	return account, err
}

// checkAccess refuses a login whose account may not act through the application any more.
func (s *Service) checkAccess(ctx context.Context, application id.Ref, login store.Login) error {
	return s.CheckLogin(ctx, applicationapi.CheckAccess{
		Tenant: application.Tenant, Application: application.ID, Account: login.Account, Organization: login.Organization,
	}, login.At)
}

// account returns the account of a login, unless checkAccess refuses it.
func (s *Service) account(ctx context.Context, application id.Ref, login store.Login) (directoryapi.Account, error) {
	if err := s.checkAccess(ctx, application, login); err != nil {
		return directoryapi.Account{}, err
	}
	account, err := s.Directory.Account(ctx, id.Ref{Tenant: application.Tenant, ID: login.Account})
	if errors.Is(err, apierr.NotFound) {
		err = apierr.TokenAccountDisabled.Because("the account was deleted")
	}
	return account, err
}

// withoutForeignScopes leaves out the scopes that are given to members of groups of which the account is none.
func (s *Service) withoutForeignScopes(ctx context.Context, i issuer, account id.ID, scopes []string) ([]string,
	error) {
	var stores []directoryapi.Store
	kept := []string{}
	for _, name := range scopes {
		scope, _ := i.scope(name)
		if len(scope.Groups) > 0 && stores == nil {
			found, err := s.Directory.StoresOf(ctx, id.Ref{Tenant: i.app.TenantID, ID: account})
			if err != nil {
				return nil, err
			}
			stores = found.Stores
		}
		isMember := func(v directoryapi.Store) bool {
			return v.Kind == directoryapi.Groups && slices.Contains(scope.Groups, v.ID)
		}
		if len(scope.Groups) == 0 || slices.ContainsFunc(stores, isMember) {
			kept = append(kept, name)
		}
	}
	return kept, nil
}

// newToken is the access token that a grant gives.
func (s *Service) newToken(ctx context.Context, r request, allowed issue) (store.OpenIDToken, error) {
	access, err := s.accessTTL(ctx, r.issuer, r.client)
	if err != nil {
		return store.OpenIDToken{}, err
	}
	expires := r.now.Add(access)
	if !allowed.expires.IsZero() && allowed.expires.Before(expires) {
		expires = allowed.expires
	}
	return store.OpenIDToken{
		TenantID: r.app.TenantID, ID: id.New(s.Now()), ApplicationID: r.app.ID, ClientID: r.client.ID,
		AccountID: allowed.login.Account, GrantID: allowed.grant, IssuedAt: r.now, ExpiresAt: expires,
		Token: store.TokenContent{Scopes: allowed.scopes, Audience: cmp.Or(allowed.audience, r.url), JKT: allowed.login.JKT,
			Actor: allowed.actor, Login: allowed.login},
	}, nil
}

// issueTokens issues the tokens of a grant whose checks have passed.
func (s *Service) issueTokens(ctx context.Context, r request, allowed issue, account directoryapi.Account) (Tokens,
	error) {
	t, err := s.newToken(ctx, r, allowed)
	if err != nil {
		return Tokens{}, err
	}
	text, err := s.encodeAccessToken(ctx, r.issuer, r.client, &t, account)
	if err != nil {
		return Tokens{}, err
	}
	err = s.Store.Tx(ctx, func(tx *store.Tx) error {
		if allowed.save != nil {
			if err := allowed.save(ctx, tx); err != nil {
				return err
			}
		}
		tx.InsertOpenIDToken(t)
		return nil
	})
	if errors.Is(err, errReplayed) {
		telemetry.Audit(caller.WithTenant(ctx, t.TenantID), "tokenReuse", slog.String("application", t.ApplicationID.String()),
			slog.String("openIdClient", t.ClientID.String()), slog.String("account", t.AccountID.String()))
		err = s.Store.Tx(ctx, func(tx *store.Tx) error {
			tx.EndOpenIDGrant(id.Ref{Tenant: t.TenantID, ID: t.GrantID})
			return nil
		})
		return Tokens{}, cmp.Or(err, errRefresh)
	}
	if err != nil {
		return Tokens{}, err
	}
	out := Tokens{
		AccessToken: text.Reveal(), TokenType: "Bearer", ExpiresIn: int64(t.ExpiresAt.Sub(r.now) / time.Second),
		Scope: joinScopes(allowed.scopes), RefreshToken: allowed.refresh.Reveal(), IssuedTokenType: allowed.kind,
	}
	if t.Token.JKT != "" {
		out.TokenType = "DPoP"
	}
	if allowed.idToken && slices.Contains(allowed.scopes, scopeOpenID) {
		idToken, err := s.idToken(ctx, r, allowed, account, text)
		if err != nil {
			return Tokens{}, err
		}
		out.IDToken = idToken.Reveal()
	}
	return out, nil
}

// encodeAccessToken returns the text of an access token: a JWT (RFC 9068), or random text.
func (s *Service) encodeAccessToken(ctx context.Context, i issuer, client store.OpenIDClient, t *store.OpenIDToken,
	account directoryapi.Account) (secure.Secret, error) {
	if client.Settings.AccessTokenFormat == relyingparty.FormatOpaque {
		text := secure.Token(relyingparty.SecretLength)
		t.Digest = secure.Digest(text)
		return text, nil
	}
	claims, err := s.accessClaims(ctx, i, client, *t, account)
	if err != nil {
		return "", err
	}
	return s.Sign(ctx, t.TenantID, i.provider.Settings.SigningAlgorithm, map[string]any{"typ": TypeAccessToken},
		claims, t.ExpiresAt)
}

// TypeAccessToken is the typ of an access token (RFC 9068, section 2.1).
const TypeAccessToken = "at+jwt"

// accessClaims are the claims of an access token with those of its account.
func (s *Service) accessClaims(ctx context.Context, i issuer, client store.OpenIDClient, t store.OpenIDToken,
	account directoryapi.Account) (secure.Claims, error) {
	claims := s.tokenClaims(i, client, t)
	if t.AccountID.IsZero() {
		return claims, nil
	}
	return claims, s.accountClaims(ctx, i, claims, account, t.Token.Login, t.Token.Scopes, nil, inAccessToken)
}

// tokenClaims are the claims of an access token, as its JWT and introspection have them.
func (s *Service) tokenClaims(i issuer, client store.OpenIDClient, t store.OpenIDToken) secure.Claims {
	claims := secure.Claims{
		"iss": i.url, "sub": i.subject(client, t.AccountID), "aud": t.Token.Audience, "client_id": client.ClientID,
		"iat": t.IssuedAt.Unix(), "exp": t.ExpiresAt.Unix(), "jti": t.ID.String(),
	}
	if len(t.Token.Scopes) > 0 {
		claims["scope"] = joinScopes(t.Token.Scopes)
	}
	if t.Token.JKT != "" {
		claims["cnf"] = map[string]any{"jkt": t.Token.JKT}
	}
	if t.Token.Actor != "" {
		claims["act"] = map[string]any{"sub": t.Token.Actor}
	}
	if !t.AccountID.IsZero() {
		s.loginClaims(claims, t.Token.Login)
		if org := t.Token.Login.Organization; !org.IsZero() {
			claims["org"] = s.Base.To("organizations", org)
		}
	}
	return claims
}

// loginClaims adds what a token says of its login.
func (s *Service) loginClaims(claims secure.Claims, login store.Login) {
	claims["auth_time"] = login.At.Unix()
	if login.ACR != "" {
		claims["acr"] = login.ACR
	}
	if len(login.AMR) > 0 {
		claims["amr"] = login.AMR
	}
}

// idToken returns the ID token of an answer (OpenID Connect Core, section 2).
func (s *Service) idToken(ctx context.Context, r request, allowed issue, account directoryapi.Account,
	access secure.Secret) (secure.Secret, error) {
	claims, expires, err := s.idClaims(ctx, r, allowed, account)
	if err != nil {
		return "", err
	}
	half := sha256.Sum256([]byte(access.Reveal()))
	claims["at_hash"] = base64.RawURLEncoding.EncodeToString(half[:len(half)/2])
	return s.Sign(ctx, r.app.TenantID, r.idTokenAlgorithm(r.client), map[string]any{"typ": "JWT"}, claims, expires)
}

// idClaims are the claims of an ID token without at_hash, and its end.
func (s *Service) idClaims(ctx context.Context, r request, allowed issue, account directoryapi.Account) (secure.Claims,
	time.Time, error) {
	text := r.provider.Settings.IDTokenTTL
	if r.client.Settings.IDTokenTTL != nil {
		text = *r.client.Settings.IDTokenTTL
	}
	ttl, err := field.ParseDuration(text)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("read the lifetime of ID tokens of %s: %w", r.app.ID, err)
	}
	expires := r.now.Add(ttl)
	claims := secure.Claims{
		"iss": r.url, "sub": r.subject(r.client, account.ID), "aud": r.client.ClientID, "iat": r.now.Unix(),
		"exp": expires.Unix(),
	}
	s.loginClaims(claims, allowed.login)
	if allowed.login.Nonce != "" {
		claims["nonce"] = allowed.login.Nonce
	}
	if allowed.login.Session != "" {
		claims["sid"] = allowed.login.Session
	}
	return claims, expires, s.accountClaims(ctx, r.issuer, claims, account, allowed.login, allowed.scopes,
		allowed.login.Claims.IDToken, inIDToken)
}

// idTokenAlgorithm is that of the ID tokens and logout tokens of a client.
func (i issuer) idTokenAlgorithm(client store.OpenIDClient) string {
	if client.Settings.IDTokenSignedResponseAlg != nil {
		return *client.Settings.IDTokenSignedResponseAlg
	}
	return i.provider.Settings.SigningAlgorithm
}

func (s *Service) accessTTL(ctx context.Context, i issuer, client store.OpenIDClient) (time.Duration, error) {
	access, _, err := s.Lifetimes(ctx, i.ref())
	if err != nil {
		return 0, err
	}
	if client.Settings.AccessTokenTTL != nil {
		access = *client.Settings.AccessTokenTTL
	}
	d, err := field.ParseDuration(access)
	return d.Truncate(time.Second), err
}

// scope returns a scope of the application's APIs, or a built-in one.
func (i issuer) scope(name string) (store.OpenIDScope, bool) {
	at := slices.IndexFunc(i.provider.Settings.Scopes, func(v store.OpenIDScope) bool { return v.Name == name })
	if at < 0 {
		return store.OpenIDScope{Name: name}, slices.Contains(builtinScopes, name)
	}
	return i.provider.Settings.Scopes[at], true
}

// allowedScopes returns the scopes of a request that the provider knows, or all that the client may have where it
// names none and all is set. A scope that the client may not have is invalid_scope. With an audience, scopes of other
// APIs are left out.
func (i issuer) allowedScopes(client store.OpenIDClient, text, audience string, all bool) ([]string, error) {
	asked := strings.Fields(text)
	if len(asked) == 0 && all {
		for _, scope := range i.provider.Settings.Scopes {
			if i.mayHave(client, scope.Name) {
				asked = append(asked, scope.Name)
			}
		}
	}
	scopes := []string{}
	for _, name := range asked {
		scope, known := i.scope(name)
		switch {
		case !known || slices.Contains(scopes, name):
			continue
		case !i.mayHave(client, name):
			return nil, refuse("invalid_scope", "the client may not have the scope %s", name)
		case audience != "" && len(scope.Resources) > 0 && !slices.Contains(scope.Resources, audience):
			continue
		}
		scopes = append(scopes, name)
	}
	return scopes, nil
}

// mayHave reports whether a client may have a scope.
func (i issuer) mayHave(client store.OpenIDClient, name string) bool {
	return client.Settings.Scopes == nil || slices.Contains(client.Settings.Scopes, name)
}

// target checks the parameter resource (RFC 8707): the address of an API that a scope of the provider has; empty:
// none.
func (i issuer) target(resource string) (string, error) {
	if resource == "" {
		return "", nil
	}
	for _, scope := range i.provider.Settings.Scopes {
		if slices.Contains(scope.Resources, resource) {
			return resource, nil
		}
	}
	return "", refuse("invalid_target", "the resource %q is none of the provider's", resource)
}

// refuse is an error of the token endpoint (RFC 6749, section 5.2).
func refuse(code, reason string, args ...any) error {
	base := apierr.BadRequest
	if code == "invalid_client" || code == "invalid_token" {
		base = apierr.Unauthorized
	}
	return base.Because(reason, args...).With("error", code)
}

// clientGrant is the grant of client credentials (RFC 6749, section 4.4): tokens of the client itself.
func (s *Service) clientGrant(_ context.Context, r request) (issue, error) {
	audience, err := r.target(r.Form.text("resource"))
	if err != nil {
		return issue{}, err
	}
	scopes, err := r.allowedScopes(r.client, r.Form.text("scope"), audience, true)
	// The built-in scopes speak of an account.
	scopes = slices.DeleteFunc(scopes, func(name string) bool { return slices.Contains(builtinScopes, name) })
	return issue{scopes: scopes, audience: audience, login: store.Login{JKT: r.jkt, Issuer: r.siteURL}}, err
}

package openid_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/oauthtest"
	"github.com/doorward/doorward/services/oauth/openid"
	"github.com/doorward/doorward/services/oauth/store"
)

const (
	callback = "https://shop.example.test/cb"
	verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk-and-more"
	api      = "https://api.example.test"
)

// party is a client of a provider with its secret.
type party struct {
	t *testing.T
	*oauthtest.Deployment
	oauthtest.Site
	store.OpenIDClient
	secret secure.Secret
	key    *ecdsa.PrivateKey // of its proofs; nil: it sends none
}

// newParty makes a client of the site's application.
func newParty(t *testing.T, d *oauthtest.Deployment, s oauthtest.Site, in openid.ClientChange) *party {
	t.Helper()
	if !in.Name.Present {
		in.Name = field.Some("Client " + id.New(d.Clock.Now()).String())
	}
	if !in.RedirectURIs.Present && in.ApplicationType.Value != "service" {
		in.RedirectURIs = field.Some([]string{callback})
	}
	c, err := d.Service.CreateClient(t.Context(), id.Ref{Tenant: s.Tenant, ID: s.Application}, in)
	if err != nil {
		t.Fatal(err)
	}
	p := &party{t: t, Deployment: d, Site: s, OpenIDClient: c}
	if strings.HasPrefix(c.Settings.TokenEndpointAuthMethod, "client_secret") {
		made, err := d.Service.CreateSecret(t.Context(), id.Ref{Tenant: c.TenantID, ID: c.ID})
		if err != nil {
			t.Fatal(err)
		}
		p.secret = made.Secret
	}
	return p
}

// call makes a request of the client to an endpoint, of names and values in turn.
func (p *party) call(endpoint string, pairs ...string) openid.Call {
	in := openid.Call{Application: p.Site.Application, Method: "POST", Endpoint: endpoint, Form: openid.Form{}}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			in.Form[pairs[i]] = secure.Secret(pairs[i+1])
		}
	}
	if p.secret != "" {
		in.Basic = &openid.BasicCredentials{ID: p.ClientID, Secret: p.secret}
	} else {
		in.Form["client_id"] = secure.Secret(p.ClientID)
	}
	if p.key != nil {
		in.Proofs = []string{p.proof(endpoint, nil)}
	}
	return in
}

// proof makes a proof of possession; claims replace those of a good one.
func (p *party) proof(endpoint string, claims map[string]any) string {
	p.t.Helper()
	all := jwt.MapClaims{
		"jti": id.New(p.Clock.Now()).String(), "htm": "POST", "htu": p.Service.Issuer(p.Site.Application) + endpoint,
		"iat": p.Clock.Now().Unix(),
	}
	for name, value := range claims {
		all[name] = value
		if value == nil {
			delete(all, name)
		}
	}
	token := jwt.NewWithClaims(jwt.SigningMethodES256, all)
	token.Header["typ"], token.Header["jwk"] = "dpop+jwt", jose.JSONWebKey{Key: p.key.Public()}
	text, err := token.SignedString(p.key)
	if err != nil {
		p.t.Fatal(err)
	}
	return text
}

func newKeyPair(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// code gets an authorization code, as the hosted login does. change may be nil.
func (p *party) code(change func(*oauthapi.IssueCode)) string {
	p.t.Helper()
	sum := sha256.Sum256([]byte(verifier))
	in := oauthapi.IssueCode{
		Tenant: p.Site.Tenant, Application: p.Site.Application, ClientID: p.ClientID, RedirectURI: callback,
		RedirectURINamed: true,
		CodeChallenge:    base64.RawURLEncoding.EncodeToString(sum[:]), Scopes: []string{"openid", "profile", "email",
			"offline_access"},
		Nonce: "n-1", Account: p.Site.Account, AuthenticatedAt: p.Clock.Now(), ACR: "urn:doorward:acr:password",
		AMR: []string{"pwd"}, Session: "s-1",
	}
	if change != nil {
		change(&in)
	}
	issued, err := p.Service.IssueCode(p.t.Context(), in)
	if err != nil {
		p.t.Fatal(err)
	}
	return issued.Code.Reveal()
}

func (p *party) redeem(code string) openid.Call {
	return p.call("/token", "grant_type", "authorization_code", "code", code, "redirect_uri", callback, "code_verifier",
		verifier)
}

func (p *party) refresh(token string) openid.Call {
	return p.call("/token", "grant_type", "refresh_token", "refresh_token", token)
}

func (p *party) token(in openid.Call) openid.Tokens {
	p.t.Helper()
	issued, err := p.Service.OpenID.Token(p.t.Context(), in)
	if err != nil {
		p.t.Fatal(err)
	}
	return issued
}

// refuse checks the error of a token request.
func (p *party) refuse(what, code string, in openid.Call) {
	p.t.Helper()
	_, err := p.Service.OpenID.Token(p.t.Context(), in)
	wantError(p.t, what, code, err)
}

func wantError(t *testing.T, what, code string, err error) {
	t.Helper()
	if refusal := apierr.From(err); err == nil || refusal.Fields["error"] != code {
		t.Errorf("%s returns %v with %v, want %s", what, err, refusal, code)
	}
}

// active reports whether a token is active, as its client sees it.
func (p *party) active(token string) bool {
	p.t.Helper()
	found, err := p.Service.Introspect(p.t.Context(), p.call("/introspect", "token", token))
	if err != nil {
		p.t.Fatal(err)
	}
	return found["active"] == true
}

// claims verifies a JWT with the key set of the application.
func (p *party) claims(text string) (header map[string]any, claims jwt.MapClaims) {
	p.t.Helper()
	set, err := p.Service.Keys(p.t.Context(), p.Site.Application)
	if err != nil {
		p.t.Fatal(err)
	}
	claims = jwt.MapClaims{}
	token, err := jwt.NewParser(jwt.WithoutClaimsValidation()).ParseWithClaims(text, claims, func(t *jwt.Token) (any,
		error) {
		for _, raw := range set.Keys {
			var key jose.JSONWebKey
			if err := key.UnmarshalJSON(raw); err != nil {
				return nil, err
			}
			if key.KeyID == t.Header["kid"] {
				return key.Key, nil
			}
		}
		return nil, errors.New("no key of that kid")
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return token.Header, claims
}

func service(name string) openid.ClientChange {
	return openid.ClientChange{Name: field.Some(name), ApplicationType: field.Some("service")}
}

func setScopes(t *testing.T, d *oauthtest.Deployment, scopes ...openid.ScopeChange) {
	t.Helper()
	_, err := d.Service.UpdateProvider(t.Context(), id.Ref{Tenant: d.Tenant, ID: d.Site.Application},
		openid.ProviderChange{Scopes: field.Some(scopes)})
	if err != nil {
		t.Fatal(err)
	}
}

func TestClientCredentials(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	setScopes(t, d, openid.ScopeChange{Name: "orders:read", Resources: []string{api}},
		openid.ScopeChange{Name: "orders:write"})
	p := newParty(t, d, d.Site, service("Nightly"))
	issued := p.token(p.call("/token", "grant_type", "client_credentials", "scope", "orders:read openid unknown",
		"resource", api))
	header, claims := p.claims(issued.AccessToken)
	if header["typ"] != "at+jwt" || claims["iss"] != d.Service.Issuer(d.Site.Application) ||
		claims["sub"] != p.ClientID || claims["aud"] != api ||
		claims["client_id"] != p.ClientID || claims["scope"] != "orders:read" || issued.TokenType != "Bearer" ||
		issued.ExpiresIn != 3600 {
		t.Errorf("the token has %v, %v and the answer is %+v", header, claims, issued)
	}
	if issued.RefreshToken != "" || issued.IDToken != "" || !p.active(issued.AccessToken) {
		t.Errorf("the answer is %+v", issued)
	}
	if all := p.token(p.call("/token", "grant_type", "client_credentials")); all.Scope != "orders:read orders:write" {
		t.Errorf("without scope it has %q", all.Scope)
	}
	p.refuse("a grant type that is not there", "unsupported_grant_type", p.call("/token", "grant_type", "password"))
	p.refuse("no grant type", "invalid_request", p.call("/token"))
	p.refuse("a grant type of other clients", "unauthorized_client", p.call("/token", "grant_type", "refresh_token"))
	p.refuse("an unknown resource", "invalid_target", p.call("/token", "grant_type", "client_credentials", "resource",
		"https://other.test"))
	narrow := service("Narrow")
	narrow.Scopes = field.Some([]string{"orders:read"})
	n := newParty(t, d, d.Site, narrow)
	n.refuse("a scope that the client may not have", "invalid_scope", n.call("/token", "grant_type",
		"client_credentials", "scope", "orders:write"))

	t.Run("a client authenticates by its method alone", func(t *testing.T) {
		in := p.call("/token", "grant_type", "client_credentials")
		in.Basic.Secret += "x"
		p.refuse("a wrong secret", "invalid_client", in)
		in = p.call("/token", "grant_type", "client_credentials", "client_id", p.ClientID, "client_secret", p.secret.Reveal())
		p.refuse("two methods", "invalid_request", in)
		in.Basic = nil
		p.refuse("the secret in the body", "invalid_client", in)
		delete(in.Form, "client_secret")
		p.refuse("no secret", "invalid_client", in)
		in.Form["client_id"] = ""
		p.refuse("no client", "invalid_client", in)
		for _, other := range []string{"", "x", id.New(d.Clock.Now()).String()} {
			in.Basic = &openid.BasicCredentials{ID: other, Secret: p.secret}
			p.refuse("the client "+other, "invalid_client", in)
		}
		stranger := newParty(t, d, d.NewSite(t), service("Stranger"))
		in = stranger.call("/token", "grant_type", "client_credentials")
		in.Application = d.Site.Application
		p.refuse("a client of another tenant", "invalid_client", in)
		neighbour := d.Site
		neighbour.Application = d.NewApplication(d.Tenant)
		in = newParty(t, d, neighbour, service("Neighbour")).call("/token", "grant_type", "client_credentials")
		in.Application = d.Site.Application
		p.refuse("a client of another application", "invalid_client", in)
	})
	t.Run("a disabled client has no tokens", func(t *testing.T) {
		at := id.Ref{Tenant: p.TenantID, ID: p.ID}
		if _, err := d.Service.UpdateClient(t.Context(), at,
			openid.ClientChange{Status: field.Some("DISABLED")}); err != nil {
			t.Fatal(err)
		}
		p.refuse("a disabled client", "invalid_client", p.call("/token", "grant_type", "client_credentials"))
		if _, err := d.Service.UpdateClient(t.Context(), at, openid.ClientChange{Status: field.Some("ENABLED")}); err != nil {
			t.Fatal(err)
		}
		if !p.active(issued.AccessToken) {
			t.Error("the token of an enabled client is not active")
		}
	})
	t.Run("a disabled provider is not there", func(t *testing.T) {
		at := id.Ref{Tenant: d.Tenant, ID: d.Site.Application}
		if _, err := d.Service.UpdateProvider(t.Context(), at,
			openid.ProviderChange{Status: field.Some("DISABLED")}); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Service.OpenID.Token(t.Context(), p.call("/token", "grant_type",
			"client_credentials")); !errors.Is(err, apierr.NotFound) {
			t.Errorf("a token request returns %v, want %v", err, apierr.NotFound)
		}
		if _, err := d.Service.Discovery(t.Context(), d.Site.Application); !errors.Is(err, apierr.NotFound) {
			t.Errorf("discovery returns %v, want %v", err, apierr.NotFound)
		}
	})
}

func TestPrivateKeyJWT(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	key := newKeyPair(t)
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "c1"}}})
	if err != nil {
		t.Fatal(err)
	}
	in := service("Signer")
	in.TokenEndpointAuthMethod, in.JWKS = field.Some("private_key_jwt"), field.Some(json.RawMessage(set))
	p := newParty(t, d, d.Site, in)
	issuer := d.Service.Issuer(d.Site.Application)
	now := d.Clock.Now()
	assertion := func(method jwt.SigningMethod, signer any, change map[string]any) openid.Call {
		claims := jwt.MapClaims{"iss": p.ClientID, "sub": p.ClientID, "aud": issuer, "exp": now.Add(time.Minute).Unix(),
			"jti": id.New(now).String()}
		for name, value := range change {
			claims[name] = value
			if value == nil {
				delete(claims, name)
			}
		}
		token := jwt.NewWithClaims(method, claims)
		token.Header["kid"] = "c1"
		text, err := token.SignedString(signer)
		if err != nil {
			t.Fatal(err)
		}
		return p.call("/token", "grant_type", "client_credentials", "client_assertion", text,
			"client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
	}
	good := assertion(jwt.SigningMethodES256, key, nil)
	p.token(good)
	p.refuse("an assertion that was used", "invalid_client", good)
	p.token(assertion(jwt.SigningMethodES256, key, map[string]any{"aud": issuer + "/token"}))
	p.token(assertion(jwt.SigningMethodES256, key, map[string]any{"nbf": now.Add(8 * time.Second).Unix()}))
	for name, change := range map[string]map[string]any{
		"an audience that is a list": {"aud": []string{issuer}},
		"another audience":           {"aud": "https://other.test"},
		"no audience":                {"aud": nil},
		"an expired one":             {"exp": now.Add(-time.Second).Unix()},
		"one without end":            {"exp": nil},
		"one of a long life":         {"exp": now.Add(time.Hour).Unix()},
		"one of the future":          {"nbf": now.Add(time.Minute).Unix()},
		"one without jti":            {"jti": nil},
		"one of another issuer":      {"iss": "x"},
		"one without subject":        {"sub": nil},
		"an end that is no number":   {"exp": "soon"},
		"an end beyond all time":     {"exp": 1e300},
	} {
		p.refuse(name, "invalid_client", assertion(jwt.SigningMethodES256, key, change))
	}
	p.refuse("another key", "invalid_client", assertion(jwt.SigningMethodES256, newKeyPair(t), nil))
	p.refuse("the public key as a secret", "invalid_client", assertion(jwt.SigningMethodHS256, set, nil))
	p.refuse("no signature", "invalid_client", assertion(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil))
}

func TestAuthorizationCodes(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	p := newParty(t, d, d.Site, openid.ClientChange{})
	issued := p.token(p.redeem(p.code(nil)))
	header, claims := p.claims(issued.IDToken)
	hash := sha256.Sum256([]byte(issued.AccessToken))
	if header["alg"] != "RS256" || claims["aud"] != p.ClientID || claims["sub"] != d.Site.Account.String() ||
		claims["nonce"] != "n-1" || claims["sid"] != "s-1" ||
		claims["acr"] != "urn:doorward:acr:password" ||
		claims["at_hash"] != base64.RawURLEncoding.EncodeToString(hash[:16]) || claims["email"] != nil {
		t.Errorf("the ID token has %v, %v", header, claims)
	}
	info, err := d.Service.UserInfo(t.Context(), openid.Call{Application: d.Site.Application, Method: "GET",
		Endpoint: "/userinfo", Scheme: "bearer",
		Bearer: secure.Secret(issued.AccessToken)})
	if err != nil || info.Claims["sub"] != d.Site.Account.String() || info.Claims["email"] != oauthtest.Login ||
		info.Claims["preferred_username"] != oauthtest.Login {
		t.Errorf("UserInfo is %v, %v", info, err)
	}
	if issued.RefreshToken == "" || !p.active(issued.AccessToken) || !p.active(issued.RefreshToken) {
		t.Errorf("the tokens are %+v", issued)
	}
	t.Run("a second use ends the tokens of the first", func(t *testing.T) {
		code := p.code(nil)
		first := p.token(p.redeem(code))
		p.refuse("a used code", "invalid_grant", p.redeem(code))
		if p.active(first.AccessToken) || p.active(first.RefreshToken) {
			t.Error("the tokens of a code that was used twice are active")
		}
	})
	t.Run("fifty uses at once leave no token", func(t *testing.T) {
		code := p.code(nil)
		var wait sync.WaitGroup
		var mu sync.Mutex
		var given []openid.Tokens
		for range 50 {
			wait.Go(func() {
				tokens, err := d.Service.OpenID.Token(t.Context(), p.redeem(code))
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					given = append(given, tokens)
				} else if apierr.From(err).Status >= 500 {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		if len(given) > 1 {
			t.Fatalf("%d uses gave tokens", len(given))
		}
		for _, tokens := range given {
			if p.active(tokens.AccessToken) || p.active(tokens.RefreshToken) {
				t.Error("the tokens of a code that was used fifty times are active")
			}
		}
	})
	other := newParty(t, d, d.Site, openid.ClientChange{})
	for name, change := range map[string]func(*openid.Call){
		"a wrong verifier":     func(in *openid.Call) { in.Form["code_verifier"] = verifier + "x" },
		"no verifier":          func(in *openid.Call) { delete(in.Form, "code_verifier") },
		"the challenge itself": func(in *openid.Call) { in.Form["code_verifier"] = "xs" },
		"another redirect URI": func(in *openid.Call) { in.Form["redirect_uri"] = callback + "/" },
		"no redirect URI":      func(in *openid.Call) { delete(in.Form, "redirect_uri") },
		"a code of another client": func(in *openid.Call) {
			in.Basic = &openid.BasicCredentials{ID: other.ClientID,
				Secret: other.secret}
		},
	} {
		code := p.code(nil)
		in := p.redeem(code)
		change(&in)
		p.refuse(name, "invalid_grant", in)
		p.refuse("a code after "+name, "invalid_grant", p.redeem(code))
	}
	t.Run("a code is good for a minute", func(t *testing.T) {
		code := p.code(nil)
		d.Clock.Move(time.Minute)
		p.refuse("an old code", "invalid_grant", p.redeem(code))
	})
	t.Run("PKCE cannot be taken away", func(t *testing.T) {
		_, err := d.Service.IssueCode(t.Context(), oauthapi.IssueCode{Tenant: d.Tenant, Application: d.Site.Application,
			ClientID:    p.ClientID,
			RedirectURI: callback, Scopes: []string{"openid"}, Account: d.Site.Account, AuthenticatedAt: d.Clock.Now()})
		wantError(t, "a code without a challenge", "invalid_request", err)
		lax := newParty(t, d, d.Site, openid.ClientChange{RequirePKCE: field.Some(false)})
		code := lax.code(func(in *oauthapi.IssueCode) { in.CodeChallenge = "" })
		lax.refuse("a verifier without a challenge", "invalid_grant", lax.redeem(code))
		in := lax.redeem(lax.code(func(in *oauthapi.IssueCode) { in.CodeChallenge = "" }))
		delete(in.Form, "code_verifier")
		lax.token(in)
	})
	t.Run("redirect URIs are compared byte by byte", func(t *testing.T) {
		for _, uri := range []string{callback + "/", callback + "?x=1", "https://shop.example.test/cb/../x",
			"https://SHOP.example.test/cb",
			"https://shop.example.test./cb", "https://shop.example.test:443/cb", "https://shop.example.test/c%62",
			"https://shop.example.test@evil.test/cb"} {
			_, err := d.Service.IssueCode(t.Context(), oauthapi.IssueCode{Tenant: d.Tenant, Application: d.Site.Application,
				ClientID:    p.ClientID,
				RedirectURI: uri, CodeChallenge: strings.Repeat("A", 43), Account: d.Site.Account, AuthenticatedAt: d.Clock.Now()})
			wantError(t, uri, "invalid_request", err)
		}
	})
	t.Run("an account that is disabled gets nothing", func(t *testing.T) {
		d.SetStatus(d.Tenant, d.Site.Account, directoryapi.Disabled)
		defer d.SetStatus(d.Tenant, d.Site.Account, directoryapi.Enabled)
		p.refuse("a code of a disabled account", "invalid_grant", p.redeem(p.code(nil)))
		p.refuse("a refresh of a disabled account", "invalid_grant", p.refresh(issued.RefreshToken))
		if p.active(issued.AccessToken) {
			t.Error("the access token of a disabled account is active")
		}
	})
	p.token(p.refresh(issued.RefreshToken)) // the refusal has not spent it
}

func TestRefreshTokens(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	p := newParty(t, d, d.Site, openid.ClientChange{})
	login := func(p *party) openid.Tokens { return p.token(p.redeem(p.code(nil))) }
	grace := 10 * time.Second

	t.Run("each refresh gives another token", func(t *testing.T) {
		first := login(p)
		second := p.token(p.refresh(first.RefreshToken))
		if second.RefreshToken == "" || second.RefreshToken == first.RefreshToken || second.IDToken == "" {
			t.Errorf("the answer is %+v", second)
		}
		again := p.token(p.refresh(first.RefreshToken)) // a client that lost the answer
		d.Clock.Move(grace)
		third := p.token(p.refresh(again.RefreshToken))
		if !p.active(third.RefreshToken) {
			t.Error("the chain of the pair that was refreshed first has ended")
		}
		d.Clock.Move(grace)
		p.refuse("the other pair after the grace", "invalid_grant", p.refresh(second.RefreshToken))
		if p.active(third.RefreshToken) || p.active(third.AccessToken) {
			t.Error("the family lives on after a token was used again")
		}
	})
	t.Run("a used token ends its family after the grace", func(t *testing.T) {
		first := login(p)
		second := p.token(p.refresh(first.RefreshToken))
		d.Clock.Move(grace)
		p.refuse("a used token", "invalid_grant", p.refresh(first.RefreshToken))
		p.refuse("the token after it", "invalid_grant", p.refresh(second.RefreshToken))
		if p.active(second.AccessToken) || p.active(first.AccessToken) {
			t.Error("access tokens of an ended family are active")
		}
	})
	t.Run("fifty at once leave one chain", func(t *testing.T) {
		first := login(p)
		var wait sync.WaitGroup
		var mu sync.Mutex
		var given []string
		for range 50 {
			wait.Go(func() {
				tokens, err := d.Service.OpenID.Token(t.Context(), p.refresh(first.RefreshToken))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				given = append(given, tokens.RefreshToken)
			})
		}
		wait.Wait()
		d.Clock.Move(grace)
		next := p.token(p.refresh(given[0]))
		d.Clock.Move(grace)
		p.refuse("a second chain", "invalid_grant", p.refresh(given[1]))
		p.refuse("the first chain then", "invalid_grant", p.refresh(next.RefreshToken))
	})
	t.Run("scopes are narrowed, not widened", func(t *testing.T) {
		first := login(p)
		in := p.refresh(first.RefreshToken)
		in.Form["scope"] = "openid email"
		if second := p.token(in); second.Scope != "email openid" {
			t.Errorf("the scope is %q", second.Scope)
		}
		in.Form["scope"] = "openid groups"
		p.refuse("a wider scope", "invalid_scope", in)
	})
	t.Run("a token is of its client", func(t *testing.T) {
		first := login(p)
		other := newParty(t, d, d.Site, openid.ClientChange{})
		other.refuse("a refresh token of another client", "invalid_grant", other.refresh(first.RefreshToken))
		if other.active(first.RefreshToken) || other.active(first.AccessToken) {
			t.Error("another client sees the tokens as active")
		}
		if err := d.Service.OpenID.Revoke(t.Context(), other.call("/revoke", "token", first.RefreshToken)); err != nil {
			t.Error(err)
		}
		p.token(p.refresh(first.RefreshToken))
		if err := d.Service.OpenID.Revoke(t.Context(), p.call("/revoke", "token", first.RefreshToken)); err != nil {
			t.Error(err)
		}
		p.refuse("a revoked token", "invalid_grant", p.refresh(first.RefreshToken))
		if p.active(first.AccessToken) {
			t.Error("the access token of a revoked family is active")
		}
	})
	t.Run("KEEP", func(t *testing.T) {
		k := newParty(t, d, d.Site, openid.ClientChange{RefreshTokenRotation: field.Some("KEEP")})
		first := login(k)
		for range 2 {
			if next := k.token(k.refresh(first.RefreshToken)); next.RefreshToken != first.RefreshToken {
				t.Errorf("the refresh token is %q, want the same", next.RefreshToken)
			}
			d.Clock.Move(29 * 24 * time.Hour)
		}
		d.Clock.Move(24 * time.Hour)
		k.refuse("a token that was not used for long", "invalid_grant", k.refresh(first.RefreshToken))
	})
	t.Run("a web client asks for it", func(t *testing.T) {
		code := p.code(func(in *oauthapi.IssueCode) { in.Scopes = []string{"openid"} })
		if issued := p.token(p.redeem(code)); issued.RefreshToken != "" {
			t.Errorf("without offline_access there is the refresh token %q", issued.RefreshToken)
		}
	})
	t.Run("a new password ends it", func(t *testing.T) {
		first := login(p)
		d.Clock.Move(time.Second)
		d.Directories.Change(t, id.Ref{Tenant: d.Tenant, ID: d.Site.Account},
			directoryapi.NewAccount{Password: field.Some("Changeme2!")})
		d.Clock.Move(time.Second)
		p.refuse("a token from before the new password", "invalid_grant", p.refresh(first.RefreshToken))
		if p.active(first.AccessToken) {
			t.Error("an access token from before the new password is active")
		}
	})
}

func TestDPoP(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	p := newParty(t, d, d.Site, openid.ClientChange{DPoPBoundAccessTokens: field.Some(true)})
	p.refuse("no proof", "invalid_dpop_proof", p.redeem(p.code(nil)))
	p.key = newKeyPair(t)
	issued := p.token(p.redeem(p.code(nil)))
	sum, err := (&jose.JSONWebKey{Key: p.key.Public()}).Thumbprint(crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	_, claims := p.claims(issued.AccessToken)
	if cnf, _ := claims["cnf"].(map[string]any); issued.TokenType != "DPoP" ||
		cnf["jkt"] != base64.RawURLEncoding.EncodeToString(sum) {
		t.Errorf("the token has %v and the type %s", claims, issued.TokenType)
	}
	withProof := func(proofs ...string) openid.Call {
		in := p.refresh(issued.RefreshToken)
		in.Proofs = proofs
		return in
	}
	now := d.Clock.Now()
	used := p.proof("/token", nil)
	issued = p.token(withProof(used))
	replica := d.Replica(t)
	if _, err := replica.OpenID.Token(t.Context(), withProof(used)); err == nil {
		t.Error("another process accepts a proof that was used")
	}
	address := d.Service.Issuer(d.Site.Application) + "/token"
	for _, change := range []map[string]any{
		{"iat": now.Add(10 * time.Second).Unix()}, {"iat": now.Add(-10 * time.Second).Unix()}, {"nbf": 1, "exp": 1,
			"more": "x"},
		{"htu": address + "?x=1#y"}, {"htu": strings.Replace(address, "https://id.example.test",
			"HTTPS://ID.example.test:443", 1)},
	} {
		issued = p.token(withProof(p.proof("/token", change)))
	}
	for name, in := range map[string]openid.Call{
		"two proofs":      withProof(p.proof("/token", nil), p.proof("/token", nil)),
		"no proof":        withProof(),
		"no JWT":          withProof("x"),
		"another method":  withProof(p.proof("/token", map[string]any{"htm": "GET"})),
		"another address": withProof(p.proof("/userinfo", nil)),
		"no jti":          withProof(p.proof("/token", map[string]any{"jti": nil})),
		"no method":       withProof(p.proof("/token", map[string]any{"htm": nil})),
		"no address":      withProof(p.proof("/token", map[string]any{"htu": nil})),
		"no time":         withProof(p.proof("/token", map[string]any{"iat": nil})),
	} {
		p.refuse(name, "invalid_dpop_proof", in)
	}
	p.refuse("a time that is off", "use_dpop_nonce", withProof(p.proof("/token",
		map[string]any{"iat": now.Add(-time.Hour).Unix()})))
	p.refuse("a nonce of somebody", "use_dpop_nonce", withProof(p.proof("/token", map[string]any{"nonce": "x"})))
	p.refuse("an hour off with a nonce", "invalid_dpop_proof",
		withProof(p.proof("/token", map[string]any{"nonce": d.Service.Nonce(), "iat": now.Add(-time.Hour).Unix()})))
	issued = p.token(withProof(p.proof("/token", map[string]any{"nonce": replica.Nonce(),
		"iat": now.Add(-2 * time.Minute).Unix()})))

	t.Run("UserInfo needs the proof", func(t *testing.T) {
		hash := sha256.Sum256([]byte(issued.AccessToken))
		good := map[string]any{"ath": base64.RawURLEncoding.EncodeToString(hash[:])}
		ask := func(scheme string, proofs ...string) error {
			_, err := d.Service.UserInfo(t.Context(), openid.Call{Application: d.Site.Application, Method: "POST",
				Endpoint: "/userinfo", Scheme: scheme,
				Bearer: secure.Secret(issued.AccessToken), Proofs: proofs})
			return err
		}
		if err := ask("dpop", p.proof("/userinfo", good)); err != nil {
			t.Error(err)
		}
		wantError(t, "no proof", "invalid_token", ask("dpop"))
		wantError(t, "the scheme Bearer", "invalid_token", ask("bearer", p.proof("/userinfo", good)))
		wantError(t, "no ath", "invalid_dpop_proof", ask("dpop", p.proof("/userinfo", nil)))
		thief := *p
		thief.key = newKeyPair(t)
		wantError(t, "another key", "invalid_token", ask("dpop", thief.proof("/userinfo", good)))
	})
	t.Run("the refresh token of a public client is bound", func(t *testing.T) {
		public := newParty(t, d, d.Site, openid.ClientChange{ApplicationType: field.Some("browser")})
		public.key = newKeyPair(t)
		first := public.token(public.redeem(public.code(nil)))
		public.key = newKeyPair(t)
		public.refuse("another key", "invalid_dpop_proof", public.refresh(first.RefreshToken))
	})
	t.Run("a code is bound to the key of its request", func(t *testing.T) {
		code := p.code(func(in *oauthapi.IssueCode) { in.DPoPKey = "another" })
		p.refuse("another key", "invalid_dpop_proof", p.redeem(code))
	})
}

// Tokens of one kind, provider or tenant are not accepted as another's.
func TestTokensCannotBeSubstituted(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	p := newParty(t, d, d.Site, openid.ClientChange{})
	issued := p.token(p.redeem(p.code(nil)))
	neighbour := d.Site
	neighbour.Application = d.NewApplication(d.Tenant, d.Directory)
	sites := map[string]oauthtest.Site{"another application": neighbour, "another tenant": d.NewSite(t)}
	for name, site := range sites {
		q := newParty(t, d, site, openid.ClientChange{})
		if q.active(issued.AccessToken) || q.active(issued.RefreshToken) {
			t.Errorf("%s takes the tokens as active", name)
		}
		_, err := d.Service.UserInfo(t.Context(), openid.Call{Application: site.Application, Scheme: "bearer",
			Bearer: secure.Secret(issued.AccessToken)})
		wantError(t, "UserInfo of "+name, "invalid_token", err)
		q.refuse("a refresh at "+name, "invalid_grant", q.refresh(issued.RefreshToken))
		q.refuse("a code at "+name, "invalid_grant", q.redeem(p.code(nil)))
	}
	ask := func(text string) error {
		_, err := d.Service.UserInfo(t.Context(), openid.Call{Application: d.Site.Application, Scheme: "bearer",
			Bearer: secure.Secret(text)})
		return err
	}
	wantError(t, "an ID token as access token", "invalid_token", ask(issued.IDToken))
	wantError(t, "a refresh token as access token", "invalid_token", ask(issued.RefreshToken))
	p.refuse("an access token as refresh token", "invalid_grant", p.refresh(issued.AccessToken))

	_, claims := p.claims(issued.AccessToken)
	set, err := d.Service.Keys(t.Context(), d.Site.Application)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := d.Service.Keys(t.Context(), sites["another tenant"].Application)
	if err != nil {
		t.Fatal(err)
	}
	kid := func(raw json.RawMessage) string {
		var key jose.JSONWebKey
		if err := key.UnmarshalJSON(raw); err != nil {
			t.Fatal(err)
		}
		return key.KeyID
	}
	forge := func(method jwt.SigningMethod, key any, kid string) string {
		token := jwt.NewWithClaims(method, claims)
		token.Header["typ"], token.Header["kid"] = "at+jwt", kid
		text, err := token.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for _, raw := range slices.Concat(set.Keys, foreign.Keys) {
		wantError(t, "a public key as a secret", "invalid_token", ask(forge(jwt.SigningMethodHS256, []byte(raw), kid(raw))))
		wantError(t, "no signature", "invalid_token", ask(forge(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType,
			kid(raw))))
		wantError(t, "a key of one's own", "invalid_token", ask(forge(jwt.SigningMethodES256, newKeyPair(t), kid(raw))))
	}
	for _, strange := range []string{"", "../../etc/passwd", "' OR ''='", "https://evil.test/jwks"} {
		wantError(t, "the kid "+strange, "invalid_token", ask(forge(jwt.SigningMethodES256, newKeyPair(t), strange)))
	}
	t.Run("a token for a resource is not good at UserInfo", func(t *testing.T) {
		setScopes(t, d, openid.ScopeChange{Name: "orders:read", Resources: []string{api}})
		forAPI := p.token(p.redeem(p.code(func(in *oauthapi.IssueCode) { in.Resource = api })))
		wantError(t, "a token for a resource", "invalid_token", ask(forAPI.AccessToken))
		owner := service("API")
		owner.Resources = field.Some([]string{api})
		if q := newParty(t, d, d.Site, owner); !q.active(forAPI.AccessToken) || q.active(issued.AccessToken) {
			t.Error("an API sees other tokens as active than those for it")
		}
	})
	t.Run("an API key of the tenant sees all tokens", func(t *testing.T) {
		in := p.call("/introspect", "token", issued.AccessToken)
		in.Basic = &openid.BasicCredentials{ID: d.Key, Secret: d.Secret}
		if found, err := d.Service.Introspect(t.Context(), in); err != nil || found["active"] != true ||
			found["username"] != oauthtest.Login {
			t.Errorf("the token is %v, %v", found, err)
		}
		stranger := sites["another tenant"]
		in.Basic = &openid.BasicCredentials{ID: stranger.Key, Secret: stranger.Secret}
		_, err := d.Service.Introspect(t.Context(), in)
		wantError(t, "an API key of another tenant", "invalid_client", err)
	})
	t.Run("a key that was stolen ends its tokens", func(t *testing.T) {
		if err := setStatus(d, t, newKey(t, d, secure.RS256), store.KeyActive, true); err != nil {
			t.Fatal(err)
		}
		wantError(t, "a token of a stolen key", "invalid_token", ask(issued.AccessToken))
	})
}

func TestTokenExchange(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	setScopes(t, d, openid.ScopeChange{Name: "orders:read", Resources: []string{api}},
		openid.ScopeChange{Name: "orders:write"})
	grants := field.Some([]string{"authorization_code", "refresh_token",
		"urn:ietf:params:oauth:grant-type:token-exchange"})
	p := newParty(t, d, d.Site, openid.ClientChange{GrantTypes: grants})
	subject := p.token(p.redeem(p.code(func(in *oauthapi.IssueCode) {
		in.Scopes = []string{"openid", "offline_access",
			"orders:read", "orders:write"}
	})))
	exchange := func(p *party, token string, pairs ...string) openid.Call {
		return p.call("/token", append(pairs, "grant_type", "urn:ietf:params:oauth:grant-type:token-exchange",
			"subject_token", token,
			"subject_token_type", "urn:ietf:params:oauth:token-type:access_token")...)
	}
	narrow := p.token(exchange(p, subject.AccessToken, "scope", "orders:read", "resource", api))
	_, claims := p.claims(narrow.AccessToken)
	if claims["aud"] != api || claims["scope"] != "orders:read" || claims["act"] != nil || narrow.RefreshToken != "" ||
		narrow.IDToken != "" ||
		narrow.IssuedTokenType != "urn:ietf:params:oauth:token-type:access_token" {
		t.Errorf("the narrowed token has %v, and the answer is %+v", claims, narrow)
	}
	p.refuse("a wider scope", "invalid_scope", exchange(p, narrow.AccessToken, "scope", "orders:write"))
	p.refuse("another resource", "invalid_target", exchange(p, narrow.AccessToken, "resource", "https://other.test"))
	p.refuse("an ID token", "invalid_grant", exchange(p, subject.IDToken))
	p.refuse("a refresh token", "invalid_grant", exchange(p, subject.RefreshToken+"x"))
	other := newParty(t, d, d.Site, openid.ClientChange{GrantTypes: grants})
	other.refuse("a token of another client", "invalid_grant", exchange(other, subject.AccessToken))
	actor := newParty(t, d, d.Site, openid.ClientChange{GrantTypes: grants, TokenExchange: field.Some("DELEGATION")})
	_, claims = p.claims(actor.token(exchange(actor, subject.AccessToken)).AccessToken)
	if act, _ := claims["act"].(map[string]any); act["sub"] != actor.ClientID || claims["sub"] != d.Site.Account.String() {
		t.Errorf("the delegated token has %v", claims)
	}
	none := newParty(t, d, d.Site, openid.ClientChange{GrantTypes: grants, TokenExchange: field.Some("NONE")})
	none.refuse("a client that may not", "unauthorized_client", exchange(none, subject.AccessToken))
	if err := d.Service.OpenID.Revoke(t.Context(), p.call("/revoke", "token", subject.RefreshToken)); err != nil {
		t.Fatal(err)
	}
	if p.active(narrow.AccessToken) {
		t.Error("a token lives on after the login of its subject_token has ended")
	}
}

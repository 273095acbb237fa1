package openid_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/oauthtest"
	"github.com/doorward/doorward/services/oauth/openid"
	"github.com/doorward/doorward/services/oauth/relyingparty"
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
func newParty(t *testing.T, d *oauthtest.Deployment, s oauthtest.Site, in relyingparty.Change) *party {
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

// issuerOf returns the issuer of the application of a site.
func issuerOf(t testing.TB, d *oauthtest.Deployment, s oauthtest.Site) string {
	t.Helper()
	p, err := d.Service.Provider(t.Context(), id.Ref{Tenant: s.Tenant, ID: s.Application})
	if err != nil {
		t.Fatal(err)
	}
	return p.Issuer
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
		"jti": id.New(p.Clock.Now()).String(), "htm": "POST", "htu": issuerOf(p.t, p.Deployment, p.Site) + endpoint,
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

// signed adds a client assertion for an audience to a call (private_key_jwt).
func (p *party) signed(key *ecdsa.PrivateKey, audience string, in openid.Call) openid.Call {
	p.t.Helper()
	now := p.Clock.Now()
	token := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{"iss": p.ClientID, "sub": p.ClientID, "aud": audience,
		"exp": now.Add(time.Minute).Unix(), "jti": id.New(now).String()})
	text, err := token.SignedString(key)
	if err != nil {
		p.t.Fatal(err)
	}
	in.Form["client_assertion"] = secure.Secret(text)
	in.Form["client_assertion_type"] = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
	return in
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
		Nonce: "n-1",
		Login: oauthapi.Login{Account: p.Site.Account, AuthenticatedAt: p.Clock.Now(), ACR: "urn:doorward:acr:password",
			AMR: []string{"pwd"}, Session: "s-1"},
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

func (p *party) redeem(code string, redirect ...string) openid.Call {
	if len(redirect) > 0 {
		return p.call("/token", "grant_type", "authorization_code", "code", code, "redirect_uri", redirect[0], "code_verifier",
			verifier)
	}
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

// bearer is a request of UserInfo with an access token.
func (p *party) bearer(token string) openid.Call {
	return openid.Call{Application: p.Site.Application, Method: "GET", Endpoint: "/userinfo", Scheme: "bearer",
		Bearer: secure.Secret(token)}
}

func service(name string) relyingparty.Change {
	return relyingparty.Change{Name: field.Some(name), ApplicationType: field.Some("service")}
}

func setScopes(t *testing.T, d *oauthtest.Deployment, scopes ...openid.ScopeChange) {
	t.Helper()
	_, err := d.Service.UpdateProvider(t.Context(), id.Ref{Tenant: d.Tenant, ID: d.Site.Application},
		openid.ProviderChange{Scopes: field.Some(scopes)})
	if err != nil {
		t.Fatal(err)
	}
}

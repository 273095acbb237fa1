package openid_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/oauth/oauthtest"
	"github.com/doorward/doorward/services/oauth/openid"
	"github.com/doorward/doorward/services/oauth/relyingparty"
	"github.com/doorward/doorward/services/oauth/signing"
)

// ask are the parameters of a good authorization request; pairs replace them, an empty value takes one away.
func (p *party) ask(pairs ...string) map[string][]string {
	sum := sha256.Sum256([]byte(verifier))
	all := map[string][]string{
		"client_id": {p.ClientID}, "redirect_uri": {callback}, "response_type": {"code"}, "scope": {"openid email"},
		"state": {"st"}, "code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = []string{pairs[i+1]}
	}
	return all
}

func (p *party) authorize(parameters map[string][]string) (oauthapi.Authorization, error) {
	p.t.Helper()
	return p.Service.Authorization(p.t.Context(), oauthapi.AskAuthorization{Application: p.Site.Application,
		Parameters: parameters, Account: p.Site.Account})
}

// accepted returns the answer to a request that is good.
func (p *party) accepted(parameters map[string][]string) oauthapi.Authorization {
	p.t.Helper()
	out, err := p.authorize(parameters)
	if err != nil || out.Refusal != nil {
		p.t.Fatalf("the request is refused: %v, %+v", err, out.Refusal)
	}
	return out
}

// refusedWith checks the error that the redirect URI gets.
func (p *party) refusedWith(what, code string, parameters map[string][]string) oauthapi.Authorization {
	p.t.Helper()
	out, err := p.authorize(parameters)
	if err != nil || out.Refusal == nil || out.Refusal.Error != code || out.RedirectURI != callback ||
		strings.ContainsAny(out.Refusal.Description, `"\`) {
		p.t.Errorf("%s is answered with %+v, %v, want %s at the redirect URI", what, out.Refusal, err, code)
	}
	return out
}

// shown checks that the error of a request is for the user.
func (p *party) shown(what string, parameters map[string][]string) {
	p.t.Helper()
	out, err := p.authorize(parameters)
	if !errors.Is(err, apierr.BadRequest) || out.Refusal != nil {
		p.t.Errorf("%s is answered with %+v, %v, want a page", what, out.Refusal, err)
	}
}

func TestAuthorizationRequests(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	p := newParty(t, d, d.Site, relyingparty.Change{Name: field.Some("Shop")})
	out := p.accepted(p.ask("nonce", "n", "prompt", "login consent", "max_age", "3600", "login_hint", "jo",
		"acr_values", "a b", "ui_locales", "de se", "organization", "acme", "account_store", "store", "foo", "bar",
		"response_mode", "form_post", "display", "popup", "scope", "email unknown openid"))
	if out.Tenant != d.Tenant || out.Client.Name != "Shop" || out.Client.ID != p.OpenIDClient.ID ||
		out.RedirectURI != callback || !out.RedirectURINamed || out.ResponseMode != "form_post" || out.State != "st" ||
		!slices.Equal(out.Scopes, []string{"email", "openid"}) || out.Nonce != "n" || *out.MaxAge != 3600 ||
		!slices.Equal(out.Prompt, []string{"login", "consent"}) || !slices.Equal(out.ACRValues, []string{"a", "b"}) ||
		!slices.Equal(out.UILocales, []string{"de", "se"}) || out.Organization != "acme" || out.AccountStore != "store" ||
		out.LoginHint != "jo" || out.Issuer != issuerOf(t, d, d.Site) || len(out.Consent) != 2 {
		t.Errorf("the request is read as %+v", out)
	}
	if out := p.accepted(p.ask("state", "", "nonce", "", "prompt", "", "max_age", "")); out.ResponseMode != "query" ||
		out.MaxAge != nil || out.Consent != nil || out.State != "" {
		t.Errorf("a request with empty parameters is read as %+v", out)
	}
	twice := func(name string) map[string][]string {
		parameters := p.ask()
		parameters[name] = []string{"a", "a"}
		return parameters
	}
	for name, parameters := range map[string]map[string][]string{
		"no client":                        p.ask("client_id", ""),
		"an unknown client":                p.ask("client_id", "x"),
		"client_id twice":                  twice("client_id"),
		"redirect_uri twice":               twice("redirect_uri"),
		"a redirect URI of somebody else":  p.ask("redirect_uri", "https://evil.test"),
		"a redirect URI with a query":      p.ask("redirect_uri", callback+"?a=b"),
		"a redirect URI with a dot":        p.ask("redirect_uri", "https://shop.example.test./cb"),
		"another port":                     p.ask("redirect_uri", "https://shop.example.test:444/cb"),
		"an encoded redirect URI":          p.ask("redirect_uri", "https://shop.example.test/c%62"),
		"openid without a redirect URI":    p.ask("redirect_uri", ""),
		"two scopes without redirect URI":  {"client_id": {p.ClientID}, "scope": {"openid", "email"}},
		"a pushed request that is unknown": {"client_id": {p.ClientID}, "request_uri": {"urn:ietf:params:oauth:request_uri:x"}},
	} {
		p.shown(name, parameters)
	}
	for name, c := range map[string]struct {
		code       string
		parameters map[string][]string
	}{
		"state twice":              {"invalid_request", twice("state")},
		"scope twice":              {"invalid_request", twice("scope")},
		"no response type":         {"invalid_request", p.ask("response_type", "")},
		"the implicit flow":        {"unsupported_response_type", p.ask("response_type", "token")},
		"the hybrid flow":          {"unsupported_response_type", p.ask("response_type", "code id_token")},
		"the fragment":             {"invalid_request", p.ask("response_mode", "fragment")},
		"no challenge":             {"invalid_request", p.ask("code_challenge", "", "code_challenge_method", "")},
		"a method alone":           {"invalid_request", p.ask("code_challenge", "")},
		"the plain method":         {"invalid_request", p.ask("code_challenge_method", "plain")},
		"no method":                {"invalid_request", p.ask("code_challenge_method", "")},
		"a short challenge":        {"invalid_request", p.ask("code_challenge", "abc")},
		"an unknown resource":      {"invalid_target", p.ask("resource", "https://other.test")},
		"none and login":           {"invalid_request", p.ask("prompt", "none login")},
		"an unknown prompt":        {"invalid_request", p.ask("prompt", "maybe")},
		"a negative age":           {"invalid_request", p.ask("max_age", "-1")},
		"a wrong age":              {"invalid_request", p.ask("max_age", "soon")},
		"a wrong hint":             {"invalid_request", p.ask("id_token_hint", "a.b.c")},
		"a wrong thumbprint":       {"invalid_request", p.ask("dpop_jkt", "abc")},
		"an unsigned object":       {"request_not_supported", p.ask("request", "eyJhbGciOiJub25lIn0.e30.")},
		"a request_uri of theirs":  {"request_uri_not_supported", p.ask("request_uri", "https://shop.example.test/r")},
		"claims that are no JSON":  {"invalid_request", p.ask("claims", "{")},
		"claims of a wrong form":   {"invalid_request", p.ask("claims", `{"userinfo":{"email":true}}`)},
		"claims with something":    {"invalid_request", p.ask("claims", `{} {}`)},
		"a nonce that is too long": {"invalid_request", p.ask("nonce", strings.Repeat("x", 5000))},
		"a control character":      {"invalid_request", p.ask("nonce", "a\x00")},
	} {
		p.refusedWith(name, c.code, c.parameters)
	}
	if out := p.refusedWith("an error by form_post", "invalid_request", p.ask("response_mode", "form_post", "prompt",
		"maybe")); out.ResponseMode != "form_post" || out.State != "st" {
		t.Errorf("the error goes by %+v", out)
	}
	if age := p.accepted(p.ask("max_age", "99999999999999999999")).MaxAge; *age != 1<<31-1 {
		t.Errorf("a long max_age is %d", *age)
	}
	t.Run("what a client is registered with", func(t *testing.T) {
		c := newParty(t, d, d.Site, relyingparty.Change{
			DefaultMaxAge: field.Some(7), DefaultACRValues: field.Some([]string{"x"}), Consent: field.Some("REQUIRED"),
			Scopes: field.Some([]string{"openid"}), RequirePKCE: field.Some(false),
		})
		out := c.accepted(c.ask("scope", "openid", "code_challenge", "", "code_challenge_method", ""))
		if *out.MaxAge != 7 || !slices.Equal(out.ACRValues, []string{"x"}) || len(out.Consent) != 1 ||
			out.Consent[0].Name != "openid" {
			t.Errorf("the request is read as %+v", out)
		}
		c.refusedWith("a scope that the client may not have", "invalid_scope", c.ask())
		c.refusedWith("no scope", "invalid_scope", c.ask("scope", ""))
		service := newParty(t, d, d.Site, service("S"))
		service.shown("a client without the grant", service.ask())
		pushing := newParty(t, d, d.Site, relyingparty.Change{RequirePushedAuthorizationRequests: field.Some(true)})
		pushing.refusedWith("a request that was not pushed", "invalid_request", pushing.ask())
		signing := newParty(t, d, d.Site, relyingparty.Change{RequireSignedRequestObject: field.Some(true)})
		signing.refusedWith("a request that was not signed", "invalid_request", signing.ask())
	})
	t.Run("the redirect URI may be left out without openid", func(t *testing.T) {
		out := p.accepted(p.ask("redirect_uri", "", "scope", "email"))
		if out.RedirectURI != callback || out.RedirectURINamed {
			t.Errorf("the redirect URI is %+v", out)
		}
		two := newParty(t, d, d.Site, relyingparty.Change{RedirectURIs: field.Some([]string{callback, callback + "2"})})
		two.shown("two redirect URIs", two.ask("redirect_uri", "", "scope", "email"))
	})
	t.Run("scopes and resources of the provider", func(t *testing.T) {
		setScopes(t, d, openid.ScopeChange{Name: "read", Resources: []string{api}, Consent: true})
		out := p.accepted(p.ask("scope", "openid read", "resource", api))
		if out.Resource != api || len(out.Consent) != 1 || out.Consent[0].Name != "read" {
			t.Errorf("the request is read as %+v", out)
		}
	})
	t.Run("a disabled client or application has no requests", func(t *testing.T) {
		other := newParty(t, d, d.Site, relyingparty.Change{})
		_, err := d.Service.UpdateClient(t.Context(), id.Ref{Tenant: d.Tenant, ID: other.OpenIDClient.ID},
			relyingparty.Change{Status: field.Some(directoryapi.Disabled)})
		if err != nil {
			t.Fatal(err)
		}
		other.shown("a disabled client", other.ask())
		d.SetStatus(d.Tenant, d.Application, directoryapi.Disabled)
		defer d.SetStatus(d.Tenant, d.Application, directoryapi.Enabled)
		if _, err := p.authorize(p.ask()); !errors.Is(err, apierr.NotFound) {
			t.Errorf("a request of a disabled application is answered with %v", err)
		}
	})
}

func TestIDTokenHints(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	p := newParty(t, d, d.Site, relyingparty.Change{})
	issued := p.token(p.redeem(p.code(nil)))
	hint := issued.IDToken
	out := p.accepted(p.ask("id_token_hint", hint))
	if out.HintSubject != d.Account.String() || out.OtherAccount {
		t.Errorf("the hint is read as %+v", out)
	}
	somebody := d.NewAccount(d.Tenant, d.Directory, "eve@example.test", oauthtest.Password)
	out, err := d.Service.Authorization(t.Context(), oauthapi.AskAuthorization{Application: d.Application, Account: somebody,
		Parameters: p.ask("id_token_hint", hint)})
	if err != nil || !out.OtherAccount {
		t.Errorf("the hint of another account is read as %+v, %v", out, err)
	}
	in := p.complete(out)
	in.Account = somebody
	_, err = d.Service.IssueCode(t.Context(), in)
	wantError(t, "a code for another account", "login_required", err)
	other := newParty(t, d, d.Site, relyingparty.Change{})
	other.refusedWith("a hint of another client", "invalid_request", other.ask("id_token_hint", hint))
	p.refusedWith("an access token", "invalid_request", p.ask("id_token_hint", issued.AccessToken))
	p.refusedWith("two subjects", "invalid_request", p.ask("id_token_hint", hint, "claims",
		`{"id_token":{"sub":{"value":"x"}}}`))
	t.Run("an ID token that has expired is a hint, also when its key is retired, unless that was stolen", func(t *testing.T) {
		next, err := d.Service.CreateSigningKey(t.Context(), id.Ref{Tenant: d.Tenant, ID: d.Tenant},
			signing.NewSigningKey{Algorithm: field.Some("RS256")})
		if err != nil {
			t.Fatal(err)
		}
		d.Clock.Move(signing.KeySetMaxAge)
		activate := func(key string, force bool) {
			t.Helper()
			parsed, err := id.Parse(key)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = d.Service.UpdateSigningKey(t.Context(), id.Ref{Tenant: d.Tenant, ID: parsed},
				signing.KeyChange{Status: field.Some("ACTIVE")}, force); err != nil {
				t.Fatal(err)
			}
		}
		activate(next.ID, false)
		d.Clock.Move(30 * 24 * time.Hour)
		p.accepted(p.ask("id_token_hint", hint))
		recent := p.token(p.redeem(p.code(nil))).IDToken
		stolen, err := d.Service.CreateSigningKey(t.Context(), id.Ref{Tenant: d.Tenant, ID: d.Tenant},
			signing.NewSigningKey{Algorithm: field.Some("RS256")})
		if err != nil {
			t.Fatal(err)
		}
		activate(stolen.ID, true)
		p.refusedWith("a hint of a stolen key", "invalid_request", p.ask("id_token_hint", recent))
	})
}

// complete is the login of a request, as the hosted pages complete it.
func (p *party) complete(a oauthapi.Authorization) oauthapi.IssueCode {
	return oauthapi.IssueCode{
		Tenant: a.Tenant, Application: a.Application, ClientID: a.Client.ClientID, RedirectURI: a.RedirectURI,
		RedirectURINamed: a.RedirectURINamed, CodeChallenge: a.CodeChallenge, Scopes: a.Scopes, Resource: a.Resource,
		Nonce: a.Nonce, DPoPKey: a.DPoPKey, Claims: a.Claims, Pushed: a.Pushed, HintSubject: a.HintSubject,
		Login: oauthapi.Login{Account: p.Site.Account, AuthenticatedAt: p.Clock.Now(), ACR: "urn:doorward:acr:password",
			AMR: []string{"pwd"}, Session: "s-1"},
	}
}

func TestClaimsParameter(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	p := newParty(t, d, d.Site, relyingparty.Change{})
	out := p.accepted(p.ask("scope", "openid", "claims", `{"id_token":{"acr":{"essential":true,"values":["high","low"]},
		"email":null,"given_name":{"essential":true,"extra":1}},"userinfo":{"preferred_username":null,"nothing":null}}`))
	if !out.ACRRequired || !slices.Equal(out.ACRValues, []string{"high", "low"}) || !json.Valid(out.Claims) {
		t.Errorf("the claims are read as %+v", out)
	}
	give := func(p *party, out oauthapi.Authorization) (claims, info map[string]any) {
		t.Helper()
		code, err := d.Service.IssueCode(t.Context(), p.complete(out))
		if err != nil {
			t.Fatal(err)
		}
		issued := p.token(p.redeem(code.Code.Reveal()))
		_, claims = p.claims(issued.IDToken)
		found, err := d.Service.UserInfo(t.Context(), p.bearer(issued.AccessToken))
		if err != nil {
			t.Fatal(err)
		}
		return claims, found.Claims
	}
	claims, info := give(p, out)
	if claims["email"] != oauthtest.Login || claims["preferred_username"] != nil || info["email"] != nil ||
		info["preferred_username"] != oauthtest.Login {
		t.Errorf("the claims are %v and %v", claims, info)
	}
	if out := p.accepted(p.ask("claims", `{"id_token":{"acr":{"value":"high"}}}`)); out.ACRRequired {
		t.Error("a voluntary acr is required")
	}
	if out := p.accepted(p.ask("claims", `{"id_token":{"sub":{"value":"x"}}}`)); out.HintSubject != "x" {
		t.Errorf("the subject that is asked for is %q", out.HintSubject)
	}
	narrow := newParty(t, d, d.Site, relyingparty.Change{Scopes: field.Some([]string{"openid"})})
	claims, _ = give(narrow, narrow.accepted(narrow.ask("scope", "openid", "claims", `{"id_token":{"email":null}}`)))
	if claims["email"] != nil {
		t.Error("a client has a claim of a scope that it may not have")
	}
	asking := newParty(t, d, d.Site, relyingparty.Change{Consent: field.Some("REQUIRED")})
	claims, _ = give(asking, asking.accepted(asking.ask("scope", "openid", "claims", `{"id_token":{"email":null}}`)))
	if claims["email"] != nil {
		t.Error("a client has a claim that the user was not asked for")
	}
}

package openid_test

import (
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/oauthtest"
	"github.com/doorward/doorward/services/oauth/openid"
	"github.com/doorward/doorward/services/oauth/relyingparty"
)

// push pushes a request, and returns the parameters with which the browser comes.
func (p *party) push(parameters map[string][]string) (map[string][]string, error) {
	p.t.Helper()
	pairs := []string{}
	for name, values := range parameters {
		if name != "client_id" {
			pairs = append(pairs, name, values[0])
		}
	}
	pushed, err := p.Service.Push(p.t.Context(), p.call("/par", pairs...))
	return map[string][]string{"client_id": {p.ClientID}, "request_uri": {pushed.RequestURI}}, err
}

func (p *party) mustPush(parameters map[string][]string) map[string][]string {
	p.t.Helper()
	pushed, err := p.push(parameters)
	if err != nil {
		p.t.Fatal(err)
	}
	return pushed
}

func TestPushedRequests(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	p := newParty(t, d, d.Site, relyingparty.Change{RequirePushedAuthorizationRequests: field.Some(true)})
	pushed := p.mustPush(p.ask("nonce", "n-1"))
	pushed["state"], pushed["scope"] = []string{"other"}, []string{"other"}
	out := p.accepted(pushed)
	if out.State != "st" || out.Nonce != "n-1" || len(out.Scopes) != 2 || len(out.Pushed) == 0 {
		t.Errorf("the pushed request is read as %+v", out)
	}
	p.accepted(pushed) // a visit does not use it
	other := newParty(t, d, d.Site, relyingparty.Change{})
	other.shown("a request of another client", map[string][]string{"client_id": {other.ClientID},
		"request_uri": pushed["request_uri"]})
	t.Run("fifty logins at once get one code", func(t *testing.T) {
		var wait sync.WaitGroup
		var mu sync.Mutex
		given := 0
		for range 50 {
			wait.Go(func() {
				_, err := d.Service.IssueCode(t.Context(), p.complete(out))
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					given++
				} else if apierr.From(err).Fields["error"] != "invalid_request_uri" {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		if given != 1 {
			t.Errorf("%d codes were given", given)
		}
		p.shown("a used request", pushed)
	})
	t.Run("a minute", func(t *testing.T) {
		late := p.mustPush(p.ask())
		begun := p.accepted(late)
		d.Clock.Move(time.Minute)
		p.shown("an old request", late)
		if _, err := d.Service.IssueCode(t.Context(), p.complete(begun)); err != nil {
			t.Errorf("a login that has begun in time ends with %v", err)
		}
	})
	for name, c := range map[string]struct {
		code       string
		parameters map[string][]string
	}{
		"a request_uri":            {"invalid_request", p.ask("request_uri", pushed["request_uri"][0])},
		"a wrong redirect URI":     {"invalid_request", p.ask("redirect_uri", "https://evil.test/")},
		"no challenge":             {"invalid_request", p.ask("code_challenge", "")},
		"another response type":    {"unsupported_response_type", p.ask("response_type", "token")},
		"a parameter with control": {"invalid_request", p.ask("nonce", "a\nb")},
	} {
		_, err := p.push(c.parameters)
		wantError(t, name, c.code, err)
	}
	in := p.call("/par")
	in.Basic.Secret = "wrong"
	_, err := d.Service.Push(t.Context(), in)
	wantError(t, "a wrong secret", "invalid_client", err)
	_, err = d.Service.IssueCode(t.Context(), p.complete(p.withoutPush(out)))
	wantError(t, "a code without a pushed request", "invalid_request", err)
	t.Run("a proof binds the code", func(t *testing.T) {
		p.key = newKeyPair(t)
		bound := p.accepted(p.mustPush(p.ask()))
		code, err := d.Service.IssueCode(t.Context(), p.complete(bound))
		if err != nil || bound.DPoPKey == "" {
			t.Fatalf("the request is bound to %q, %v", bound.DPoPKey, err)
		}
		p.key = newKeyPair(t)
		p.refuse("another key", "invalid_dpop_proof", p.redeem(code.Code.Reveal()))
		_, err = p.push(p.ask("dpop_jkt", "9-Ykmns3tnGqZWoBiXOI-kIqjT8rcqZKmmyIyZyTmWs"))
		wantError(t, "a proof and another thumbprint", "invalid_request", err)
	})
	t.Run("a purge keeps what may be used", func(t *testing.T) {
		p.key = nil
		kept := p.accepted(p.mustPush(p.ask()))
		d.Clock.Move(30 * time.Minute)
		if _, err := d.Service.Purge(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Service.IssueCode(t.Context(), p.complete(kept)); err != nil {
			t.Error(err)
		}
	})
}

func TestRequestObjects(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	key := newKeyPair(t)
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k1", Algorithm: "ES256"}}})
	if err != nil {
		t.Fatal(err)
	}
	p := newParty(t, d, d.Site, relyingparty.Change{RequireSignedRequestObject: field.Some(true),
		JWKS: field.Some(json.RawMessage(set)), RequestObjectSigningAlg: field.Some("ES256")})
	object := func(change map[string]any) string {
		t.Helper()
		now := d.Clock.Now()
		claims := jwt.MapClaims{"iss": p.ClientID, "aud": issuerOf(t, d, d.Site), "nbf": now.Unix(),
			"exp": now.Add(time.Hour).Unix(), "max_age": 60, "claims": map[string]any{"userinfo": map[string]any{"email": nil}}}
		for name, values := range p.ask("state", "signed") {
			claims[name] = values[0]
		}
		for name, value := range change {
			claims[name] = value
			if value == nil {
				delete(claims, name)
			}
		}
		token := jwt.NewWithClaims(jwt.SigningMethodES256, claims)
		token.Header["kid"], token.Header["typ"] = "k1", "oauth-authz-req+jwt"
		text, err := token.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	out := p.accepted(p.ask("request", object(nil), "scope", "other", "state", "outer"))
	if out.State != "signed" || *out.MaxAge != 60 || len(out.Claims) == 0 || len(out.Scopes) != 2 {
		t.Errorf("the request object is read as %+v", out)
	}
	if out := p.accepted(p.mustPush(map[string][]string{"request": {object(nil)}})); out.State != "signed" {
		t.Errorf("the pushed object is read as %+v", out)
	}
	p.refusedWith("a request without an object", "invalid_request", p.ask())
	p.refusedWith("a method that was changed within", "invalid_request", p.ask("request", object(map[string]any{
		"code_challenge_method": "plain"})))
	now := d.Clock.Now()
	for name, change := range map[string]map[string]any{
		"another issuer":        {"iss": "x"},
		"another client":        {"client_id": "x"},
		"no client":             {"client_id": nil},
		"another audience":      {"aud": "https://other.test"},
		"no audience":           {"aud": nil},
		"no end":                {"exp": nil},
		"no beginning":          {"nbf": nil},
		"an expired object":     {"exp": now.Unix()},
		"a long life":           {"exp": now.Add(61 * time.Minute).Unix()},
		"an old object":         {"nbf": now.Add(-61 * time.Minute).Unix(), "exp": now.Add(-time.Second).Unix()},
		"one of the future":     {"nbf": now.Add(time.Minute).Unix()},
		"a request_uri within":  {"request_uri": "urn:x"},
		"a request within":      {"request": "a.b.c"},
		"a client assertion":    {"sub": p.ClientID},
		"a scope that is a map": {"scope": map[string]any{}},
		"a state that is true":  {"state": true},
	} {
		p.refusedWith(name, "invalid_request_object", p.ask("request", object(change)))
	}
	p.refusedWith("a changed object", "invalid_request_object", p.ask("request", object(nil)+"x"))
	p.shown("a redirect URI within that is not registered", p.ask("request", object(map[string]any{
		"redirect_uri": "https://evil.test/"})))
	foreign := newParty(t, d, d.Site, relyingparty.Change{})
	foreign.refusedWith("an object of a client without keys", "request_not_supported", foreign.ask("request", object(nil)))
}

func TestUsedCodesThatWerePurged(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	p := newParty(t, d, d.Site, relyingparty.Change{})
	code := p.code(nil)
	issued := p.token(p.redeem(code))
	d.Clock.Move(20 * time.Minute)
	if _, err := d.Service.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !p.active(issued.AccessToken) {
		t.Fatal("the tokens have ended by themselves")
	}
	p.refuse("a code of long ago", "invalid_grant", p.redeem(code))
	if p.active(issued.AccessToken) || p.active(issued.RefreshToken) {
		t.Error("the tokens of a code that was used again after a purge are active")
	}
}

func TestDevices(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	const kind = "urn:ietf:params:oauth:grant-type:device_code"
	p := newParty(t, d, d.Site, relyingparty.Change{ApplicationType: field.Some("native"),
		TokenEndpointAuthMethod: field.Some("client_secret_basic"), GrantTypes: field.Some([]string{kind, "refresh_token"}),
		ResponseTypes: field.Some([]string{}),
		RedirectURIs:  field.Some([]string{})})
	begin := func() (openid.DeviceAuthorization, openid.Call) {
		t.Helper()
		device, err := d.Service.AuthorizeDevice(t.Context(), p.call("/device_authorization", "scope", "openid email"))
		if err != nil {
			t.Fatal(err)
		}
		return device, p.call("/token", "grant_type", kind, "device_code", device.DeviceCode)
	}
	device, poll := begin()
	if len(device.UserCode) != 9 || device.Interval != 5 || device.ExpiresIn != 600 ||
		device.VerificationURIComplete != issuerOf(t, d, d.Site)+"/device?user_code="+device.UserCode {
		t.Errorf("the device has %+v", device)
	}
	p.refuse("a device without an answer", "authorization_pending", poll)
	p.refuse("a device that asks too fast", "slow_down", poll)
	d.Clock.Move(9 * time.Second)
	p.refuse("a device that is slower now, not enough", "slow_down", poll)
	d.Clock.Move(15 * time.Second)
	p.refuse("a device that is slow enough", "authorization_pending", poll)
	typed := typedCode(d, " "+device.UserCode[:2]+" "+device.UserCode[2:]+"\n")
	shown, err := d.Service.DeviceRequest(t.Context(), typed)
	if err != nil || shown.Client.Name != p.Name || len(shown.Scopes) != 2 || shown.Tenant != d.Tenant {
		t.Errorf("the device asks for %+v, %v", shown, err)
	}
	answer := deviceAnswer(p, typed, "openid")
	t.Run("fifty answers at once are one", func(t *testing.T) {
		accepted := atOnce(t, func() error {
			_, err := d.Service.AnswerDevice(t.Context(), answer)
			return err
		}, apierr.NotFound)
		if accepted != 1 {
			t.Errorf("%d answers were accepted", accepted)
		}
	})
	if _, err := d.Service.DeviceRequest(t.Context(), typed); !errors.Is(err, apierr.NotFound) {
		t.Errorf("an answered code is answered with %v", err)
	}
	other := newParty(t, d, d.Site, relyingparty.Change{GrantTypes: field.Some([]string{kind}),
		ResponseTypes: field.Some([]string{}), RedirectURIs: field.Some([]string{})})
	other.refuse("a device_code of another client", "invalid_grant", other.call("/token", "grant_type", kind,
		"device_code", device.DeviceCode))
	var issued openid.Tokens
	t.Run("fifty token requests at once get one answer", func(t *testing.T) {
		var mu sync.Mutex
		given := atOnce(t, func() error {
			tokens, err := d.Service.OpenID.Token(t.Context(), poll)
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				issued = tokens
			}
			return err
		}, apierr.BadRequest)
		if given != 1 {
			t.Errorf("%d requests got tokens", given)
		}
	})
	if issued.Scope != "openid" || issued.RefreshToken == "" || !p.active(issued.AccessToken) {
		t.Errorf("the tokens are %+v", issued)
	}
	t.Run("a refusal", func(t *testing.T) {
		device, poll := begin()
		answer := deviceAnswer(p, typedCode(d, device.UserCode))
		answer.Allowed = false
		if _, err := d.Service.AnswerDevice(t.Context(), answer); err != nil {
			t.Fatal(err)
		}
		p.refuse("a device that was refused", "access_denied", poll)
	})
	t.Run("ten minutes", func(t *testing.T) {
		device, poll := begin()
		d.Clock.Move(10 * time.Minute)
		p.refuse("an old device", "expired_token", poll)
		_, err := d.Service.AnswerDevice(t.Context(), deviceAnswer(p, typedCode(d, device.UserCode)))
		if !errors.Is(err, apierr.NotFound) {
			t.Errorf("an old user code is answered with %v", err)
		}
	})
	web := newParty(t, d, d.Site, relyingparty.Change{})
	_, err = d.Service.AuthorizeDevice(t.Context(), web.call("/device_authorization"))
	wantError(t, "a client without the grant", "unauthorized_client", err)
	_, err = d.Service.AuthorizeDevice(t.Context(), p.call("/device_authorization", "resource", "https://x.test"))
	wantError(t, "an unknown resource", "invalid_target", err)
	p.refuse("an unknown device", "invalid_grant", p.call("/token", "grant_type", kind, "device_code",
		secure.Token(43).Reveal()))
}

// withoutPush is a request as if it had come without a request_uri.
func (p *party) withoutPush(out oauthapi.Authorization) oauthapi.Authorization {
	out.Pushed = nil
	return out
}

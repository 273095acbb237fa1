package openid_test

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/oauthtest"
	"github.com/doorward/doorward/services/oauth/openid"
	"github.com/doorward/doorward/services/oauth/relyingparty"
)

func TestAuthorizationCodes(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	p := newParty(t, d, d.Site, relyingparty.Change{})
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
	other := newParty(t, d, d.Site, relyingparty.Change{})
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
			RedirectURI: callback, Scopes: []string{"openid"},
			Login: oauthapi.Login{Account: d.Site.Account, AuthenticatedAt: d.Clock.Now()}})
		wantError(t, "a code without a challenge", "invalid_request", err)
		lax := newParty(t, d, d.Site, relyingparty.Change{RequirePKCE: field.Some(false)})
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
				RedirectURI: uri, CodeChallenge: strings.Repeat("A", 43),
				Login: oauthapi.Login{Account: d.Site.Account, AuthenticatedAt: d.Clock.Now()}})
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

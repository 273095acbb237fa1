package openid_test

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"sync"
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
)

// atOnce calls a function fifty times at once, and returns how many calls succeed. The others end with refusal.
func atOnce(t *testing.T, call func() error, refusal error) (succeeded int) {
	t.Helper()
	var wait sync.WaitGroup
	var mu sync.Mutex
	for range 50 {
		wait.Go(func() {
			err := call()
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				succeeded++
			} else if !errors.Is(err, refusal) {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	return succeeded
}

func typedCode(d *oauthtest.Deployment, text string) oauthapi.DeviceCode {
	return oauthapi.DeviceCode{Application: d.Application, UserCode: text}
}

func deviceAnswer(p *party, code oauthapi.DeviceCode, scopes ...string) oauthapi.DeviceAnswer {
	return oauthapi.DeviceAnswer{DeviceCode: code, Allowed: true, Scopes: scopes,
		Login: oauthapi.Login{Account: p.Site.Account, AuthenticatedAt: p.Clock.Now(), Session: "s-1"}}
}

func TestLogoutRequests(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	const goodbye = "https://shop.example.test/bye"
	p := newParty(t, d, d.Site, relyingparty.Change{PostLogoutRedirectURIs: field.Some([]string{goodbye})})
	hint := p.token(p.redeem(p.code(nil))).IDToken
	d.Clock.Move(48 * time.Hour)
	logOut := func(pairs ...string) (oauthapi.Logout, error) {
		parameters := map[string][]string{}
		for i := 0; i < len(pairs); i += 2 {
			parameters[pairs[i]] = append(parameters[pairs[i]], pairs[i+1])
		}
		return d.Service.LogoutRequest(t.Context(), oauthapi.AskLogout{Application: d.Application, Parameters: parameters})
	}
	const state = "a b&c=%20ä\"<>"
	out, err := logOut("id_token_hint", hint, "post_logout_redirect_uri", goodbye, "state", state, "ui_locales", "de",
		"client_id", p.ClientID, "logout_hint", "jo")
	if err != nil || out.Client == nil || out.Client.ID != p.OpenIDClient.ID || out.Account != d.Account ||
		out.Session != "s-1" || out.RedirectURI != goodbye || out.State != state || out.Subject != d.Account.String() ||
		out.Tenant != d.Tenant || out.Issuer != issuerOf(t, d, d.Site) || len(out.UILocales) != 1 {
		t.Errorf("the logout is %+v, %v", out, err)
	}
	if out, err := logOut("state", "s"); err != nil || out.Client != nil || out.RedirectURI != "" || out.State != "s" {
		t.Errorf("a logout without a client is %+v, %v", out, err)
	}
	if out, err := logOut("client_id", p.ClientID, "post_logout_redirect_uri", goodbye); err != nil ||
		out.RedirectURI != goodbye || out.Subject != "" {
		t.Errorf("a logout without a hint is %+v, %v", out, err)
	}
	other := newParty(t, d, d.Site, relyingparty.Change{})
	for name, pairs := range map[string][]string{
		"an address with a query":      {"id_token_hint", hint, "post_logout_redirect_uri", goodbye + "?foo=bar"},
		"an address of somebody":       {"id_token_hint", hint, "post_logout_redirect_uri", "https://evil.test/"},
		"an address without a client":  {"post_logout_redirect_uri", goodbye},
		"an unsigned hint":             {"id_token_hint", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0."},
		"a hint that was changed":      {"id_token_hint", hint + "x"},
		"a hint of another client":     {"id_token_hint", hint, "client_id", other.ClientID},
		"an unknown client":            {"client_id", "x"},
		"a state that is sent twice":   {"state", "a", "state", "b"},
		"an address of another client": {"client_id", other.ClientID, "post_logout_redirect_uri", goodbye},
	} {
		if out, err := logOut(pairs...); !errors.Is(err, apierr.BadRequest) || out.RedirectURI != "" {
			t.Errorf("%s is answered with %+v, %v", name, out, err)
		}
	}
	if err := d.Service.DeleteClient(t.Context(), id.Ref{Tenant: d.Tenant, ID: p.OpenIDClient.ID}); err != nil {
		t.Fatal(err)
	}
	if out, err := logOut("id_token_hint", hint); err != nil || out.Client != nil || out.Subject == "" {
		t.Errorf("a logout of a client that is gone is %+v, %v", out, err)
	}
}

func TestEndedSessions(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	p := newParty(t, d, d.Site, relyingparty.Change{ApplicationType: field.Some("native"),
		TokenEndpointAuthMethod: field.Some("client_secret_basic")})
	in := func(session string, scopes ...string) func(*oauthapi.IssueCode) {
		return func(in *oauthapi.IssueCode) { in.Session, in.Scopes = session, scopes }
	}
	issue := func(session, other string) (online, offline, elsewhere openid.Tokens) {
		return p.token(p.redeem(p.code(in(session, "openid")))), p.token(p.redeem(p.code(in(session, "openid", "offline_access")))),
			p.token(p.redeem(p.code(in(other, "openid"))))
	}
	end := func(in oauthapi.EndTokens) {
		t.Helper()
		in.Tenant, in.Account = d.Tenant, d.Account
		if _, err := d.Service.EndTokens(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	check := func(what string, tokens openid.Tokens, active bool) {
		t.Helper()
		if p.active(tokens.AccessToken) != active || p.active(tokens.RefreshToken) != active {
			t.Errorf("%s: want active %t", what, active)
		}
	}
	online, offline, elsewhere := issue("a", "b")
	code, offlineCode := p.code(in("a", "openid")), p.code(in("a", "openid", "offline_access"))
	end(oauthapi.EndTokens{Sessions: []string{"a"}, KeepOffline: true})
	check("a login of the session", online, false)
	check("a login with offline_access", offline, true)
	check("a login of another session", elsewhere, true)
	p.refuse("a code of the session", "invalid_grant", p.redeem(code))
	p.refuse("a code of the session with offline_access", "invalid_grant", p.redeem(offlineCode))
	t.Run("a code that is issued while its session ends does not survive it", func(t *testing.T) {
		sum := sha256.Sum256([]byte(verifier))
		request := oauthapi.IssueCode{Tenant: d.Tenant, Application: d.Application, ClientID: p.ClientID, RedirectURI: callback,
			CodeChallenge: base64.RawURLEncoding.EncodeToString(sum[:]), Scopes: []string{"openid"},
			Login: oauthapi.Login{Account: d.Account, AuthenticatedAt: d.Clock.Now(), Session: "c"}}
		var mu sync.Mutex
		var given []string
		var ending sync.WaitGroup
		atOnce(t, func() error {
			issued, err := d.Service.IssueCode(t.Context(), request)
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				if given = append(given, issued.Code.Reveal()); len(given) == 5 {
					ending.Go(func() { end(oauthapi.EndTokens{Sessions: []string{"c"}}) })
				}
			}
			return err
		}, apierr.BadRequest)
		ending.Wait()
		for _, code := range given {
			p.refuse("a code of the ended session", "invalid_grant", p.redeem(code))
		}
		_, err := d.Service.IssueCode(t.Context(), request)
		wantError(t, "a code of an ended session", "login_required", err)
	})
	end(oauthapi.EndTokens{Sessions: []string{"a", "b"}})
	check("a login with offline_access", offline, false)
	check("a login of another session", elsewhere, false)
	other := newParty(t, d, d.Site, relyingparty.Change{})
	kept := other.token(other.redeem(other.code(nil)))
	online, offline, _ = issue("d", "e")
	end(oauthapi.EndTokens{Client: p.OpenIDClient.ID})
	check("a login for the client", online, false)
	check("an offline login for the client", offline, false)
	if !other.active(kept.AccessToken) {
		t.Error("a login for another client has ended")
	}
}

func TestLogoutTokens(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	const address = "https://shop.example.test/logout"
	p := newParty(t, d, d.Site, relyingparty.Change{BackchannelLogoutURI: field.Some(address),
		IDTokenSignedResponseAlg: field.Some("ES256")})
	ask := oauthapi.AskLogoutToken{Tenant: d.Tenant, Client: p.OpenIDClient.ID, Account: d.Account, Session: "s", JTI: "j"}
	made, err := d.Service.LogoutToken(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	header, claims := p.claims(made.Token.Reveal())
	expires, _ := claims["exp"].(float64)
	if made.Address != address || header["typ"] != "logout+jwt" || header["alg"] != "ES256" ||
		claims["iss"] != issuerOf(t, d, d.Site) || claims["aud"] != p.ClientID || claims["jti"] != "j" ||
		claims["sub"] != d.Account.String() || claims["sid"] != "s" || claims["nonce"] != nil || claims["iat"] == nil ||
		int64(expires) != d.Clock.Now().Unix()+120 ||
		fmt.Sprint(claims["events"]) != "map[http://schemas.openid.net/event/backchannel-logout:map[]]" {
		t.Errorf("the logout token has %v, %v", header, claims)
	}
	p.refusedWith("a logout token as a hint", "invalid_request", p.ask("id_token_hint", made.Token.Reveal()))
	found, err := d.Service.OpenIDClients(t.Context(), oauthapi.AskOpenIDClients{Tenant: d.Tenant,
		Clients: []id.ID{p.OpenIDClient.ID, d.Account}})
	if err != nil || len(found.Items) != 1 || found.Items[0].BackchannelLogoutURI != address {
		t.Errorf("the clients are %+v, %v", found, err)
	}
	without := newParty(t, d, d.Site, relyingparty.Change{})
	for name, client := range map[string]id.ID{"no address": without.OpenIDClient.ID, "no client": d.Account} {
		ask.Client = client
		if _, err := d.Service.LogoutToken(t.Context(), ask); !errors.Is(err, apierr.NotFound) {
			t.Errorf("%s is answered with %v", name, err)
		}
	}
	_, err = d.Service.UpdateClient(t.Context(), id.Ref{Tenant: d.Tenant, ID: p.OpenIDClient.ID},
		relyingparty.Change{Status: field.Some(directoryapi.Disabled)})
	ask.Client = p.OpenIDClient.ID
	if _, refusal := d.Service.LogoutToken(t.Context(), ask); err != nil || !errors.Is(refusal, apierr.NotFound) {
		t.Errorf("a disabled client is answered with %v, %v", refusal, err)
	}
}

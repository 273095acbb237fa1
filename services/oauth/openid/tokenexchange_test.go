package openid_test

import (
	"testing"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/services/oauth/oauthtest"
	"github.com/doorward/doorward/services/oauth/openid"
	"github.com/doorward/doorward/services/oauth/relyingparty"
)

func TestTokenExchange(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	setScopes(t, d, openid.ScopeChange{Name: "orders:read", Resources: []string{api}},
		openid.ScopeChange{Name: "orders:write"})
	grants := field.Some([]string{"authorization_code", "refresh_token",
		"urn:ietf:params:oauth:grant-type:token-exchange"})
	p := newParty(t, d, d.Site, relyingparty.Change{GrantTypes: grants})
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
	other := newParty(t, d, d.Site, relyingparty.Change{GrantTypes: grants})
	other.refuse("a token of another client", "invalid_grant", exchange(other, subject.AccessToken))
	actor := newParty(t, d, d.Site, relyingparty.Change{GrantTypes: grants, TokenExchange: field.Some("DELEGATION")})
	_, claims = p.claims(actor.token(exchange(actor, subject.AccessToken)).AccessToken)
	if act, _ := claims["act"].(map[string]any); act["sub"] != actor.ClientID || claims["sub"] != d.Site.Account.String() {
		t.Errorf("the delegated token has %v", claims)
	}
	none := newParty(t, d, d.Site, relyingparty.Change{GrantTypes: grants, TokenExchange: field.Some("NONE")})
	none.refuse("a client that may not", "unauthorized_client", exchange(none, subject.AccessToken))
	if err := d.Service.OpenID.Revoke(t.Context(), p.call("/revoke", "token", subject.RefreshToken)); err != nil {
		t.Fatal(err)
	}
	if p.active(narrow.AccessToken) {
		t.Error("a token is still valid after the login of its subject_token has ended")
	}
}

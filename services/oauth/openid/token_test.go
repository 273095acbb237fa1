package openid_test

import (
	"errors"
	"testing"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/oauth/oauthtest"
	"github.com/doorward/doorward/services/oauth/openid"
	"github.com/doorward/doorward/services/oauth/relyingparty"
)

func TestClientCredentials(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	setScopes(t, d, openid.ScopeChange{Name: "orders:read", Resources: []string{api}},
		openid.ScopeChange{Name: "orders:write"})
	p := newParty(t, d, d.Site, service("Nightly"))
	issued := p.token(p.call("/token", "grant_type", "client_credentials", "scope", "orders:read openid unknown",
		"resource", api))
	header, claims := p.claims(issued.AccessToken)
	if header["typ"] != "at+jwt" || claims["iss"] != issuerOf(t, d, d.Site) ||
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
			relyingparty.Change{Status: field.Some("DISABLED")}); err != nil {
			t.Fatal(err)
		}
		p.refuse("a disabled client", "invalid_client", p.call("/token", "grant_type", "client_credentials"))
		if _, err := d.Service.UpdateClient(t.Context(), at, relyingparty.Change{Status: field.Some("ENABLED")}); err != nil {
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

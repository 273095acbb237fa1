package openid_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/oauthtest"
	"github.com/doorward/doorward/services/oauth/openid"
	"github.com/doorward/doorward/services/oauth/relyingparty"
	"github.com/doorward/doorward/services/oauth/signing"
	"github.com/doorward/doorward/services/oauth/store"
)

// Tokens of one kind, provider or tenant are not accepted as another's.
func TestTokensCannotBeSubstituted(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	p := newParty(t, d, d.Site, relyingparty.Change{})
	issued := p.token(p.redeem(p.code(nil)))
	neighbour := d.Site
	neighbour.Application = d.NewApplication(d.Tenant, d.Directory)
	sites := map[string]oauthtest.Site{"another application": neighbour, "another tenant": d.NewSite(t)}
	for name, site := range sites {
		q := newParty(t, d, site, relyingparty.Change{})
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
		stolen, err := d.Service.CreateSigningKey(t.Context(), id.Ref{Tenant: d.Tenant, ID: d.Tenant},
			signing.NewSigningKey{Algorithm: field.Some(secure.RS256)})
		if err != nil {
			t.Fatal(err)
		}
		key, err := id.Parse(stolen.ID)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Service.UpdateSigningKey(t.Context(), id.Ref{Tenant: d.Tenant, ID: key},
			signing.KeyChange{Status: field.Some(store.KeyActive)}, true); err != nil {
			t.Fatal(err)
		}
		wantError(t, "a token of a stolen key", "invalid_token", ask(issued.AccessToken))
	})
}

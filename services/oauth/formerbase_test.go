package oauth_test

import (
	"errors"
	"testing"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth"
	"github.com/doorward/doorward/services/oauth/oauthtest"
)

// Sessions and stored tokens outlive a new DOORWARD_BASE_URL, if the former one is among
// DOORWARD_FORMER_BASE_URLS.
func TestTokensOutliveANewBaseURL(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	login := d.LogIn(t, d.Site)
	ring, err := secure.ParseKeyring(d.Master)
	if err != nil {
		t.Fatal(err)
	}
	moved := func(base href.Base) *oauth.Service {
		return oauth.New(d.Store, d.Peers(), ring, d.Clock.Now, oauth.Config{Base: base, Alias: oauthtest.Alias, Suffix: oauthtest.Suffix})
	}
	const address = "https://login.example.test/v1"
	forgetful := moved(href.NewBase(address))
	if _, err := forgetful.Validate(t.Context(), validation(d.Tenant, d.Application, login.Access)); !errors.Is(err, apierr.TokenOtherApplication) {
		t.Errorf("a token of an unknown address is validated with %v, want %v", err, apierr.TokenOtherApplication)
	}
	service := moved(href.NewBase(address, oauthtest.Base.String()))
	if _, err := service.Validate(t.Context(), validation(d.Tenant, d.Application, login.Access)); err != nil {
		t.Errorf("a token of the former address is validated with %v", err)
	}
	renewed, err := service.Token(t.Context(), d.Request("grant_type", "refresh_token", "refresh_token", login.Refresh.Reveal()))
	if err != nil {
		t.Fatalf("a refresh token of the former address is refused: %v", err)
	}
	if _, err := service.Validate(t.Context(), validation(d.Tenant, d.Application, renewed.Access)); err != nil {
		t.Errorf("the token that a refresh token of the former address gave is validated with %v", err)
	}
	assertion, err := secure.SignJWT(map[string]any{"kid": d.Key, "stt": "assertion"}, secure.Claims{
		"iss": oauthtest.Base.To("applications", d.Application), "sub": oauthtest.Base.To("accounts", d.Account), "aud": d.Key,
		"status": "AUTHENTICATED", "iat": d.Clock.Now().Unix(), "exp": d.Clock.Now().Unix() + 60, "jti": secure.Token(20).Reveal(),
	}, d.Secret)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := service.Token(t.Context(), d.Request("grant_type", "service_token", "token", assertion)); err != nil {
		t.Errorf("an assertion of the former address is refused: %v", err)
	}
	if err := service.Revoke(t.Context(), oauth.Revocation{Tenant: d.Tenant, Application: d.Application,
		Form: oauthtest.Form("token", login.Access.Reveal())}); err != nil {
		t.Fatal(err)
	}
	if _, err := service.Validate(t.Context(), validation(d.Tenant, d.Application, login.Access)); !errors.Is(err, apierr.TokenRevoked) {
		t.Errorf("a revoked token of the former address is validated with %v, want %v", err, apierr.TokenRevoked)
	}
}

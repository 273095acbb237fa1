package openid_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/oauthtest"
	"github.com/doorward/doorward/services/oauth/openid"
	"github.com/doorward/doorward/services/oauth/relyingparty"
)

func fapi(t *testing.T, d *oauthtest.Deployment) error {
	t.Helper()
	_, err := d.Service.UpdateProvider(t.Context(), id.Ref{Tenant: d.Tenant, ID: d.Site.Application},
		openid.ProviderChange{Profile: field.Some("FAPI2")})
	return err
}

func TestTheProfileFAPI2IsRefusedWhileAClientDoesNotConform(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	p := newParty(t, d, d.Site, relyingparty.Change{})
	if err := fapi(t, d); !errors.Is(err, apierr.Format) {
		t.Fatalf("with a client of client_secret_basic the profile returns %v, want %v", err, apierr.Format)
	}
	if err := d.Service.DeleteClient(t.Context(), id.Ref{Tenant: d.Tenant, ID: p.OpenIDClient.ID}); err != nil {
		t.Fatal(err)
	}
	ref := id.Ref{Tenant: d.Tenant, ID: d.Site.Application}
	for name, in := range map[string]openid.ProviderChange{
		"signed by RS256":           {Profile: field.Some("FAPI2"), SigningAlgorithm: field.Some("RS256")},
		"with codes of two minutes": {Profile: field.Some("FAPI2"), AuthorizationCodeTTL: field.Some("PT2M")},
	} {
		if _, err := d.Service.UpdateProvider(t.Context(), ref, in); !apierr.IsRefusal(err) {
			t.Errorf("FAPI2 %s returns %v, want a refusal", name, err)
		}
	}
	if err := fapi(t, d); err != nil {
		t.Fatal(err)
	}
	provider, err := d.Service.Provider(t.Context(), ref)
	if err != nil || provider.Settings.SigningAlgorithm != secure.PS256 {
		t.Errorf("FAPI2 signs with %s (%v), want PS256", provider.Settings.SigningAlgorithm, err)
	}
	document, err := d.Service.Discovery(t.Context(), d.Site.Application)
	if err != nil || document["require_pushed_authorization_requests"] != true ||
		!slices.Equal(document["token_endpoint_auth_methods_supported"].([]string), []string{"private_key_jwt"}) ||
		slices.Contains(document["id_token_signing_alg_values_supported"].([]string), "RS256") {
		t.Errorf("the discovery of FAPI2 is %v (%v)", document, err)
	}
}

func TestAClientOfFAPI2(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	if err := fapi(t, d); err != nil {
		t.Fatal(err)
	}
	key := newKeyPair(t)
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "c1"}}})
	if err != nil {
		t.Fatal(err)
	}
	good := func() relyingparty.Change {
		return relyingparty.Change{Name: field.Some("Bank"), RedirectURIs: field.Some([]string{callback}),
			JWKS: field.Some(json.RawMessage(set))}
	}
	ref := id.Ref{Tenant: d.Tenant, ID: d.Site.Application}
	for name, change := range map[string]func(*relyingparty.Change){
		"a secret": func(in *relyingparty.Change) { in.TokenEndpointAuthMethod = field.Some("client_secret_basic") },
		"unbound tokens": func(in *relyingparty.Change) {
			in.DPoPBoundAccessTokens = field.Some(false)
		},
		"requests in the browser": func(in *relyingparty.Change) {
			in.RequirePushedAuthorizationRequests = field.Some(false)
		},
		"rotation":             func(in *relyingparty.Change) { in.RefreshTokenRotation = field.Some("ROTATE") },
		"no PKCE":              func(in *relyingparty.Change) { in.RequirePKCE = field.Some(false) },
		"ID tokens of RS256":   func(in *relyingparty.Change) { in.IDTokenSignedResponseAlg = field.Some("RS256") },
		"a redirect to http":   func(in *relyingparty.Change) { in.RedirectURIs = field.Some([]string{"http://localhost/cb"}) },
		"assertions of RS256":  func(in *relyingparty.Change) { in.TokenEndpointAuthSigningAlg = field.Some("RS256") },
		"a client without key": func(in *relyingparty.Change) { in.JWKS = field.Nullable[json.RawMessage]{} },
	} {
		in := good()
		change(&in)
		if _, err := d.Service.CreateClient(t.Context(), ref, in); !errors.Is(err, apierr.Format) {
			t.Errorf("%s returns %v, want %v", name, err, apierr.Format)
		}
	}
	p := newParty(t, d, d.Site, good())
	p.key = key
	if err := relyingparty.CheckFAPI(p.Settings); err != nil {
		t.Errorf("the defaults of a client do not conform: %v", err)
	}
	login := []string{"response_type", "code", "scope", "accounts", "code_challenge",
		"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "code_challenge_method", "S256"}
	setScopes(t, d, openid.ScopeChange{Name: "accounts"})
	push := func(audience string, pairs ...string) error {
		in := p.signed(key, audience, p.call("/par", append(pairs, login...)...))
		_, err := d.Service.Push(t.Context(), in)
		return err
	}
	issuer := issuerOf(t, d, d.Site)
	if err := push(issuer, "redirect_uri", callback); err != nil {
		t.Errorf("a request of FAPI2 returns %v", err)
	}
	wantError(t, "an assertion for the token endpoint", "invalid_client", push(issuer+"/token", "redirect_uri", callback))
	wantError(t, "a request without redirect_uri", "invalid_request", push(issuer))
}

package oauth_test

import (
	"errors"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth"
	"github.com/doorward/doorward/services/oauth/oauthtest"
	"github.com/doorward/doorward/services/oauth/openid"
	"github.com/doorward/doorward/services/oauth/store"
)

// The tokens of an application may be signed by the tenant's signing keys, so that its APIs verify them by its JWKS.
func TestTokensBySigningKeys(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	before := d.LogIn(t, d.Site)
	at := id.Ref{Tenant: d.Tenant, ID: d.Application}
	sign := func(by string) {
		t.Helper()
		if _, err := d.Service.UpdatePolicy(t.Context(), at, oauth.PolicyChange{TokenSigning: field.Some(by)}); err != nil {
			t.Fatal(err)
		}
	}
	sign("SIGNING_KEY")
	if _, err := d.Service.UpdateProvider(t.Context(), at, openid.ProviderChange{
		SigningAlgorithm: field.Some(secure.ES256)}); err != nil {
		t.Fatal(err)
	}
	issued := d.LogIn(t, d.Site)
	set, err := d.Service.Keys(t.Context(), d.Application)
	if err != nil {
		t.Fatal(err)
	}
	header, _ := decodeJWT(t, issued.Access)
	var verified bool
	for _, raw := range set.Keys {
		key, err := secure.ParseVerificationKey(raw)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := key.Verify(issued.Access, secure.ES256); err == nil && header["kid"] == key.ID() {
			verified = true
		}
	}
	if !verified || header["alg"] != secure.ES256 || header["stt"] != "access" {
		t.Errorf("the token has the header %v, which no published key has signed", header)
	}
	validate(t, d, d.Site, issued.Access, nil)
	validate(t, d, d.Site, before.Access, nil)
	validate(t, d, d.Site, issued.Refresh, apierr.TokenSignature)
	validate(t, d, d.NewSite(t), issued.Access, apierr.TokenSignature)
	parts := []byte(issued.Access.Reveal())
	parts[len(parts)/2] ^= 1
	validate(t, d, d.Site, secure.Secret(parts), apierr.TokenSignature)
	live, err := d.Service.LiveToken(t.Context(), store.Access, d.Tenant, issued.AccessTokenID)
	if err != nil {
		t.Fatal(err)
	}
	validate(t, d, d.Site, live.JWT, nil)
	refreshed, err := d.Service.Token(t.Context(), d.Request("grant_type", "refresh_token", "refresh_token",
		issued.Refresh.Reveal()))
	if err != nil {
		t.Fatal(err)
	}
	validate(t, d, d.Site, refreshed.Access, nil)

	t.Run("end with the API key by which they were issued", func(t *testing.T) {
		disable := func(status string) {
			t.Helper()
			if _, err := d.Service.UpdateAPIKey(t.Context(), d.Tenant, d.Key, oauth.APIKeyChange{
				Status: field.Some(status)}); err != nil {
				t.Fatal(err)
			}
		}
		disable(directoryapi.Disabled)
		validate(t, d, d.Site, issued.Access, apierr.TokenSignature)
		disable(directoryapi.Enabled)
		validate(t, d, d.Site, issued.Access, nil)
	})
	t.Run("are revoked", func(t *testing.T) {
		if err := d.Service.Revoke(t.Context(), oauth.Revocation{Tenant: d.Tenant, Application: d.Application,
			Form: oauthtest.Form("token", issued.Refresh.Reveal())}); err != nil {
			t.Fatal(err)
		}
		validate(t, d, d.Site, refreshed.Access, apierr.TokenRevoked)
	})
	sign("API_KEY")
	if header, _ := decodeJWT(t, d.LogIn(t, d.Site).Access); header["alg"] != "HS256" {
		t.Errorf("after the change back the token has the header %v", header)
	}
	_, err = d.Service.UpdatePolicy(t.Context(), at, oauth.PolicyChange{TokenSigning: field.Some("NONE")})
	if !errors.Is(err, apierr.Unsupported) {
		t.Errorf("an unknown value is answered with %v", err)
	}
}

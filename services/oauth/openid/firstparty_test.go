package openid_test

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/oauthtest"
	"github.com/doorward/doorward/services/oauth/openid"
	"github.com/doorward/doorward/services/oauth/relyingparty"
	"github.com/doorward/doorward/services/oauth/store"
)

// An access token of a first-party client is as good as one of the application, at authTokens and at the Client API;
// any other is none.
func TestAccessTokensOfFirstPartyClients(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	setScopes(t, d, openid.ScopeChange{Name: "read", Resources: []string{api}})
	plain := newParty(t, d, d.Site, relyingparty.Change{})
	present := func(token string) oauthapi.ValidateToken {
		return oauthapi.ValidateToken{Tenant: d.Tenant, Application: d.Application, PresentedToken: oauthapi.PresentedToken{
			Token: secure.Secret(token), Scheme: "bearer", Method: "GET", Address: api + "/me"}}
	}
	accepted := func(what string, in oauthapi.ValidateToken) id.ID {
		t.Helper()
		valid, err := d.Service.ValidateToken(t.Context(), in)
		if err != nil || valid.Account.ID != d.Account || valid.ExpiresAt.IsZero() {
			t.Errorf("%s at the Client API is that of %s, %v", what, valid.Account.ID, err)
		}
		found, err := d.Service.Validate(t.Context(), in)
		if err != nil {
			t.Errorf("%s at authTokens is answered with %v", what, err)
		}
		return found.ID
	}
	refused := func(what string, in oauthapi.ValidateToken, want error) {
		t.Helper()
		_, atClient := d.Service.ValidateToken(t.Context(), in)
		if _, err := d.Service.Validate(t.Context(), in); !errors.Is(err, want) || !apierr.IsRefusal(atClient) {
			t.Errorf("%s is answered with %v and %v, want %v", what, err, atClient, want)
		}
	}
	issued := plain.token(plain.redeem(plain.code(nil)))
	token := accepted("an access token", present(issued.AccessToken))
	live, err := d.Service.LiveToken(t.Context(), store.Access, d.Tenant, token)
	if err != nil || live.AccountID != d.Account || live.ApplicationID != d.Application {
		t.Fatalf("the resource of the token is %+v, %v", live, err)
	}
	if again := accepted("the token of the resource", present(live.JWT.Reveal())); again != token {
		t.Errorf("the token of the resource is %s, want %s", again, token)
	}
	second := newParty(t, d, d.Site, relyingparty.Change{})
	mfa := second.token(second.redeem(second.code(func(in *oauthapi.IssueCode) { in.ACR = oauthapi.ACRMFA })))
	if valid, err := d.Service.ValidateToken(t.Context(), present(mfa.AccessToken)); err != nil || !valid.SecondFactor {
		t.Errorf("a login with a second factor is %+v, %v", valid.SecondFactor, err)
	}

	other := d.NewSite(t)
	foreign := present(issued.AccessToken)
	foreign.Tenant = other.Tenant
	refused("the token of another tenant's application", foreign, apierr.NotFound)
	foreign.Application = other.Application
	refused("a token of another application", foreign, apierr.TokenSignature)
	refused("an ID token", present(issued.IDToken), apierr.TokenSignature)
	forResource := plain.token(plain.redeem(plain.code(func(in *oauthapi.IssueCode) { in.Resource = api })))
	refused("a token for a resource", present(forResource.AccessToken), apierr.TokenSignature)
	asking := newParty(t, d, d.Site, relyingparty.Change{Consent: field.Some("REQUIRED")})
	refused("a token of a client that asks for consent", present(asking.token(asking.redeem(asking.code(nil))).AccessToken),
		apierr.TokenSignature)
	itself := newParty(t, d, d.Site, service("Itself"))
	refused("a token of a client itself", present(itself.token(itself.call("/token", "grant_type",
		"client_credentials")).AccessToken), apierr.TokenSignature)
	opaque := newParty(t, d, d.Site, relyingparty.Change{AccessTokenFormat: field.Some("OPAQUE")})
	refused("an opaque token", present(opaque.token(opaque.redeem(opaque.code(nil))).AccessToken), apierr.TokenSignature)

	bound := newParty(t, d, d.Site, relyingparty.Change{DPoPBoundAccessTokens: field.Some(true)})
	bound.key = newKeyPair(t)
	held := present(bound.token(bound.redeem(bound.code(nil))).AccessToken)
	refused("a token that is bound to a key, as a Bearer token", held, apierr.TokenSignature)
	proved := func(address string) oauthapi.ValidateToken {
		in := held
		in.Scheme = "dpop"
		hash := sha256.Sum256([]byte(held.Token.Reveal()))
		in.Proofs = []string{bound.proof("", map[string]any{"htm": "GET", "htu": address,
			"ath": base64.RawURLEncoding.EncodeToString(hash[:])})}
		return in
	}
	refused("a proof for another address", proved(api+"/other"), apierr.TokenSignature)
	if valid, err := d.Service.ValidateToken(t.Context(), proved(api+"/me")); err != nil || valid.Account.ID != d.Account {
		t.Errorf("a token with its proof is answered with %v", err)
	}

	if err := d.Service.DeleteToken(t.Context(), store.Access, other.Tenant, token); !errors.Is(err, apierr.NotFound) {
		t.Errorf("another tenant deletes the token: %v", err)
	}
	if err := d.Service.DeleteToken(t.Context(), store.Access, d.Tenant, token); err != nil {
		t.Fatal(err)
	}
	refused("a token that was deleted", present(issued.AccessToken), apierr.TokenSignature)
	d.SetStatus(d.Tenant, d.Account, directoryapi.Disabled)
	refused("the token of a disabled account", present(mfa.AccessToken), apierr.TokenSignature)
}

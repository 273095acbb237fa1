package openid_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/oauth/oauthtest"
	"github.com/doorward/doorward/services/oauth/openid"
	"github.com/doorward/doorward/services/oauth/relyingparty"
)

// announce hands the event of a new domain of hosted pages to the service, as its consumer does.
func announce(t *testing.T, d *oauthtest.Deployment, domain string, at time.Time) {
	t.Helper()
	e, err := events.Wrap(t.Context(), events.SiteDomainChanged{Tenant: d.Tenant, Domain: domain}, at)
	if err != nil {
		t.Fatal(err)
	}
	for _, handler := range d.Service.Handlers() {
		if handler.Event == e.Type {
			if err := handler.Handle(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func setIssuerDomain(t *testing.T, d *oauthtest.Deployment, value string) error {
	t.Helper()
	_, err := d.Service.UpdateProvider(t.Context(), id.Ref{Tenant: d.Tenant, ID: d.Application},
		openid.ProviderChange{IssuerDomain: field.Some(value)})
	return err
}

func TestAnIssuerAtTheDomainOfTheHostedPages(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	host := issuerOf(t, d, d.Site)
	if err := setIssuerDomain(t, d, "ID_SITE"); !errors.Is(err, apierr.Unavailable) {
		t.Errorf("before the domain is known ID_SITE is answered with %v", err)
	}
	if err := setIssuerDomain(t, d, "TENANT"); apierr.From(err).Code != 2003 {
		t.Errorf("an unknown issuerDomain is answered with %v", err)
	}
	if got := issuerOf(t, d, d.Site); got != host {
		t.Errorf("after refused changes the issuer is %s, want %s", got, host)
	}
	announce(t, d, "login.shop.test", d.Clock.Now())
	if got := issuerOf(t, d, d.Site); got != host {
		t.Errorf("without ID_SITE the issuer is %s, want %s", got, host)
	}
	if err := setIssuerDomain(t, d, "ID_SITE"); err != nil {
		t.Fatal(err)
	}
	issuer := "https://login.shop.test/oidc/" + d.Application.String()
	if got := issuerOf(t, d, d.Site); got != issuer {
		t.Errorf("the issuer is %s, want %s", got, issuer)
	}
	document, err := d.Service.Discovery(t.Context(), d.Application)
	if err != nil || document["issuer"] != issuer {
		t.Errorf("the metadata is %v, %v", document, err)
	}
	for name, value := range document {
		address, isText := value.(string)
		if isText && !strings.HasPrefix(address, issuer) {
			t.Errorf("%s is %s, which is not below the issuer", name, address)
		}
	}

	p := newParty(t, d, d.Site, relyingparty.Change{})
	p.key = newKeyPair(t)
	issued := p.token(p.redeem(p.code(nil)))
	for what, text := range map[string]string{"the ID token": issued.IDToken, "the access token": issued.AccessToken} {
		if _, claims := p.claims(text); claims["iss"] != issuer {
			t.Errorf("%s has the claims %v", what, claims)
		}
	}
	foreign := p.redeem(p.code(nil))
	foreign.Proofs = []string{p.proof("/token", map[string]any{"htu": host + "/token"})}
	p.refuse("a proof for the address of the deployment", "invalid_dpop_proof", foreign)
	asked, err := d.Service.Authorization(t.Context(), oauthapi.AskAuthorization{Application: d.Application,
		Parameters: map[string][]string{"client_id": {p.ClientID}, "redirect_uri": {callback}}})
	if err != nil || asked.Issuer != issuer {
		t.Errorf("an authorization request is answered by %s, %v", asked.Issuer, err)
	}
	clients, err := d.Service.OpenIDClients(t.Context(), oauthapi.AskOpenIDClients{Tenant: d.Tenant,
		Clients: []id.ID{p.OpenIDClient.ID}})
	if err != nil || len(clients.Items) != 1 || clients.Items[0].Issuer != issuer {
		t.Errorf("the clients of a session are %+v, %v", clients, err)
	}
	checkAudience(t, d, issuer, host)
}

// checkAudience checks that a client assertion is for the issuer, and not for another one.
func checkAudience(t *testing.T, d *oauthtest.Deployment, issuer, other string) {
	t.Helper()
	key := newKeyPair(t)
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "c1"}}})
	if err != nil {
		t.Fatal(err)
	}
	in := service("Signer")
	in.TokenEndpointAuthMethod, in.JWKS = field.Some("private_key_jwt"), field.Some(json.RawMessage(set))
	p := newParty(t, d, d.Site, in)
	if issued := p.token(p.signed(key, issuer, p.call("/token", "grant_type", "client_credentials"))); issued.AccessToken == "" {
		t.Errorf("a client assertion for the issuer gets %v", issued)
	}
	p.refuse("a client assertion for another issuer", "invalid_client",
		p.signed(key, other, p.call("/token", "grant_type", "client_credentials")))
}

// A new issuer is another provider for every relying party: what the former one has issued is no good there, and is good
// again where the domain comes back.
func TestANewIssuerRefusesWhatTheFormerOneHasIssued(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	announce(t, d, "login.shop.test", d.Clock.Now())
	jwt := newParty(t, d, d.Site, relyingparty.Change{})
	opaque := newParty(t, d, d.Site, relyingparty.Change{AccessTokenFormat: field.Some("OPAQUE")})
	changes := map[string]func(){
		"another domain":  func() { announce(t, d, "login2.shop.test", d.Clock.Now().Add(time.Minute)) },
		"HOST":            func() { must(t, setIssuerDomain(t, d, "HOST")) },
		"ID_SITE":         func() { must(t, setIssuerDomain(t, d, "ID_SITE")) },
		"the domain back": func() { announce(t, d, "login.shop.test", d.Clock.Now().Add(time.Minute)) },
	}
	for _, what := range []string{"ID_SITE", "another domain", "HOST"} {
		t.Run(what, func(t *testing.T) {
			first, code := jwt.token(jwt.redeem(jwt.code(nil))), jwt.code(nil)
			second := opaque.token(opaque.redeem(opaque.code(nil)))
			changes[what]()
			for _, text := range []string{first.AccessToken, first.RefreshToken} {
				if jwt.active(text) {
					t.Errorf("the token %s is active", text)
				}
			}
			if opaque.active(second.AccessToken) {
				t.Error("an opaque token is active")
			}
			if _, err := d.Service.UserInfo(t.Context(), opaque.bearer(second.AccessToken)); !errors.Is(err, apierr.Unauthorized) {
				t.Errorf("UserInfo is answered with %v", err)
			}
			jwt.refuse("a refresh token", "invalid_grant", jwt.refresh(first.RefreshToken))
			jwt.refuse("a code", "invalid_grant", jwt.redeem(code))
			d.Clock.Move(2 * time.Minute)
		})
	}
	must(t, setIssuerDomain(t, d, "ID_SITE"))
	kept := jwt.token(jwt.redeem(jwt.code(nil)))
	changes["the domain back"]()
	d.Clock.Move(2 * time.Minute)
	changes["another domain"]()
	if !jwt.active(kept.AccessToken) {
		t.Error("a token is not active although its issuer is the present one again")
	}
}

// Events are delivered at least once: an older one that comes late has no effect.
func TestALateEventDoesNotBringAFormerDomainBack(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	announce(t, d, "new.shop.test", d.Clock.Now())
	announce(t, d, "old.shop.test", d.Clock.Now().Add(-time.Second))
	must(t, setIssuerDomain(t, d, "ID_SITE"))
	if got := issuerOf(t, d, d.Site); !strings.HasPrefix(got, "https://new.shop.test/") {
		t.Errorf("the issuer is %s", got)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

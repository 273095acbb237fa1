package idsite_test

import (
	"context"
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite"
)

// samlDirectory is a SAML directory: its identity provider logs one account in, and answers whatever request
// it is asked about.
type samlDirectory struct {
	directoryapi.Contract
	directory id.Ref
	account   directoryapi.Account
	begun     []directoryapi.BeginSAMLLogin
	logouts   []directoryapi.SAMLLogout
	expected  []string // ids of the requests that responses had to name
	isNew     bool     // the login has created the account
}

func (d *samlDirectory) SAMLTenant(context.Context, directoryapi.SAMLDirectory) (directoryapi.SAMLTenant, error) {
	return directoryapi.SAMLTenant{Tenant: d.directory.Tenant}, nil
}

func (d *samlDirectory) BeginSAMLLogin(_ context.Context, in directoryapi.BeginSAMLLogin) (directoryapi.SAMLRedirect, error) {
	d.begun = append(d.begun, in)
	return directoryapi.SAMLRedirect{Location: "https://idp.test/sso"}, nil
}

func (d *samlDirectory) FinishSAMLLogin(_ context.Context, in directoryapi.FinishSAMLLogin) (directoryapi.SAMLLogin, error) {
	d.expected = append(d.expected, in.RequestID)
	session := directoryapi.SAMLSession{Directory: d.directory.ID, NameID: "jo"}
	return directoryapi.SAMLLogin{Account: d.account, ResponseID: "_response", Session: session, IsNew: d.isNew}, nil
}

func (d *samlDirectory) SAMLLogout(_ context.Context, in directoryapi.SAMLLogout) (directoryapi.SAMLRedirect, error) {
	d.logouts = append(d.logouts, in)
	return directoryapi.SAMLRedirect{Location: "https://idp.test/slo"}, nil
}

// relayState is that of the last login that began.
func (d *samlDirectory) relayState() secure.Secret { return d.begun[len(d.begun)-1].RelayState }

// mappedApplication answers for the application of an IdP-initiated login.
type mappedApplication struct {
	applicationapi.Contract
	application *applicationapi.Application
	asked       []string
	destination *applicationapi.SAMLDestination // of any default RelayState; nil: there is none
	linked      *directoryapi.Account           // to which the account is linked that has logged in; nil: none
}

func (m *mappedApplication) CompleteLogin(ctx context.Context, in applicationapi.CompleteLogin) (applicationapi.LoggedIn, error) {
	if m.linked != nil {
		return applicationapi.LoggedIn{Account: *m.linked}, nil
	}
	return m.Contract.CompleteLogin(ctx, in)
}

func (m *mappedApplication) SAMLApplication(_ context.Context, in applicationapi.SAMLApplication) (applicationapi.Application, error) {
	m.asked = append(m.asked, in.CallbackURI)
	return *m.application, nil
}

func (m *mappedApplication) SAMLRelayState(context.Context, applicationapi.SAMLRelayState) (applicationapi.SAMLDestination, error) {
	if m.destination != nil {
		return *m.destination, nil
	}
	return applicationapi.SAMLDestination{}, apierr.SAMLMalformed
}

// newSAMLLogin returns a deployment whose application has a SAML directory.
func newSAMLLogin(t *testing.T) (*login, *samlDirectory, *mappedApplication) {
	t.Helper()
	d, mapped := &samlDirectory{}, &mappedApplication{}
	l := newLogin(t, func(peers *idsite.Peers) {
		d.Contract, mapped.Contract = peers.Directory, peers.Application
		peers.Directory, peers.Application = d, mapped
	})
	mapped.application = &l.app
	d.directory = id.Ref{Tenant: l.tenant.ID, ID: l.peers.Directories.NewDirectory(l.tenant.ID, "Corp")}
	d.account = l.peers.Directories.NewAccount(l.tenant.ID, d.directory.ID, directoryapi.NewAccount{Email: field.Some(l.user.Email)})
	l.peers.Directories.Mirror(t, d.directory, "saml")
	l.peers.Applications.AddStore(id.Ref{Tenant: l.tenant.ID, ID: l.app.ID}, d.directory.ID)
	return l, d, mapped
}

// authorize begins a login of a client at the SAML directory.
func (l *login) authorize(t *testing.T, address string, d *samlDirectory, state *string) (location string, err error) {
	t.Helper()
	ctx := caller.Into(t.Context(), caller.Caller{Tenant: l.tenant.ID, Address: netip.MustParseAddr(address)})
	api, err := l.OpenClientAPI(ctx, l.app.DNSLabel)
	if err != nil {
		t.Fatal(err)
	}
	location, _, err = api.Authorize(ctx, idsite.Authorize{
		ResponseType: "service_token", AccountStore: apiBase.To("directories", d.directory.ID), State: state,
	})
	return location, err
}

// Strict identity providers refuse a RelayState of more than 80 bytes.
func TestARelayStateIsAHandleOfALogin(t *testing.T) {
	l, d, _ := newSAMLLogin(t)
	state := strings.Repeat("s", 4000)
	if to, err := l.authorize(t, "192.0.2.1", d, &state); err != nil || to != "https://idp.test/sso" {
		t.Fatalf("the login begins at %s, %v", to, err)
	}
	relay := d.relayState()
	if len(relay) > 80 || url.QueryEscape(relay.Reveal()) != relay.Reveal() || len(d.begun[0].RequestID) > 80 {
		t.Errorf("the RelayState has %d bytes: %s", len(relay), relay.Reveal())
	}
	elsewhere := id.New(l.clock.Now())
	if to, err := l.FinishSAML(t.Context(), elsewhere, "response", relay); !errors.Is(err, apierr.SAMLMalformed) || len(d.expected) > 0 {
		t.Errorf("at another directory the RelayState leads to %s, %v", to, err)
	}
	damaged := []byte(relay.Reveal())
	for i := range damaged {
		damaged[i] ^= 1
		if to, err := l.FinishSAML(t.Context(), d.directory.ID, "response", secure.Secret(damaged)); !errors.Is(err, apierr.SAMLMalformed) {
			t.Fatalf("with another character %d the RelayState leads to %s, %v", i, to, err)
		}
		damaged[i] ^= 1
	}
	if _, err := l.FinishSAMLLogout(t.Context(), relay, "response"); !errors.Is(err, apierr.BadRequest) {
		t.Errorf("the RelayState of a login ends a logout: %v", err)
	}
	to, err := l.FinishSAML(t.Context(), d.directory.ID, "response", relay)
	if err != nil {
		t.Fatal(err)
	}
	_, claims, _ := assertion(t, to)
	back, _ := url.Parse(to)
	if back.Query().Get("state") != state || string(claims["state"]) != `"`+state+`"` || d.expected[0] != d.begun[0].RequestID {
		t.Errorf("the login leads to %s; it expected an answer to %s", to, d.expected)
	}
	if to, err := l.FinishSAML(t.Context(), d.directory.ID, "response", relay); err != nil || !strings.Contains(to, "jwtResponse=") || len(d.expected) != 1 {
		t.Errorf("the second use of the RelayState leads to %s, %v", to, err)
	}
	if to, _ := l.authorize(t, "192.0.2.1", d, &state); to == "" || d.relayState() == relay {
		t.Errorf("two logins have the same RelayState")
	}
	l.clock.Move(31 * time.Minute)
	to, err = l.FinishSAML(t.Context(), d.directory.ID, "response", d.relayState())
	if err != nil {
		t.Fatal(err)
	}
	l.wantError(t, "a login of more than 30 minutes", strings.Replace(to, "state="+state+"&", "", 1), apierr.SAMLMalformed)
}

// Logins that nobody ends are rows with some kilobytes each, and anybody may begin them.
func TestTheLoginsThatAClientBeginsAreLimited(t *testing.T) {
	l, d, _ := newSAMLLogin(t)
	begin := func(address string) error {
		_, err := l.authorize(t, address, d, nil)
		return err
	}
	for range 200 {
		if err := begin("2001:db8::1"); err != nil {
			t.Fatal(err)
		}
	}
	l.clock.Move(10 * time.Minute)
	refusal := apierr.From(begin("2001:db8::2"))
	if !errors.Is(refusal, apierr.TooMany) || refusal.RetryAfter > 20*time.Minute || refusal.RetryAfter < 19*time.Minute {
		t.Errorf("the login after 200 of the same network returned %v with Retry-After %v", refusal, refusal.RetryAfter)
	}
	if err := begin("2001:db8:0:1::1"); err != nil {
		t.Errorf("a login of another network returned %v", err)
	}
	if _, err := l.FinishSAML(t.Context(), d.directory.ID, "response", d.begun[0].RelayState); err != nil {
		t.Fatal(err)
	}
	if err := begin("2001:db8::1"); err != nil {
		t.Errorf("after one of 200 logins has ended, the next returned %v", err)
	}
	if err := begin("2001:db8::1"); !errors.Is(err, apierr.TooMany) {
		t.Errorf("the login after that returned %v", err)
	}
	l.clock.Move(20 * time.Minute)
	if err := begin("2001:db8::1"); err != nil {
		t.Errorf("after 30 minutes a login returned %v", err)
	}
}

func TestALoginThatAnIdentityProviderBeginsMayNameACallback(t *testing.T) {
	l, d, mapped := newSAMLLogin(t)
	l.app.AuthorizedCallbackURIs = []string{callback, "https://shop.example.test/other", "myapp:/callback"}
	l.put(l.app)
	for relay, want := range map[string]string{
		"": callback, "https://shop.example.test/other": "https://shop.example.test/other", "myapp:/callback": "myapp:/callback",
		"https://evil.test/callback": callback, "javascript:alert(1)": callback,
	} {
		to, err := l.FinishSAML(t.Context(), d.directory.ID, "response", secure.Secret(relay))
		if err != nil || !strings.HasPrefix(to, want+"?jwtResponse=") {
			t.Errorf("a login with the RelayState %q leads to %s, %v, want %s", relay, to, err, want)
		}
		if asked := mapped.asked[len(mapped.asked)-1]; asked != relay {
			t.Errorf("the application is looked for by the callback %q, want %q", asked, relay)
		}
	}
	for _, expected := range d.expected {
		if expected != "" {
			t.Errorf("an unsolicited response must answer the request %s", expected)
		}
	}
	if to, err := l.FinishSAML(t.Context(), d.directory.ID, "response", "no address"); !errors.Is(err, apierr.SAMLMalformed) {
		t.Errorf("a text that is no address leads to %s, %v", to, err)
	}
}

// The browser comes back from a single logout by a RelayState that is as short.
func TestASingleLogoutComesBackByItsHandle(t *testing.T) {
	l, d, _ := newSAMLLogin(t)
	page := l.begin(t, nil, idsite.BrowserRequest{})
	opened := l.open(t, pageOf(t, page.Location))
	if _, err := opened.BeginSAML(t.Context(), l.app.ID, ""); err != nil {
		t.Fatal(err)
	}
	back, err := l.FinishSAML(t.Context(), d.directory.ID, "response", d.relayState())
	if err != nil {
		t.Fatal(err)
	}
	_, jwt, _ := strings.Cut(back, "jwtResponse=")
	landed, err := l.FinishLogin(t.Context(), idsite.BrowserRequest{Token: secure.Secret(jwt), Browsers: idsite.BrowserTokens{page.Browser}})
	if err != nil || landed.Session == "" {
		t.Fatalf("the login ends with %+v, %v", landed, err)
	}
	out, err := l.Logout(t.Context(), idsite.BrowserRequest{Token: l.sign(t, nil, nil), Session: landed.Session})
	if err != nil || out.Location != "https://idp.test/slo" || len(d.logouts) != 1 {
		t.Fatalf("the logout leads to %+v, %v", out, err)
	}
	relay := d.logouts[0].RelayState
	if len(relay) > 80 {
		t.Errorf("the RelayState of a logout has %d bytes", len(relay))
	}
	if to, err := l.FinishSAML(t.Context(), d.directory.ID, "response", relay); !errors.Is(err, apierr.SAMLMalformed) {
		t.Errorf("the RelayState of a logout begins a login: %s, %v", to, err)
	}
	to, err := l.FinishSAMLLogout(t.Context(), relay, "response")
	if err != nil {
		t.Fatal(err)
	}
	if _, claims, _ := assertion(t, to); string(claims["status"]) != `"LOGOUT"` || string(claims["sub"]) != `"`+apiBase.To("accounts", d.account.ID)+`"` {
		t.Errorf("the logout says %s", claims)
	}
	l.clock.Move(31 * time.Minute)
	if to, err := l.FinishSAMLLogout(t.Context(), relay, "response"); !errors.Is(err, apierr.BadRequest) {
		t.Errorf("after 30 minutes the RelayState of a logout leads to %s, %v", to, err)
	}
}

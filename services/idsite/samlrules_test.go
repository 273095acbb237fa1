package idsite_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/saml"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite"
	"github.com/doorward/doorward/services/idsite/idsitetest"
)

func (l *login) appRef() id.Ref { return id.Ref{Tenant: l.tenant.ID, ID: l.app.ID} }

// newSAMLDirectory adds another SAML directory, and maps it to the application.
func (l *login) newSAMLDirectory(t *testing.T, name string) id.ID {
	t.Helper()
	directory := l.peers.Directories.NewDirectory(l.tenant.ID, name)
	l.peers.Directories.Mirror(t, id.Ref{Tenant: l.tenant.ID, ID: directory}, "saml")
	l.peers.Applications.AddStore(l.appRef(), directory)
	return directory
}

// Whoever controls the identity provider of one directory must not log users in by the RelayState of another one.
func TestARelayStateCountsOnlyAtItsDirectory(t *testing.T) {
	l, d, _ := newSAMLLogin(t)
	other := l.newSAMLDirectory(t, "Other")
	if _, err := l.authorize(t, "192.0.2.1", d, nil); err != nil {
		t.Fatal(err)
	}
	if to, err := l.FinishSAML(t.Context(), other, "response", d.relayState()); !errors.Is(err, apierr.SAMLMalformed) || len(d.expected) > 0 {
		t.Errorf("at another mapped directory the RelayState leads to %q, %v", to, err)
	}
	if _, err := l.FinishSAML(t.Context(), d.directory.ID, "response", d.relayState()); err != nil {
		t.Errorf("at its directory the RelayState returned %v", err)
	}
}

// A response creates an account. It must not in a directory, or for an application, that went out of use meanwhile.
func TestAResponseIsNotReadForWhatIsOutOfUse(t *testing.T) {
	for what, c := range map[string]struct {
		end  func(*login)
		want *apierr.Error
	}{
		"a directory that is not mapped": {func(l *login) { l.peers.Applications.Map(l.appRef()) }, apierr.NotMapped},
		"an application that is disabled": {func(l *login) {
			l.app.Status = directoryapi.Disabled
			l.put(l.app)
		}, apierr.TokenApplicationDisabled},
	} {
		t.Run(what, func(t *testing.T) {
			l, d, _ := newSAMLLogin(t)
			location, err := l.BeginSAML(t.Context(), l.app.ID, l.sign(t, nil, nil))
			if err != nil || location != "https://idp.test/sso" {
				t.Fatalf("the login begins at %s, %v", location, err)
			}
			c.end(l)
			to, err := l.FinishSAML(t.Context(), d.directory.ID, "response", d.relayState())
			if err != nil || len(d.expected) > 0 {
				t.Fatalf("%d responses were read; the login leads to %s, %v", len(d.expected), to, err)
			}
			l.wantError(t, what, to, c.want)
		})
	}
}

func TestALoginThatWasPurgedIsNotOneThatAnIdentityProviderBegan(t *testing.T) {
	l, d, _ := newSAMLLogin(t)
	if _, err := l.authorize(t, "192.0.2.1", d, nil); err != nil {
		t.Fatal(err)
	}
	l.clock.Move(time.Hour)
	if err := l.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if to, err := l.FinishSAML(t.Context(), d.directory.ID, "response", d.relayState()); !errors.Is(err, apierr.SAMLMalformed) {
		t.Errorf("the RelayState of a purged login leads to %s, %v", to, err)
	}
	if to, err := l.FinishSAMLLogout(t.Context(), d.relayState(), "response"); !errors.Is(err, apierr.BadRequest) {
		t.Errorf("the RelayState of a purged login ends a logout at %s, %v", to, err)
	}
}

func TestATokenBeginsASAMLLoginOfItsApplication(t *testing.T) {
	l, d, _ := newSAMLLogin(t)
	l.app.AuthorizedCallbackURIs = []string{"https://*.example.test/cb", callback}
	l.put(l.app)
	sameTenant := l.peers.Applications.NewApplication(l.tenant.ID)
	corp := apiBase.To("directories", d.directory.ID)
	cloud := apiBase.To("directories", l.user.DirectoryID)
	unmapped := l.peers.Directories.NewDirectory(l.tenant.ID, "Unmapped")
	l.peers.Directories.Mirror(t, id.Ref{Tenant: l.tenant.ID, ID: unmapped}, "saml")
	for _, c := range []struct {
		what   string
		header map[string]any
		claims map[string]any
		want   *apierr.Error // nil: the login begins
	}{
		{what: "a token of the API key"},
		{what: "a token of the application", claims: map[string]any{"iss": apiBase.To("applications", l.app.ID), "sub": nil}},
		{what: "a token that names its directory", claims: map[string]any{"ash": corp}},
		{what: "a token with a listed callback", claims: map[string]any{"cb_uri": "https://a.example.test/cb"}},
		{what: "a token without a callback", claims: map[string]any{"cb_uri": nil}},
		{what: "another application as the subject", claims: map[string]any{"sub": apiBase.To("applications", sameTenant)}, want: apierr.BadRequest},
		{what: "another application as the issuer", claims: map[string]any{"iss": apiBase.To("applications", sameTenant)}, want: apierr.BadRequest},
		{what: "another kind of subject", claims: map[string]any{"sub": apiBase.To("directories", l.app.ID)}, want: apierr.BadRequest},
		{what: "an assertion", header: map[string]any{"kid": in.KeyID, "stt": "assertion"}, want: apierr.BadRequest},
		{what: "a token that has expired", claims: map[string]any{"exp": l.clock.Now().Add(-2 * time.Minute).Unix()}, want: apierr.TokenExpired},
		{what: "a callback that is not listed", claims: map[string]any{"cb_uri": "https://evil.test/cb"}, want: apierr.CallbackNotListed},
		{what: "an account store that is no href", claims: map[string]any{"ash": "corp"}, want: apierr.Reference},
		{what: "a directory that is not mapped", claims: map[string]any{"ash": apiBase.To("directories", unmapped)}, want: apierr.NotMapped},
		{what: "a directory that is no SAML directory", claims: map[string]any{"ash": cloud}, want: apierr.NotSAML},
		{what: "an unknown organization", claims: map[string]any{"onk": "nobody"}, want: apierr.NameKeyUnknown},
	} {
		before := len(d.begun)
		to, err := l.BeginSAML(t.Context(), l.app.ID, l.sign(t, c.header, c.claims))
		if c.want != nil {
			if !errors.Is(err, c.want) || len(d.begun) > before {
				t.Errorf("%s leads to %q, %v; want %d", c.what, to, err, c.want.Code)
			}
			continue
		}
		if err != nil || len(d.begun) != before+1 || d.begun[before].Directory != d.directory.ID {
			t.Errorf("%s leads to %q, %v; requests %+v", c.what, to, err, d.begun[before:])
			continue
		}
		want := callback
		if asked, ok := c.claims["cb_uri"].(string); ok {
			want = asked
		}
		back, err := l.FinishSAML(t.Context(), d.directory.ID, "response", d.relayState())
		if err != nil || !strings.HasPrefix(back, want+"?jwtResponse=") {
			t.Errorf("%s comes back to %q, %v; want %s", c.what, back, err, want)
		}
	}
	token := l.sign(t, nil, nil)
	if _, err := l.BeginSAML(t.Context(), l.app.ID, token); err != nil {
		t.Fatal(err)
	}
	if to, err := l.BeginSAML(t.Context(), l.app.ID, token); !errors.Is(err, apierr.TokenReplayed) {
		t.Errorf("a token that was used leads to %q, %v", to, err)
	}
	for what, listed := range map[string]struct {
		callbacks []string
		want      *apierr.Error
	}{
		"none":           {[]string{}, apierr.NoCallback},
		"only wildcards": {[]string{"https://*.example.test/cb"}, apierr.CallbackWildcardsOnly},
	} {
		in := idsitetest.Named(l.app.Name)
		in.AuthorizedCallbackURIs = field.Some(listed.callbacks)
		l.peers.Applications.Change(l.appRef(), in)
		if to, err := l.BeginSAML(t.Context(), l.app.ID, l.sign(t, nil, map[string]any{"cb_uri": nil})); !errors.Is(err, listed.want) {
			t.Errorf("an application with %s in authorizedCallbackUris leads to %q, %v", what, to, err)
		}
	}
}

// Without a name the login is at the first directory that can be used; a disabled one only where it is named.
func TestASAMLLoginChoosesItsDirectory(t *testing.T) {
	l, d, _ := newSAMLLogin(t)
	second := l.newSAMLDirectory(t, "Second")
	begin := func(claims map[string]any) id.ID {
		t.Helper()
		if _, err := l.BeginSAML(t.Context(), l.app.ID, l.sign(t, nil, claims)); err != nil {
			t.Fatal(err)
		}
		return d.begun[len(d.begun)-1].Directory
	}
	if got := begin(nil); got != d.directory.ID {
		t.Errorf("a login without a name is at %s, want the first directory", got)
	}
	l.peers.Directories.SetStatus(t, d.directory, "directories", directoryapi.Disabled)
	if got := begin(nil); got != second {
		t.Errorf("a login without a name is at %s, want the directory that is enabled", got)
	}
	if got := begin(map[string]any{"ash": apiBase.To("directories", d.directory.ID)}); got != d.directory.ID {
		t.Errorf("a login with a name is at %s", got)
	}
	page := l.open(t, pageOf(t, l.begin(t, nil, idsite.BrowserRequest{}).Location))
	if _, err := page.BeginSAML(t.Context(), l.app.ID, apiBase.To("directories", second)); err != nil || d.begun[len(d.begun)-1].Directory != second {
		t.Errorf("the button of a page leads to %+v, %v", d.begun[len(d.begun)-1], err)
	}
	if to, err := page.BeginSAML(t.Context(), second, ""); !errors.Is(err, apierr.Forbidden) {
		t.Errorf("the button of another application leads to %q, %v", to, err)
	}
	l.peers.Applications.Map(l.appRef(), l.user.DirectoryID)
	if to, err := l.BeginSAML(t.Context(), l.app.ID, l.sign(t, nil, nil)); !errors.Is(err, apierr.Reference) {
		t.Errorf("an application without a SAML directory leads to %q, %v", to, err)
	}
}

// What a default RelayState says was signed. An error goes to its callback, and to none that nobody signed.
func TestADefaultRelayStateLeadsWhereItSays(t *testing.T) {
	l, d, mapped := newSAMLLogin(t)
	state := "s"
	organization := l.peers.Applications.NewOrganization(l.tenant.ID, l.app.ID, "acme", d.directory.ID)
	mapped.destination = &applicationapi.SAMLDestination{
		Application: l.app, State: &state, AccountStore: href.Link{Href: apiBase.To("organizations", organization)},
	}
	to, err := l.FinishSAML(t.Context(), d.directory.ID, "response", "default")
	if err != nil {
		t.Fatal(err)
	}
	_, claims, _ := assertion(t, to)
	if string(claims["state"]) != `"s"` || string(claims["org"]) != `"`+apiBase.To("organizations", organization)+`"` ||
		string(claims["irt"]) != `"_response"` || string(claims["isNewSub"]) != "false" {
		t.Errorf("the assertion says %s", claims)
	}
	l.peers.Applications.SetOrganizationStatus(id.Ref{Tenant: l.tenant.ID, ID: organization}, directoryapi.Disabled)
	if to, err = l.FinishSAML(t.Context(), d.directory.ID, "response", "default"); err != nil {
		t.Fatal(err)
	}
	if _, claims, _ := assertion(t, to); claims["err"] == nil || string(claims["irt"]) != `""` {
		t.Errorf("a disabled organization is answered %s", claims)
	}
	l.peers.Applications.Map(l.appRef())
	if to, err := l.FinishSAML(t.Context(), d.directory.ID, "response", ""); !errors.Is(err, apierr.NotMapped) {
		t.Errorf("without a RelayState the error leads to %q, %v", to, err)
	}
	mapped.destination.CallbackURI = "https://evil.test/cb"
	if to, err := l.FinishSAML(t.Context(), d.directory.ID, "response", "default"); !errors.Is(err, apierr.CallbackNotListed) {
		t.Errorf("a callback that is not listed any more leads to %q, %v", to, err)
	}
}

// A user is new where his account is, and not where it was linked to an older one.
func TestASAMLLoginSaysWhetherItsUserIsNew(t *testing.T) {
	l, d, mapped := newSAMLLogin(t)
	d.isNew = true
	login := func() string {
		t.Helper()
		to, err := l.FinishSAML(t.Context(), d.directory.ID, "response", "")
		if err != nil {
			t.Fatal(err)
		}
		_, claims, _ := assertion(t, to)
		return string(claims["isNewSub"])
	}
	if login() != "true" {
		t.Error("the login of a new account says that its user is known")
	}
	older := l.user
	older.CreatedAt = d.account.CreatedAt.Add(-time.Second)
	mapped.linked = &older
	if login() != "false" {
		t.Error("the login of an account that is linked to an older one says that its user is new")
	}
}

// A RelayState outlives the key that has signed it.
func TestARelayStateOutlivesItsKey(t *testing.T) {
	l, d, _ := newSAMLLogin(t)
	if _, err := l.authorize(t, "192.0.2.1", d, nil); err != nil {
		t.Fatal(err)
	}
	for what, relay := range map[string]string{
		"longer": d.relayState().Reveal() + "AAAA", "shorter": d.relayState().Reveal()[:70], "padded": d.relayState().Reveal() + "=",
	} {
		if to, err := l.FinishSAML(t.Context(), d.directory.ID, "response", secure.Secret(relay)); !errors.Is(err, apierr.SAMLMalformed) {
			t.Errorf("a %s RelayState leads to %q, %v", what, to, err)
		}
	}
	l.rotate(t)
	if _, err := l.FinishSAML(t.Context(), d.directory.ID, "response", d.relayState()); err != nil {
		t.Errorf("after a rotation of the keys the RelayState returned %v", err)
	}
}

// signOnLogin is a deployment that is the identity provider of a SAML service provider.
type signOnLogin struct {
	*login
	provider *asIdentityProvider
	api      *idsite.ClientAPI
}

func newSignOnLogin(t *testing.T, config ...func(*oauthapi.ClientConfig)) signOnLogin {
	t.Helper()
	s := signOnLogin{provider: &asIdentityProvider{}}
	s.login = newLogin(t, func(peers *idsite.Peers) {
		s.provider.API, s.provider.Hosted = peers.Application, peers.Application
		peers.Application = s.provider
	})
	var err error
	if s.api, err = s.OpenClientAPI(t.Context(), s.app.DNSLabel); err != nil {
		t.Fatal(err)
	}
	for _, change := range config {
		change(&s.api.Config)
	}
	return s
}

// begin brings a request of the service provider. It returns the flow, the cookie, and where the browser goes.
func (s signOnLogin) begin(t *testing.T, browser idsite.BrowserRequest) (flow string, browsers idsite.BrowserTokens, to idsite.Redirect) {
	t.Helper()
	began, err := s.api.BeginSignOn(t.Context(), "https://calm-otter.apps.localhost/saml/sso", idsite.SignOn{Request: "x"})
	if err != nil {
		t.Fatal(err)
	}
	_, token, _ := strings.Cut(began.Location, "?signOn=")
	browser.Token = secure.Secret(token)
	if to, err = s.ContinueSignOn(t.Context(), browser); err != nil {
		t.Fatal(err)
	}
	if again, err := s.ContinueSignOn(t.Context(), browser); !errors.Is(err, apierr.BadRequest) {
		t.Errorf("the second browser with the link is sent to %q, %v", again.Location, err)
	}
	claims, err := secure.UnverifiedClaims(browser.Token)
	if err != nil {
		t.Fatal(err)
	}
	return claims["flow"].(string), idsite.BrowserTokens{began.Browser}, to
}

// The answer to one application's request is not that of another one, and not that of another login.
func TestAnAnswerIsForTheRequestOfItsApplication(t *testing.T) {
	s := newSignOnLogin(t)
	other := s.peers.Applications.NewApplication(s.tenant.ID, s.user.DirectoryID)
	s.peers.Applications.SetLabel(id.Ref{Tenant: s.tenant.ID, ID: other}, "other-otter")
	otherAPI, err := s.OpenClientAPI(t.Context(), "other-otter")
	if err != nil {
		t.Fatal(err)
	}
	flow, browsers, to := s.begin(t, idsite.BrowserRequest{})
	back, err := url.Parse(s.logIn(t, s.open(t, pageOf(t, to.Location))).Redirect)
	if err != nil {
		t.Fatal(err)
	}
	jwt := secure.Secret(back.Query().Get("jwtResponse"))
	hosted, err := secure.UnverifiedClaims(pageOf(t, s.login.begin(t, nil, idsite.BrowserRequest{}).Location))
	if err != nil {
		t.Fatal(err)
	}
	for what, finish := range map[string]func() (idsite.SignOnResponse, error){
		"another application": func() (idsite.SignOnResponse, error) {
			return otherAPI.FinishSignOn(t.Context(), flow, browsers, jwt)
		},
		"a login that no service provider requested": func() (idsite.SignOnResponse, error) {
			return s.api.FinishSignOn(t.Context(), hosted["flow"].(string), browsers, jwt)
		},
		"no flow": func() (idsite.SignOnResponse, error) { return s.api.FinishSignOn(t.Context(), "x", browsers, jwt) },
		"an unknown flow": func() (idsite.SignOnResponse, error) {
			return s.api.FinishSignOn(t.Context(), id.New(s.clock.Now()).String(), browsers, jwt)
		},
	} {
		if got, err := finish(); !errors.Is(err, apierr.BadRequest) || len(s.provider.answers) > 0 {
			t.Errorf("%s gets %+v, %v", what, got, err)
		}
	}
	if _, err := s.api.FinishSignOn(t.Context(), flow, browsers, jwt); err != nil {
		t.Fatal(err)
	}
	if got, err := s.api.FinishSignOn(t.Context(), flow, browsers, jwt); !errors.Is(err, apierr.BadRequest) {
		t.Errorf("the second call gets %+v, %v", got, err)
	}
	if to, err := s.ContinueSignOn(t.Context(), idsite.BrowserRequest{Token: jwt}); !errors.Is(err, apierr.BadRequest) {
		t.Errorf("an assertion goes on as a signOn token to %q, %v", to.Location, err)
	}
	flow, browsers, _ = s.begin(t, idsite.BrowserRequest{})
	s.clock.Move(31 * time.Minute)
	if got, err := s.api.FinishSignOn(t.Context(), flow, browsers, ""); !errors.Is(err, apierr.BadRequest) {
		t.Errorf("after 30 minutes the service provider gets %+v, %v", got, err)
	}
}

// What a service provider learns of a login that did not take place.
func TestAnAnswerWithoutALoginSaysWhy(t *testing.T) {
	s := newSignOnLogin(t)
	relay := "relay"
	s.provider.relay = &relay
	finish := func(flow string, browsers idsite.BrowserTokens, jwt string) (idsite.SignOnResponse, applicationapi.SAMLAnswer) {
		t.Helper()
		got, err := s.api.FinishSignOn(t.Context(), flow, browsers, secure.Secret(jwt))
		if err != nil {
			t.Fatal(err)
		}
		return got, s.provider.answers[len(s.provider.answers)-1]
	}
	flow, browsers, _ := s.begin(t, idsite.BrowserRequest{})
	got, answer := finish(flow, browsers, "")
	if answer.Reason != saml.AuthnFailed || !answer.Account.IsZero() || answer.RequestID != "request" || *got.RelayState != relay {
		t.Errorf("a login that did not end is answered %+v with the RelayState %v", answer, got.RelayState)
	}
	s.provider.passive = true
	flow, browsers, to := s.begin(t, idsite.BrowserRequest{})
	if want := "https://calm-otter.apps.localhost/saml/sso?flow=" + flow; to.Location != want {
		t.Errorf("a passive request leads to %s, want %s", to.Location, want)
	}
	if _, answer := finish(flow, browsers, ""); answer.Reason != saml.NoPassive {
		t.Errorf("a passive request without a session is answered %+v", answer)
	}
	s.provider.passive = false
	flow, browsers, to = s.begin(t, idsite.BrowserRequest{})
	_, jwt, _ := strings.Cut(s.logIn(t, s.open(t, pageOf(t, to.Location))).Redirect, "jwtResponse=")
	s.provider.refused = true
	if _, answer := finish(flow, browsers, jwt); answer.Reason != saml.RequestDenied || !answer.Account.IsZero() {
		t.Errorf("an account that may not log in any more is answered %+v", answer)
	}
}

// A service provider has no claim by which it could ask for a second factor: the web config does.
func TestTheWebConfigDemandsTheFactorOfASignOn(t *testing.T) {
	s := newSignOnLogin(t, func(c *oauthapi.ClientConfig) { c.MFARequired, c.FactorTypes = true, []string{"sms"} })
	_, _, to := s.begin(t, idsite.BrowserRequest{})
	if answer := s.logIn(t, s.open(t, pageOf(t, to.Location))); answer.Redirect != "" {
		t.Errorf("the password alone leads to %s", answer.Redirect)
	}
}

// The state of a client is stored for each login, and its identity provider may ask it for more.
func TestTheSignOnsThatAClientBeginsAreLimited(t *testing.T) {
	s := newSignOnLogin(t)
	begin := func() error {
		_, err := s.api.BeginSignOn(t.Context(), "https://calm-otter.apps.localhost/saml/sso", idsite.SignOn{Request: "x"})
		return err
	}
	for range 200 {
		if err := begin(); err != nil {
			t.Fatal(err)
		}
	}
	if err := begin(); !errors.Is(err, apierr.TooMany) {
		t.Errorf("after 200 sign-ons the next returned %v", err)
	}
}

// A refusal of /authorize goes to the redirect URI, where the client can read it, if the application lists that.
func TestAuthorizeRefuses(t *testing.T) {
	l, d, _ := newSAMLLogin(t)
	l.app.AuthorizedCallbackURIs = []string{"https://*.example.test/cb", callback}
	l.put(l.app)
	api, err := l.OpenClientAPI(t.Context(), l.app.DNSLabel)
	if err != nil {
		t.Fatal(err)
	}
	corp := apiBase.To("directories", d.directory.ID)
	good := idsite.Authorize{ResponseType: "service_token", AccountStore: corp}
	for _, c := range []struct {
		what   string
		change func(*idsite.Authorize)
		want   string // error at the callback; "": an error of the call
	}{
		{"a redirect_uri that is not listed", func(a *idsite.Authorize) { a.RedirectURI = "https://evil.test/cb" }, ""},
		{"no response_type", func(a *idsite.Authorize) { a.ResponseType = "" }, ""},
		{"no directory", func(a *idsite.Authorize) { a.AccountStore = "" }, ""},
		{"another response_type", func(a *idsite.Authorize) { a.ResponseType = "code" }, "unsupported_response_type"},
		{"two organizations", func(a *idsite.Authorize) { a.Organization, a.NameKey = apiBase.To("organizations", l.app.ID), "acme" }, "invalid_request"},
		{"an organization that is a directory", func(a *idsite.Authorize) { a.Organization = corp }, "invalid_request"},
		{"an unknown organization", func(a *idsite.Authorize) { a.NameKey = "nobody" }, "invalid_request"},
		{"a directory that is a group", func(a *idsite.Authorize) { a.AccountStore = apiBase.To("groups", d.directory.ID) }, "invalid_request"},
		{"a cloud directory", func(a *idsite.Authorize) { a.AccountStore = apiBase.To("directories", l.user.DirectoryID) }, "invalid_request"},
		{"a directory that is not mapped", func(a *idsite.Authorize) { a.AccountStore = apiBase.To("directories", l.app.ID) }, "invalid_request"},
	} {
		in := good
		c.change(&in)
		to, _, err := api.Authorize(t.Context(), in)
		if c.want == "" && (err == nil || to != "") {
			t.Errorf("%s leads to %q, %v", c.what, to, err)
		}
		if c.want != "" && (err != nil || !strings.HasPrefix(to, callback+"?error="+c.want+"&")) {
			t.Errorf("%s leads to %q, %v; want the error %s", c.what, to, err, c.want)
		}
	}
	if len(d.begun) > 0 {
		t.Errorf("a refused login begins: %+v", d.begun)
	}
	good.RedirectURI = "https://a.example.test/cb"
	if _, _, err := api.Authorize(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	if to, err := l.FinishSAML(t.Context(), d.directory.ID, "response", d.relayState()); err != nil || !strings.HasPrefix(to, good.RedirectURI+"?") {
		t.Errorf("a listed redirect_uri comes back to %q, %v", to, err)
	}
	l.peers.Directories.SetStatus(t, d.directory, "directories", directoryapi.Disabled)
	if to, _, err := api.Authorize(t.Context(), good); err != nil || !strings.Contains(to, "?error=") {
		t.Errorf("a disabled directory leads to %q, %v", to, err)
	}
	l.app.AuthorizedCallbackURIs = []string{"https://*.example.test/cb"}
	l.put(l.app)
	if api, err = l.OpenClientAPI(t.Context(), l.app.DNSLabel); err != nil {
		t.Fatal(err)
	}
	good.RedirectURI = ""
	if to, _, err := api.Authorize(t.Context(), good); !errors.Is(err, apierr.BadRequest) {
		t.Errorf("without a callback that is one address the browser is sent to %q, %v", to, err)
	}
}

// An identity provider may answer any request once; a second request of one login has a RelayState of its own.
func TestEachRelayStateOfALoginIsAnother(t *testing.T) {
	l, d, _ := newSAMLLogin(t)
	page := l.open(t, pageOf(t, l.begin(t, nil, idsite.BrowserRequest{}).Location))
	seen := map[secure.Secret]bool{}
	for range 2 {
		if _, err := page.BeginSAML(t.Context(), l.app.ID, ""); err != nil {
			t.Fatal(err)
		}
		seen[d.relayState()] = true
	}
	if len(seen) != 2 {
		t.Errorf("two requests of one login have %d RelayStates", len(seen))
	}
}

// The last character of a RelayState has bits that no byte has: it has one spelling all the same.
func TestARelayStateHasOneSpelling(t *testing.T) {
	l, d, _ := newSAMLLogin(t)
	if _, err := l.authorize(t, "192.0.2.1", d, nil); err != nil {
		t.Fatal(err)
	}
	other := []byte(d.relayState().Reveal())
	other[len(other)-1]++ // A, Q, g or w: the next one differs in the unused bits alone
	if to, err := l.FinishSAML(t.Context(), d.directory.ID, "response", secure.Secret(other)); !errors.Is(err, apierr.SAMLMalformed) {
		t.Errorf("another spelling of the RelayState leads to %q, %v", to, err)
	}
}

// A login may name a group: its directory need not be mapped itself.
func TestASAMLLoginOfAGroupNeedsNoMappedDirectory(t *testing.T) {
	l, d, mapped := newSAMLLogin(t)
	directory, group := l.peers.Directories.NewDirectory(l.tenant.ID, "Staff"), id.New(l.clock.Now())
	if _, err := l.peers.Directories.CreateGroup(t.Context(), directoryapi.CreateGroup{
		Tenant: l.tenant.ID, ID: group, Directory: directory, Group: directoryapi.NewGroup{Name: field.Some("Staff")},
	}); err != nil {
		t.Fatal(err)
	}
	l.peers.Directories.Mirror(t, id.Ref{Tenant: l.tenant.ID, ID: directory}, "saml")
	l.peers.Applications.AddGroup(l.appRef(), group)
	mapped.destination = &applicationapi.SAMLDestination{
		Application: l.app, AccountStore: href.Link{Href: apiBase.To("groups", group)},
	}
	if to, err := l.FinishSAML(t.Context(), directory, "response", "default"); len(d.expected) != 1 {
		t.Errorf("of a login of a group %d responses were read; it leads to %q, %v", len(d.expected), to, err)
	}
}

// A login that waits for its second factor is none yet, and its request is answered once.
func TestAnAnswerIsGivenOnce(t *testing.T) {
	s := newSignOnLogin(t, func(c *oauthapi.ClientConfig) { c.MFARequired, c.FactorTypes = true, []string{"sms"} })
	flow, browsers, to := s.begin(t, idsite.BrowserRequest{})
	s.logIn(t, s.open(t, pageOf(t, to.Location)))
	if _, err := s.api.FinishSignOn(t.Context(), flow, browsers, ""); err != nil {
		t.Fatal(err)
	}
	if answer := s.provider.answers[0]; !answer.Account.IsZero() || answer.Reason != saml.AuthnFailed {
		t.Errorf("a login without its second factor is answered %+v", answer)
	}
	if got, err := s.api.FinishSignOn(t.Context(), flow, browsers, ""); !errors.Is(err, apierr.BadRequest) {
		t.Errorf("the second answer to a request is %+v, %v", got, err)
	}
}

// Only the refusal of an account is told to the service provider. Any other failure is an error, and nothing is
// signed in its place.
func TestAnAnswerThatFailsIsNoRefusal(t *testing.T) {
	for what, c := range map[string]struct {
		failure  error
		loggedIn bool
	}{
		"a login when the application service is unavailable": {apierr.Unavailable, true},
		"no login, and the service provider was deleted":      {apierr.NotFound, false},
	} {
		t.Run(what, func(t *testing.T) {
			s := newSignOnLogin(t)
			s.provider.failure = c.failure
			flow, browsers, to := s.begin(t, idsite.BrowserRequest{})
			jwt := ""
			if c.loggedIn {
				_, jwt, _ = strings.Cut(s.logIn(t, s.open(t, pageOf(t, to.Location))).Redirect, "jwtResponse=")
			}
			got, err := s.api.FinishSignOn(t.Context(), flow, browsers, secure.Secret(jwt))
			if !errors.Is(err, c.failure) || len(s.provider.answers) != 1 {
				t.Errorf("FinishSignOn returned %+v, %v after %d answers, want %v", got, err, len(s.provider.answers), c.failure)
			}
		})
	}
}

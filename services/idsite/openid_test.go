package idsite_test

import (
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite"
	"github.com/doorward/doorward/services/idsite/openid"
	oauthrules "github.com/doorward/doorward/services/oauth/openid"
	rules "github.com/doorward/doorward/services/oauth/relyingparty"
)

// party is a client of the application of a login.
type party struct {
	*testing.T
	*login
	clientID string
	client   id.ID
	issuer   string
}

const partyVerifier = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"

func newParty(t *testing.T, l *login, change func(*rules.Change)) *party {
	t.Helper()
	in := rules.Change{Name: field.Some("Party " + secure.Token(8).Reveal()), RedirectURIs: field.Some([]string{callback}),
		ApplicationType: field.Some("native"), PostLogoutRedirectURIs: field.Some([]string{callback})}
	if change != nil {
		change(&in)
	}
	c, err := l.peers.OAuth.Rules.OpenID.CreateClient(t.Context(), id.Ref{Tenant: l.tenant.ID, ID: l.app.ID}, in)
	if err != nil {
		t.Fatal(err)
	}
	return &party{t, l, c.ClientID, c.ID, apiBase.Host() + "/oidc/" + l.app.ID.String()}
}

func (p *party) parameters(changes url.Values) url.Values {
	sum := sha256.Sum256([]byte(partyVerifier))
	values := url.Values{
		"client_id": {p.clientID}, "redirect_uri": {callback}, "response_type": {"code"}, "scope": {"openid"}, "state": {"s"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}
	for name, given := range changes {
		values[name] = given
	}
	return values
}

// authorize begins a login.
func (p *party) authorize(in idsite.BrowserRequest, changes url.Values) idsite.Redirect {
	p.Helper()
	to, err := p.OpenID.Authorize(p.Context(), p.app.ID, p.parameters(changes), false, in)
	if err != nil {
		p.Fatal(err)
	}
	return to
}

// land logs the user in on the page of a login that has begun, and returns where the browser goes then, and what it
// sends from then on.
func (p *party) land(began idsite.Redirect, in idsite.BrowserRequest) (idsite.Redirect, idsite.BrowserRequest) {
	p.Helper()
	back := p.logIn(p.T, p.open(p.T, pageOf(p.T, began.Location))).Redirect
	_, response, found := strings.Cut(back, "/authorize/resume?jwtResponse=")
	if !found || !strings.HasPrefix(back, p.issuer) {
		p.Fatalf("the page redirects to %s", back)
	}
	in.Browsers, in.Token = append(in.Browsers, began.Browser), secure.Secret(response)
	landed, err := p.FinishLogin(p.Context(), in)
	if err != nil {
		p.Fatal(err)
	}
	in.Session, in.Token = landed.Session, ""
	return landed, in
}

// response reads the authorization response of a redirect.
func (p *party) response(to idsite.Redirect) url.Values {
	p.Helper()
	address, err := url.Parse(to.Location)
	if err != nil || !strings.HasPrefix(to.Location, callback) {
		p.Fatalf("the browser is redirected to %s", to.Location)
	}
	return address.Query()
}

func (p *party) wantError(code string, to idsite.Redirect) {
	p.Helper()
	if got := p.response(to); got.Get("error") != code || got.Get("code") != "" || got.Get("state") != "s" || got.Get("iss") != p.issuer {
		p.Errorf("the response is %v, want %s", got, code)
	}
}

func (p *party) wantCode(to idsite.Redirect) {
	p.Helper()
	if got := p.response(to); got.Get("code") == "" || got.Get("error") != "" {
		p.Errorf("the response is %v, want a code", got)
	}
}

func TestAnAuthorizationRequestIsAnsweredByASession(t *testing.T) {
	l := newLogin(t)
	p := newParty(t, l, nil)
	landed, in := p.land(p.authorize(idsite.BrowserRequest{}, nil), idsite.BrowserRequest{})
	p.wantCode(landed)
	p.wantCode(p.authorize(in, url.Values{"prompt": {"none"}}))
	p.wantError("login_required", p.authorize(idsite.BrowserRequest{}, url.Values{"prompt": {"none"}}))
	for _, changes := range []url.Values{{"prompt": {"login"}}, {"prompt": {"select_account"}}, {"prompt": {"create"}}} {
		path := "/#/?jwt="
		if changes.Get("prompt") == "create" {
			path = "/#/register?jwt="
		}
		if to := p.authorize(in, changes); !strings.Contains(to.Location, path) {
			t.Errorf("%v leads to %s", changes, to.Location)
		}
	}
	l.clock.Move(time.Minute)
	p.wantCode(p.authorize(in, url.Values{"max_age": {"60"}, "prompt": {"none"}}))
	l.clock.Move(time.Second)
	p.wantError("login_required", p.authorize(in, url.Values{"max_age": {"60"}, "prompt": {"none"}}))
}

// The name of the session stays where the same user proves himself again, and its cookie does not.
func TestASessionKeepsItsNameForTheSameUser(t *testing.T) {
	l := newLogin(t)
	p := newParty(t, l, nil)
	_, first := p.land(p.authorize(idsite.BrowserRequest{}, nil), idsite.BrowserRequest{})
	name := p.sessions()
	_, second := p.land(p.authorize(first, url.Values{"prompt": {"login"}}), first)
	if again := p.sessions(); len(name) != 1 || !slices.Equal(name, again) || second.Session == first.Session {
		t.Errorf("the sessions are %v and %v, the cookies %q and %q", name, again, first.Session, second.Session)
	}
}

func (p *party) sessions() (names []id.ID) {
	p.Helper()
	page, err := p.Journey.ListSessions(p.Context(), p.userRef(), list.Query{Limit: 25})
	if err != nil {
		p.Fatal(err)
	}
	for _, s := range page.Items {
		names = append(names, s.SessionID)
	}
	return names
}

func TestALoginOfAnotherBrowserHasNoAnswer(t *testing.T) {
	l := newLogin(t)
	p := newParty(t, l, nil)
	began := p.authorize(idsite.BrowserRequest{}, nil)
	back := p.logIn(t, p.open(t, pageOf(t, began.Location))).Redirect
	_, response, _ := strings.Cut(back, "jwtResponse=")
	for what, browsers := range map[string]idsite.BrowserTokens{"none": nil, "another": {secure.Token(32)}} {
		in := idsite.BrowserRequest{Token: secure.Secret(response), Browsers: browsers}
		if to, err := l.FinishLogin(t.Context(), in); err == nil || to.Session != "" || to.Location != "" {
			t.Errorf("with %s cookie FinishLogin returned %+v, %v", what, to, err)
		}
	}
	in := idsite.BrowserRequest{Token: secure.Secret(response), Browsers: idsite.BrowserTokens{began.Browser}}
	to, err := l.FinishLogin(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	p.wantCode(to)
	if to, err := l.FinishLogin(t.Context(), in); err == nil {
		t.Errorf("the second use of an assertion returned %+v", to)
	}
}

// Of fifty answers to one consent page one gives a code.
func TestAConsentIsGivenOnce(t *testing.T) {
	l := newLogin(t)
	p := newParty(t, l, func(in *rules.Change) { in.Consent = field.Some("REQUIRED") })
	began := p.authorize(idsite.BrowserRequest{}, nil)
	landed, in := p.land(began, idsite.BrowserRequest{})
	flow := p.flowOf(landed)
	asked, err := l.OpenID.Consent(t.Context(), l.app.ID, flow, in)
	if err != nil || asked.Client.ClientID != p.clientID || len(asked.Scopes) != 1 || asked.Login != l.user.Username {
		t.Fatalf("the page shows %+v, %v", asked, err)
	}
	if _, err := l.OpenID.Decide(t.Context(), l.app.ID, flow, true, "x", in); apierr.From(err).Status != 403 {
		t.Errorf("a form without its secret returned %v", err)
	}
	var codes, refusals sync.Map
	var wait sync.WaitGroup
	for i := range 50 {
		wait.Go(func() {
			to, err := l.OpenID.Decide(t.Context(), l.app.ID, flow, true, asked.Secret, in)
			if err != nil {
				refusals.Store(i, err)
				return
			}
			codes.Store(i, to)
		})
	}
	wait.Wait()
	count := 0
	codes.Range(func(_, to any) bool { count++; p.wantCode(to.(idsite.Redirect)); return true })
	refusals.Range(func(_, err any) bool {
		if apierr.From(err.(error)).Status != 400 {
			t.Errorf("a second answer returned %v", err)
		}
		return true
	})
	if count != 1 {
		t.Errorf("%d of 50 answers gave a code", count)
	}
	p.wantCode(p.authorize(in, url.Values{"prompt": {"none"}}))
	again := p.authorize(in, url.Values{"prompt": {"consent"}})
	in.Browsers = append(in.Browsers, again.Browser)
	if asked, err = l.OpenID.Consent(t.Context(), l.app.ID, p.flowOf(again), in); err != nil {
		t.Fatal(err)
	}
	refused, err := l.OpenID.Decide(t.Context(), l.app.ID, p.flowOf(again), false, asked.Secret, in)
	if err != nil {
		t.Fatal(err)
	}
	p.wantError("access_denied", refused)

	given, err := l.Journey.ListConsents(t.Context(), l.userRef(), list.Query{Limit: 25})
	if err != nil || len(given.Items) != 1 {
		t.Fatalf("the consents are %v, %v", given, err)
	}
	if err := l.Journey.DeleteConsent(t.Context(), id.Ref{Tenant: l.tenant.ID, ID: given.Items[0].ID}); err != nil {
		t.Fatal(err)
	}
	p.wantError("consent_required", p.authorize(in, url.Values{"prompt": {"none"}}))
}

// flowOf is the login whose consent page a browser is redirected to.
func (p *party) flowOf(to idsite.Redirect) id.ID {
	p.Helper()
	text, found := strings.CutPrefix(to.Location, p.issuer+"/consent?flow=")
	flow, err := id.Parse(text)
	if !found || err != nil {
		p.Fatalf("the browser is redirected to %s", to.Location)
	}
	return flow
}

func TestASecondFactorIsDemandedByAcrValues(t *testing.T) {
	l := newLogin(t)
	p := newParty(t, l, nil)
	_, in := p.land(p.authorize(idsite.BrowserRequest{}, nil), idsite.BrowserRequest{})
	if to := p.authorize(in, url.Values{"acr_values": {"urn:doorward:acr:mfa"}}); !strings.Contains(to.Location, "/#/?jwt=") {
		t.Errorf("a session without a factor leads to %s", to.Location)
	}
	p.wantError("login_required", p.authorize(in, url.Values{"acr_values": {"urn:doorward:acr:mfa"}, "prompt": {"none"}}))
	p.wantCode(p.authorize(in, url.Values{"acr_values": {"urn:doorward:acr:password urn:doorward:acr:mfa"}, "prompt": {"none"}}))
	p.wantCode(p.authorize(in, url.Values{"acr_values": {"urn:unknown"}, "prompt": {"none"}}))
}

func TestAFormOfAnotherSiteGoesOnByARedirect(t *testing.T) {
	l := newLogin(t)
	p := newParty(t, l, nil)
	_, in := p.land(p.authorize(idsite.BrowserRequest{}, nil), idsite.BrowserRequest{})
	to, err := l.OpenID.Authorize(t.Context(), l.app.ID, p.parameters(nil), true, idsite.BrowserRequest{})
	text, found := strings.CutPrefix(to.Location, p.issuer+"/authorize/begin?flow=")
	flow, malformed := id.Parse(text)
	if err != nil || !found || malformed != nil {
		t.Fatalf("the form leads to %+v, %v", to, err)
	}
	if _, err := l.OpenID.Begin(t.Context(), l.app.ID, flow, in); err == nil {
		t.Error("another browser goes on with the form")
	}
	in.Browsers = append(in.Browsers, to.Browser)
	begun, err := l.OpenID.Begin(t.Context(), l.app.ID, flow, in)
	if err != nil {
		t.Fatal(err)
	}
	p.wantCode(begun)
	if again, err := l.OpenID.Begin(t.Context(), l.app.ID, flow, in); err == nil {
		t.Errorf("the second begin returned %+v", again)
	}
}

func TestALoginThatIsCancelledOrLateIsRefused(t *testing.T) {
	l := newLogin(t)
	p := newParty(t, l, nil)
	began := p.authorize(idsite.BrowserRequest{}, nil)
	page := p.open(t, pageOf(t, began.Location))
	answer, err := page.Cancel(l.app.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := page.Cancel(id.New(l.clock.Now())); apierr.From(err).Status != 403 {
		t.Errorf("the cancel of another application returned %v", err)
	}
	resume := func(address string, browser secure.Secret) (idsite.Redirect, error) {
		flow, err := id.Parse(address[strings.LastIndexByte(address, '=')+1:])
		if err != nil {
			t.Fatal(err)
		}
		return l.OpenID.Resume(t.Context(), l.app.ID, flow, idsite.BrowserRequest{Browsers: idsite.BrowserTokens{browser}})
	}
	if _, err := resume(answer.Redirect, secure.Token(32)); err == nil {
		t.Error("another browser cancels the login")
	}
	to, err := resume(answer.Redirect, began.Browser)
	if err != nil {
		t.Fatal(err)
	}
	p.wantError("access_denied", to)
	if to, err := resume(answer.Redirect, began.Browser); err == nil {
		t.Errorf("the second cancel returned %+v", to)
	}

	began = p.authorize(idsite.BrowserRequest{}, nil)
	token := pageOf(t, began.Location)
	l.clock.Move(30 * time.Minute)
	_, back, err := l.OpenPageAPI(t.Context(), token)
	if apierr.From(err).Code != apierr.SessionTimedOut.Code || !strings.HasPrefix(back, p.issuer+"/authorize/resume?flow=") {
		t.Fatalf("a late page is answered with %q, %v", back, err)
	}
	if to, err = resume(back, began.Browser); err != nil {
		t.Fatal(err)
	}
	p.wantError("access_denied", to)
}

func TestALogoutWithoutAHintIsAsked(t *testing.T) {
	l := newLogin(t)
	p := newParty(t, l, nil)
	_, in := p.land(p.authorize(idsite.BrowserRequest{}, nil), idsite.BrowserRequest{})
	ask := func(secret secure.Secret) openid.Logout {
		out, err := l.OpenID.Logout(t.Context(), l.app.ID, url.Values{"client_id": {p.clientID}}, secret, in)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	question := ask("")
	if !question.Asks || question.Secret == "" || len(p.sessions()) != 1 {
		t.Fatalf("a logout without a hint is answered with %+v", question)
	}
	if again := ask("x"); !again.Asks || len(p.sessions()) != 1 {
		t.Errorf("a wrong secret is answered with %+v", again)
	}
	if done := ask(question.Secret); done.Asks || len(p.sessions()) != 0 {
		t.Errorf("the answer to the question is answered with %+v", done)
	}
}

func TestASessionEndsWithItsDeletion(t *testing.T) {
	l := newLogin(t)
	p := newParty(t, l, nil)
	_, in := p.land(p.authorize(idsite.BrowserRequest{}, nil), idsite.BrowserRequest{})
	name := p.sessions()[0]
	stranger := id.Ref{Tenant: id.New(l.clock.Now()), ID: name}
	if err := l.Journey.DeleteSession(t.Context(), stranger); apierr.From(err).Status != 404 {
		t.Errorf("another tenant's delete returned %v", err)
	}
	s, err := l.Journey.Session(t.Context(), id.Ref{Tenant: l.tenant.ID, ID: name})
	if err != nil || !slices.Contains(s.Clients, p.client) {
		t.Errorf("the session is %+v, %v", s, err)
	}
	if err := l.Journey.DeleteSession(t.Context(), id.Ref{Tenant: l.tenant.ID, ID: name}); err != nil {
		t.Fatal(err)
	}
	p.wantError("login_required", p.authorize(in, url.Values{"prompt": {"none"}}))
	if left := p.sessions(); len(left) != 0 {
		t.Errorf("after the deletion the sessions are %v", left)
	}
}

// A device's client is told of the end of the session in which it was allowed, and a login that has begun in a session
// does not go on when that has ended.
func TestTheEndOfASessionReachesDevicesAndLoginsInProgress(t *testing.T) {
	l := newLogin(t)
	p := newParty(t, l, func(in *rules.Change) { in.Consent = field.Some(rules.ConsentRequired) })
	device := newParty(t, l, func(in *rules.Change) { in.GrantTypes = field.Some([]string{rules.GrantDevice}) })
	decide := func(to idsite.Redirect, in idsite.BrowserRequest) idsite.Redirect {
		t.Helper()
		flow := p.flowOf(to)
		asked, err := l.OpenID.Consent(t.Context(), l.app.ID, flow, in)
		if err != nil {
			t.Fatal(err)
		}
		done, err := l.OpenID.Decide(t.Context(), l.app.ID, flow, true, asked.Secret, in)
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	code, err := l.peers.OAuth.Rules.AuthorizeDevice(t.Context(), oauthrules.Call{Application: l.app.ID,
		Form: oauthrules.Form{"client_id": secure.Secret(device.clientID)}})
	if err != nil {
		t.Fatal(err)
	}
	began, err := l.OpenID.BeginDevice(t.Context(), l.app.ID, code.UserCode, idsite.BrowserRequest{})
	if err != nil {
		t.Fatal(err)
	}
	landed, in := p.land(began, idsite.BrowserRequest{})
	if to := decide(landed, in); !strings.HasSuffix(to.Location, "/device?done=allowed") {
		t.Fatalf("the device leads to %s", to.Location)
	}
	waiting := p.authorize(in, nil)
	in.Browsers = append(in.Browsers, waiting.Browser)
	if err := l.Journey.DeleteSession(t.Context(), id.Ref{Tenant: l.tenant.ID, ID: p.sessions()[0]}); err != nil {
		t.Fatal(err)
	}
	if ends := l.ended(t); len(ends) != 1 || !slices.Equal(ends[0].Clients, []id.ID{device.client}) {
		t.Errorf("the ends are %+v, want the client %s", ends, device.client)
	}
	p.wantError("login_required", decide(waiting, in))
}

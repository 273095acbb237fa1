package e2e_test

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/doorward/doorward/deploy/e2e"
)

// relyingParty is an OpenID client of an application, as its developer has registered it.
type relyingParty struct {
	*testing.T
	e2e.Fixture
	issuer   string
	client   e2e.Object
	secret   string
	redirect string
	verifier string
}

// newRelyingParty registers a client of an application.
func newRelyingParty(t *testing.T, fixture e2e.Fixture, changes e2e.Object) *relyingParty {
	t.Helper()
	p := &relyingParty{T: t, Fixture: fixture, redirect: callback, verifier: rand.Text() + rand.Text()}
	p.issuer = client.Key.HostURL() + "/oidc/" + fixture.Application.ID()
	body := e2e.Object{"name": e2e.Unique("party"), "redirectUris": []string{callback},
		"postLogoutRedirectUris": []string{"https://shop.localhost/bye"}}
	for name, value := range changes {
		body[name] = value
	}
	p.client = client.Create(t, fixture.Application.Link(t, "openIdClients"), body)
	if strings.HasPrefix(p.client.Text("tokenEndpointAuthMethod"), "client_secret") {
		p.secret = client.Create(t, p.client.Href()+"/secrets", e2e.Object{}).Text("secret")
	}
	return p
}

// request is an authorization request; a change to "" leaves a parameter out.
func (p *relyingParty) request(changes url.Values) string {
	sum := sha256.Sum256([]byte(p.verifier))
	values := url.Values{
		"client_id": {p.client.Text("clientId")}, "redirect_uri": {p.redirect}, "response_type": {"code"},
		"scope": {"openid email profile"}, "state": {"a b~?ü&=#"}, "nonce": {"n-" + p.verifier},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}
	for name, given := range changes {
		values[name] = given
		if len(given) == 1 && given[0] == "" {
			values.Del(name)
		}
	}
	return p.issuer + "/authorize?" + values.Encode()
}

// asBrowser is a request for a page.
func asBrowser(address string) e2e.Request {
	r := get(address)
	r.Header = http.Header{"Accept": {"text/html"}}
	return r
}

// authorize begins a login, and returns where the browser is sent.
func (p *relyingParty) authorize(browser *e2e.Client, changes url.Values) string {
	p.Helper()
	return browser.Want(p.T, http.StatusSeeOther, asBrowser(p.request(changes))).Header.Get("Location")
}

// page is the hosted page to which the browser was sent.
func (p *relyingParty) page(browser *e2e.Client, location string) *hostedPage {
	p.Helper()
	before, token, found := strings.Cut(location, "?jwt=")
	if !found || !strings.HasPrefix(before, pageOrigin(p.T)+"/#/") {
		p.Fatalf("the browser is sent to %s", location)
	}
	return &hostedPage{T: p.T, browser: browser, app: p.Application, token: token}
}

// signIn logs an account in by a password, and returns where the browser goes after it.
func (p *relyingParty) signIn(browser *e2e.Client, login string, changes url.Values) string {
	p.Helper()
	page := p.page(browser, p.authorize(browser, changes))
	page.logIn(login)
	_, assertion, found := strings.Cut(page.back, "?jwtResponse=")
	if !found || !strings.HasPrefix(page.back, p.issuer+"/authorize/resume") {
		p.Fatalf("the page sends the browser to %s", page.back)
	}
	landing := client.Key.HostURL() + "/sso/?jwtResponse=" + assertion
	answer := browser.Call(p.T, asBrowser(landing))
	if answer.Status != http.StatusFound && answer.Status != http.StatusSeeOther {
		p.Fatal(answer)
	}
	return answer.Header.Get("Location")
}

// answer reads an authorization response.
func (p *relyingParty) answer(location string) url.Values {
	p.Helper()
	to, err := url.Parse(location)
	if err != nil || !strings.HasPrefix(location, p.redirect+"?") {
		p.Fatalf("the browser is sent to %s", location)
	}
	values := to.Query()
	if values.Get("iss") != p.issuer || values.Get("state") != "a b~?ü&=#" {
		p.Errorf("the response is %v", values)
	}
	return values
}

// exchange sends a code to the token endpoint.
func (p *relyingParty) exchange(code string, changes url.Values) e2e.Request {
	form := url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {p.redirect}, "code_verifier": {p.verifier},
	}
	for name, given := range changes {
		form[name] = given
	}
	return p.call("/token", form)
}

// call is a call of an endpoint with the secret of the client.
func (p *relyingParty) call(path string, form url.Values) e2e.Request {
	r := e2e.Post(p.issuer+path, form)
	r.Anonymous = true
	r.Header = http.Header{"Authorization": {"Basic " + base64.StdEncoding.EncodeToString(
		[]byte(p.client.Text("clientId")+":"+p.secret))}}
	return r
}

// tokens exchanges the code of a response.
func (p *relyingParty) tokens(location string) e2e.Object {
	p.Helper()
	code := p.answer(location).Get("code")
	if code == "" {
		p.Fatalf("the response is %s", location)
	}
	return client.WantObject(p.T, http.StatusOK, p.exchange(code, nil))
}

func TestAnAuthorizationRequest(t *testing.T) {
	fixture := newHosted(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	party := newRelyingParty(t, fixture, nil)
	browser := client.Browser()
	first := party.tokens(party.signIn(browser, account.Text("email"), nil))
	claims := e2e.Claims(t, first.Text("id_token"))
	if claims.Text("sub") != account.ID() || claims.Text("nonce") != "n-"+party.verifier || claims.Text("sid") == "" ||
		claims.Text("acr") != "urn:doorward:acr:password" || claims["email"] != nil {
		t.Errorf("the claims of the ID token are %v", claims)
	}
	userinfo := get(party.issuer + "/userinfo")
	userinfo.Anonymous, userinfo.Header = true, http.Header{"Authorization": {"Bearer " + first.Text("access_token")}}
	if info := client.WantObject(t, http.StatusOK, userinfo); info.Text("sub") != account.ID() || info.Text("email") != account.Text("email") {
		t.Errorf("UserInfo answers %v", info)
	}

	t.Run("by a session needs no page", func(t *testing.T) {
		p := *party
		p.T = t
		again := e2e.Claims(t, p.tokens(p.authorize(browser, url.Values{"prompt": {"none"}})).Text("id_token"))
		if again.Text("sub") != account.ID() || again["auth_time"] != claims["auth_time"] || again.Text("sid") != claims.Text("sid") {
			t.Errorf("the claims are %v, before %v", again, claims)
		}
		hinted := p.answer(p.authorize(browser, url.Values{"prompt": {"none"}, "id_token_hint": {first.Text("id_token")}}))
		if hinted.Get("code") == "" {
			t.Errorf("with a hint of the same user the response is %v", hinted)
		}
	})
	t.Run("without a session and without a page is refused", func(t *testing.T) {
		p := *party
		p.T = t
		if got := p.answer(p.authorize(client.Browser(), url.Values{"prompt": {"none"}})); got.Get("error") != "login_required" {
			t.Errorf("the response is %v", got)
		}
	})
	t.Run("that wants the user again shows the page", func(t *testing.T) {
		p := *party
		p.T = t
		p.page(browser, p.authorize(browser, url.Values{"prompt": {"login"}}))
		p.page(browser, p.authorize(browser, url.Values{"max_age": {"0"}}))
		if got := p.answer(p.authorize(browser, url.Values{"max_age": {"10000"}})); got.Get("code") == "" {
			t.Errorf("with an age that is not reached the response is %v", got)
		}
	})
	t.Run("by a form of another site uses the session by a redirect", func(t *testing.T) {
		p := *party
		p.T = t
		address, query, _ := strings.Cut(p.request(nil), "?")
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		post := e2e.Post(address, values)
		post.Header = http.Header{"Accept": {"text/html"}, "Origin": {"https://shop.localhost"}}
		begin := browser.Want(t, http.StatusSeeOther, post).Header.Get("Location")
		if strings.Contains(begin, "state") || strings.Contains(begin, "nonce") {
			t.Errorf("the browser is sent to %s", begin)
		}
		if got := p.answer(browser.Want(t, http.StatusSeeOther, asBrowser(begin)).Header.Get("Location")); got.Get("code") == "" {
			t.Errorf("the response is %v", got)
		}
	})
	t.Run("of a wrong client or address is answered by a page", func(t *testing.T) {
		for _, changes := range []url.Values{
			{"client_id": {"unknown"}}, {"client_id": {""}}, {"redirect_uri": {"https://evil.test/"}},
			{"redirect_uri": {callback + "/"}}, {"redirect_uri": {callback + "?a=b"}}, {"redirect_uri": {""}},
			{"redirect_uri": {callback, callback}}, {"redirect_uri": {"https://SHOP.localhost/callback"}},
		} {
			answer := browser.Want(t, http.StatusBadRequest, asBrowser(party.request(changes)))
			if answer.Header.Get("Location") != "" || !strings.Contains(string(answer.Body), "<h1>") {
				t.Errorf("%v: %s", changes, answer)
			}
		}
	})
	t.Run("that is wrong otherwise is answered to the client", func(t *testing.T) {
		p := *party
		p.T = t
		for code, changes := range map[string]url.Values{
			"unsupported_response_type": {"response_type": {"token"}},
			"invalid_request":           {"code_challenge": {""}},
			"request_not_supported":     {"request": {"eyJhbGciOiJub25lIn0.e30."}},
		} {
			if got := p.answer(p.authorize(browser, changes)); got.Get("error") != code {
				t.Errorf("%v: the response is %v", changes, got)
			}
		}
	})
	t.Run("goes on only in the browser that began it", func(t *testing.T) {
		p := *party
		p.T = t
		page := p.page(browser, p.authorize(browser, url.Values{"prompt": {"login"}}))
		page.logIn(account.Text("email"))
		stranger := client.Browser().Want(t, http.StatusBadRequest, asBrowser(page.back))
		if stranger.Header.Get("Set-Cookie") != "" || stranger.Header.Get("Location") != "" {
			t.Errorf("another browser gets %v", stranger.Header)
		}
		_, assertion, _ := strings.Cut(page.back, "jwtResponse=")
		client.Refused(t, 400, 10014, exchange(fixture.Application, assertion))
	})
}

// Resource servers and front ends that know the tokens of an application take those of its first-party clients too: one
// that is bound to a key with its proof alone.
func TestTokensOfAClientAreGoodForTheApplicationsOwnServers(t *testing.T) {
	fixture := newHosted(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	config := client.Get(t, fixture.Application.Link(t, "webConfig"))
	me := client.Key.HostURL() + "/client/" + config.Text("dnsLabel") + "/me"
	validation := func(token string) string { return fixture.Application.Href() + "/authTokens/" + token }
	party := newRelyingParty(t, fixture, nil)
	token := party.tokens(party.signIn(client.Browser(), account.Text("email"), nil)).Text("access_token")
	resource := client.Want(t, http.StatusFound, get(validation(token))).Header.Get("Location")
	if got := client.Get(t, resource); got.Object("account").Href() != account.Href() {
		t.Errorf("the token is %v", got)
	}
	asUser := get(me)
	asUser.Anonymous, asUser.Header = true, http.Header{"Authorization": {"Bearer " + token}}
	if got := client.WantObject(t, http.StatusOK, asUser); got.Object("account").Text("email") != account.Text("email") {
		t.Errorf("the account is %v", got)
	}

	bound := newFAPIParty(t, fixture, account)
	token = client.WantObject(t, http.StatusOK, bound.redeem(bound.code(client.Browser()), nil)).Text("access_token")
	client.Refused(t, 400, 10017, get(validation(token)))
	proved := get(validation(token))
	proved.Header = http.Header{"DPoP": {bound.proof("GET", validation(token), token, nil, nil)}}
	client.Want(t, http.StatusFound, proved)
	asUser.Header = http.Header{"Authorization": {"Bearer " + token}}
	client.Want(t, http.StatusUnauthorized, asUser)
	asUser.Header = http.Header{"Authorization": {"DPoP " + token}, "DPoP": {bound.proof("GET", me, token, nil, nil)}}
	client.Want(t, http.StatusOK, asUser)
}

func TestAnAuthorizationResponseByForm(t *testing.T) {
	fixture := newHosted(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	party, browser := newRelyingParty(t, fixture, nil), client.Browser()
	party.signIn(browser, account.Text("email"), nil)
	answer := browser.Want(t, http.StatusOK, asBrowser(party.request(url.Values{"response_mode": {"form_post"}})))
	body := string(answer.Body)
	if !strings.Contains(body, `action="`+callback+`"`) || !regexp.MustCompile(`name="code" value="[^"]{20,}"`).MatchString(body) ||
		!strings.Contains(body, `name="state" value="a b~?ü&amp;=#"`) || answer.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("the page is %s under %v", body, answer.Header)
	}
}

func TestAUserCancelsALogin(t *testing.T) {
	fixture := newHosted(t)
	party, browser := newRelyingParty(t, fixture, nil), client.Browser()
	page := party.page(browser, party.authorize(browser, nil))
	page.call(http.StatusNoContent, http.MethodPost, fixture.Application.Link(t, "loginAttempts")+"/cancel", nil)
	back := browser.Want(t, http.StatusSeeOther, asBrowser(page.back)).Header.Get("Location")
	if got := party.answer(back); got.Get("error") != "access_denied" || got.Get("code") != "" {
		t.Errorf("the response is %v", got)
	}
	browser.Want(t, http.StatusBadRequest, asBrowser(page.back))
	other := begin(t, client.Browser(), fixture.Application, nil, "/")
	other.refused(403, 403, http.MethodPost, fixture.Application.Link(t, "loginAttempts")+"/cancel", nil)
}

var formSecret = regexp.MustCompile(`name="secret" value="([^"]+)"`)

func TestAUserIsAskedForConsent(t *testing.T) {
	fixture := newHosted(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	party, browser := newRelyingParty(t, fixture, e2e.Object{"consent": "REQUIRED"}), client.Browser()
	consent := party.signIn(browser, account.Text("email"), nil)
	if !strings.HasPrefix(consent, party.issuer+"/consent?flow=") {
		t.Fatalf("the browser is sent to %s", consent)
	}
	page := string(browser.Want(t, http.StatusOK, asBrowser(consent)).Body)
	for _, text := range []string{party.client.Text("name"), `name="allow"`, `name="cancel"`, "email address", account.Text("email")} {
		if !strings.Contains(page, text) {
			t.Errorf("the consent page lacks %q: %s", text, page)
		}
	}
	decide := func(form url.Values, origin string) e2e.Request {
		post := e2e.Post(consent, form)
		post.Header = http.Header{"Accept": {"text/html"}, "Origin": {origin}}
		return post
	}
	secret := formSecret.FindStringSubmatch(page)[1]
	browser.Want(t, http.StatusForbidden, decide(url.Values{"allow": {"true"}, "secret": {secret}}, "https://evil.test"))
	browser.Want(t, http.StatusForbidden, decide(url.Values{"allow": {"true"}}, client.Key.HostURL()))
	client.Browser().Want(t, http.StatusBadRequest, decide(url.Values{"allow": {"true"}, "secret": {secret}}, client.Key.HostURL()))
	allowed := browser.Want(t, http.StatusSeeOther, decide(url.Values{"allow": {"true"}, "secret": {secret}}, client.Key.HostURL()))
	tokens := party.tokens(allowed.Header.Get("Location"))
	browser.Want(t, http.StatusBadRequest, decide(url.Values{"allow": {"true"}, "secret": {secret}}, client.Key.HostURL()))

	if got := party.answer(party.authorize(browser, url.Values{"prompt": {"none"}})); got.Get("code") == "" {
		t.Errorf("after the consent the response is %v", got)
	}
	again := party.authorize(browser, url.Values{"prompt": {"consent"}})
	if !strings.HasPrefix(again, party.issuer+"/consent?flow=") {
		t.Errorf("a request for consent leads to %s", again)
	}
	given := client.All(t, account.Href()+"/consents")
	if len(given) != 1 || given[0].Object("client").Href() != party.client.Href() {
		t.Fatalf("the consents are %v", given)
	}
	client.Delete(t, given[0].Href())
	if got := party.answer(party.authorize(browser, url.Values{"prompt": {"none"}})); got.Get("error") != "consent_required" {
		t.Errorf("without the consent the response is %v", got)
	}
	awaitTrue(t, "the tokens to end", func() bool {
		r := get(party.issuer + "/userinfo")
		r.Anonymous, r.Header = true, http.Header{"Authorization": {"Bearer " + tokens.Text("access_token")}}
		return client.Call(t, r).Status == http.StatusUnauthorized
	})
}

func TestSessionsAreListedAndEnd(t *testing.T) {
	fixture := newHosted(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	party := newRelyingParty(t, fixture, e2e.Object{"applicationType": "native"})
	browsers := []*e2e.Client{client.Browser(), client.Browser()}
	var tokens []e2e.Object
	for _, browser := range browsers {
		code := party.answer(party.signIn(browser, account.Text("email"), nil)).Get("code")
		form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {party.redirect},
			"code_verifier": {party.verifier}, "client_id": {party.client.Text("clientId")}}
		r := e2e.Post(party.issuer+"/token", form)
		r.Anonymous = true
		tokens = append(tokens, client.WantObject(t, http.StatusOK, r))
	}
	sessions := client.All(t, account.Href()+"/sessions")
	if len(sessions) != 2 || len(sessions[0].Objects("clients")) != 1 || sessions[0].Text("remoteAddress") == "" {
		t.Fatalf("the sessions are %v", sessions)
	}
	sid := e2e.Claims(t, tokens[0].Text("id_token")).Text("sid")
	client.Delete(t, "/sessions/"+sid)
	if got := party.answer(party.authorize(browsers[0], url.Values{"prompt": {"none"}})); got.Get("error") != "login_required" {
		t.Errorf("after the end the response is %v", got)
	}
	refresh := func(token e2e.Object) e2e.Request {
		r := e2e.Post(party.issuer+"/token", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token.Text("refresh_token")},
			"client_id": {party.client.Text("clientId")}})
		r.Anonymous = true
		return r
	}
	if answer := client.Want(t, http.StatusBadRequest, refresh(tokens[0])); !strings.Contains(string(answer.Body), "invalid_grant") {
		t.Error(answer)
	}
	client.Want(t, http.StatusOK, refresh(tokens[1]))
	client.Delete(t, account.Href()+"/sessions")
	if left := client.All(t, account.Href()+"/sessions"); len(left) != 0 {
		t.Errorf("after the end of all the sessions are %v", left)
	}
}

func TestAClientLogsAUserOut(t *testing.T) {
	fixture := newHosted(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	party := newRelyingParty(t, fixture, nil)
	state := "~!@#$%^&*()_+{}|:\"<>?`-=[];',./ü" + strings.Repeat("s", 128)
	logout := func(values url.Values) e2e.Request { return asBrowser(party.issuer + "/logout?" + values.Encode()) }
	for name, c := range map[string]struct {
		values   func(hint string) url.Values
		status   int
		location string
		ends     bool
	}{
		"with a hint and an address": {func(hint string) url.Values {
			return url.Values{"id_token_hint": {hint}, "post_logout_redirect_uri": {"https://shop.localhost/bye"}, "state": {state}}
		}, http.StatusSeeOther, "https://shop.localhost/bye?state=" + url.QueryEscape(state), true},
		"without a state": {func(hint string) url.Values {
			return url.Values{"id_token_hint": {hint}, "post_logout_redirect_uri": {"https://shop.localhost/bye"}}
		}, http.StatusSeeOther, "https://shop.localhost/bye", true},
		"with a hint alone": {func(hint string) url.Values { return url.Values{"id_token_hint": {hint}} }, http.StatusOK, "", true},
		"to another address": {func(hint string) url.Values {
			return url.Values{"id_token_hint": {hint}, "post_logout_redirect_uri": {"https://evil.test/"}}
		}, http.StatusBadRequest, "", false},
		"to an address with a query": {func(hint string) url.Values {
			return url.Values{"id_token_hint": {hint}, "post_logout_redirect_uri": {"https://shop.localhost/bye?foo=bar"}}
		}, http.StatusBadRequest, "", false},
		"with a changed hint": {func(hint string) url.Values { return url.Values{"id_token_hint": {hint + "x"}} }, http.StatusBadRequest, "", false},
		"with an unsigned hint": {func(hint string) url.Values {
			parts := strings.Split(hint, ".")
			return url.Values{"id_token_hint": {"eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0." + parts[1] + "."}}
		}, http.StatusBadRequest, "", false},
		"with an address and no hint": {func(string) url.Values {
			return url.Values{"post_logout_redirect_uri": {"https://shop.localhost/bye"}, "state": {state}}
		}, http.StatusBadRequest, "", false},
		"without parameters": {func(string) url.Values { return nil }, http.StatusOK, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			p, browser := *party, client.Browser()
			p.T = t
			tokens := p.tokens(p.signIn(browser, account.Text("email"), nil))
			answer := browser.Want(t, c.status, logout(c.values(tokens.Text("id_token"))))
			if got := answer.Header.Get("Location"); got != c.location {
				t.Errorf("the browser is sent to %s, want %s", got, c.location)
			}
			want := ""
			if c.ends {
				want = "login_required"
			}
			if got := p.answer(p.authorize(browser, url.Values{"prompt": {"none"}})); got.Get("error") != want {
				t.Errorf("after it the response is %v", got)
			}
		})
	}
	t.Run("without a hint asks the user", func(t *testing.T) {
		p, browser := *party, client.Browser()
		p.T = t
		p.signIn(browser, account.Text("email"), nil)
		page := string(browser.Want(t, http.StatusOK, logout(url.Values{"state": {"x"}})).Body)
		if !strings.Contains(page, `name="logout"`) {
			t.Fatalf("the page is %s", page)
		}
		post := e2e.Post(p.issuer+"/logout", url.Values{"logout": {"true"}, "secret": {formSecret.FindStringSubmatch(page)[1]}})
		post.Header = http.Header{"Accept": {"text/html"}, "Origin": {client.Key.HostURL()}}
		browser.Want(t, http.StatusOK, post)
		if got := p.answer(p.authorize(browser, url.Values{"prompt": {"none"}})); got.Get("error") != "login_required" {
			t.Errorf("after it the response is %v", got)
		}
	})
}

// The pages work under their Content-Security-Policy, which browsers apply to what follows a form too.
func TestABrowserAllowsAClient(t *testing.T) {
	s := newShop(t)
	account := client.Register(t, s.Application.Link(t, "accounts"))
	party := newRelyingParty(t, s.Fixture, e2e.Object{"consent": "REQUIRED", "redirectUris": []string{s.callback}})
	party.redirect = s.callback
	b := openBrowser(t)
	b.open(party.request(nil))
	b.signIn(account.Text("email"), e2e.Password)
	b.awaitTrue("document.querySelector('button[name=allow]') !== null")
	b.do(chromedp.Click(chromedp.CSS("button[name=allow]")))
	b.awaitHeading("Welcome back")
	address, err := evaluate[string](b, "location.href")
	if err != nil {
		t.Fatal(err)
	}
	party.tokens(address)
	b.open(party.issuer + "/logout")
	b.do(chromedp.Click(chromedp.CSS("button[name=logout]")))
	b.awaitHeading("You are signed out")
	b.open(party.request(nil))
	b.awaitHeading("Sign in")
	b.do(chromedp.Click(chromedp.CSS("button[name=cancel]")))
	b.awaitHeading("Welcome back")
}

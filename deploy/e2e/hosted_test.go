package e2e_test

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
)

const (
	callback       = "https://shop.localhost/callback"
	redirectHeader = "Service-Sso-Redirect-Location"
)

// newHosted is a site whose application takes answers of a hosted login at the
// callback.
func newHosted(t *testing.T) e2e.Site {
	t.Helper()
	site := client.NewSite(t)
	site.Application = authorize(t, site.Application, callback)
	return site
}

func authorize(t *testing.T, application e2e.Object, callback string) e2e.Object {
	t.Helper()
	return client.Update(t, application.Href(), e2e.Object{"authorizedCallbackUris": []string{callback}})
}

// idSite is the settings of the tenant's hosted pages.
func idSite(t *testing.T) e2e.Object {
	t.Helper()
	return client.Get(t, client.Tenant(t).Link(t, "idSites")).Items(t)[0]
}

// pageOrigin is where the tenant's hosted pages are: its domain has no port.
func pageOrigin(t *testing.T) string {
	t.Helper()
	host, err := url.Parse(client.Key.HostURL())
	if err != nil {
		t.Fatal(err)
	}
	origin := "https://" + idSite(t).Text("domainName")
	if host.Port() != "" {
		origin += ":" + host.Port()
	}
	return origin
}

// hostedRequest signs the request for a hosted login in an application; changes are
// to its claims, and one that is nil is left out.
func hostedRequest(t *testing.T, application e2e.Object, changes e2e.Object) string {
	t.Helper()
	claims := e2e.Object{
		"iss": client.Key.ID, "sub": application.Href(), "cb_uri": callback, "iat": float64(time.Now().UnixMilli()) / 1000,
		"jti": rand.Text(), "state": "a b~?ü",
	}
	for name, value := range changes {
		claims[name] = value
	}
	return signJWT(t, e2e.Object{"alg": "HS256"}, claims, client.Key.Secret)
}

func ssoRequest(request string) e2e.Request {
	return get(client.Key.HostURL() + "/sso?jwtRequest=" + request)
}

func logoutRequest(request string) e2e.Request {
	return get(client.Key.HostURL() + "/sso/logout?jwtRequest=" + request)
}

// hostedPage is what a hosted page does with its session token: each answer brings
// the next one, or the address to return to.
type hostedPage struct {
	*testing.T
	browser *e2e.Client
	app     e2e.Object
	token   string
	back    string // the redirect header of the last answer
}

// begin starts a hosted login that must lead to the pages, at the path.
func begin(t *testing.T, browser *e2e.Client, application, changes e2e.Object, path string) *hostedPage {
	t.Helper()
	answer := browser.Want(t, http.StatusFound, ssoRequest(hostedRequest(t, application, changes)))
	location := answer.Header.Get("Location")
	token, found := strings.CutPrefix(location, pageOrigin(t)+"/#"+path+"?jwt=")
	if !found {
		t.Fatalf("the browser is sent to %s", location)
	}
	return &hostedPage{T: t, browser: browser, app: application, token: token}
}

// call makes a call of the page that must have this status.
func (p *hostedPage) call(status int, method, address string, body any) e2e.Answer {
	p.Helper()
	request := e2e.Request{Method: method, URL: address, Body: body, Header: http.Header{
		"Authorization": {"Bearer " + p.token}, "Origin": {pageOrigin(p.T)},
	}}
	answer := p.browser.Want(p.T, status, request)
	next, back := answer.Header.Get("Authorization"), answer.Header.Get(redirectHeader)
	if given := next != ""; given == (back != "" || status == http.StatusAccepted) {
		p.Errorf("%s renews the token to %q and returns to %q", answer, next, back)
	}
	p.back = back
	if next != "" {
		p.token = strings.TrimPrefix(next, "Bearer ")
		if strings.ContainsAny(strings.Split(p.token, ".")[1], "-_") {
			p.Errorf("a page cannot decode %s with plain Base64", p.token)
		}
	}
	return answer
}

func (p *hostedPage) object(status int, method, address string, body any) e2e.Object {
	p.Helper()
	object, err := p.call(status, method, address, body).Object()
	if err != nil {
		p.Fatal(err)
	}
	return object
}

// refused makes a call that must be refused with this status and code.
func (p *hostedPage) refused(status, code int, method, address string, body any) {
	p.Helper()
	e2e.CheckError(p.T, p.call(status, method, address, body), status, code)
}

func (p *hostedPage) claims() (claims e2e.Object) {
	p.Helper()
	return claimsOf(p.T, p.token)
}

// claimsOf reads a token without its key.
func claimsOf(t testing.TB, token string) (claims e2e.Object) {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("no JWT: %s", token)
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err == nil {
		err = json.Unmarshal(raw, &claims)
	}
	if err != nil {
		t.Fatal(err)
	}
	return claims
}

func loginBody(login, password string) e2e.Object {
	return e2e.Object{"type": "basic", "value": base64.StdEncoding.EncodeToString([]byte(login + ":" + password))}
}

// logIn is the password step, which ends the login where no factor is demanded.
func (p *hostedPage) logIn(login string) {
	p.Helper()
	p.call(http.StatusNoContent, http.MethodPost, p.app.Link(p.T, "loginAttempts"), loginBody(login, e2e.Password))
}

// land takes the browser back to the application, as the page does, and returns the
// assertion.
func (p *hostedPage) land() string {
	p.Helper()
	assertion, found := strings.CutPrefix(p.back, callback+"?jwtResponse=")
	if !found {
		p.Fatalf("the page is sent to %q", p.back)
	}
	answer := p.browser.Want(p.T, http.StatusFound, get(client.Key.HostURL()+"/sso/?jwtResponse="+assertion))
	if to := answer.Header.Get("Location"); to != p.back {
		p.Errorf("the browser lands at %s, not at %s", to, p.back)
	}
	return assertion
}

// signIn is a hosted login from begin to end.
func signIn(t *testing.T, browser *e2e.Client, application e2e.Object, login string) string {
	t.Helper()
	page := begin(t, browser, application, nil, "/")
	page.logIn(login)
	return page.land()
}

// returned is the assertion with which a browser is sent straight back.
func returned(t *testing.T, browser *e2e.Client, request e2e.Request) string {
	t.Helper()
	answer := browser.Want(t, http.StatusFound, request)
	assertion, found := strings.CutPrefix(answer.Header.Get("Location"), callback+"?jwtResponse=")
	if !found {
		t.Fatalf("the browser is sent to %s", answer.Header.Get("Location"))
	}
	return assertion
}

// checkAssertion verifies what applications verify, and returns the claims.
func checkAssertion(t *testing.T, assertion, status string, account any) e2e.Object {
	t.Helper()
	header, claims := unpack(t, assertion, client.Key.Secret)
	if header.Text("alg") != "HS256" || header.Text("typ") != "JWT" || header.Text("kid") != client.Key.ID || header.Text("stt") != "assertion" {
		t.Errorf("the header is %v", header)
	}
	sub, given := claims["sub"]
	if !given || sub != account || claims.Text("status") != status || claims.Text("aud") != client.Key.ID || claims["state"] != "a b~?ü" ||
		claims.Text("iss") != "https://"+idSite(t).Text("domainName") || claims.Text("irt") == "" || claims.Text("jti") == "" ||
		claims.Number(t, "exp") != claims.Number(t, "iat")+60 {
		t.Errorf("the claims are %v", claims)
	}
	if isNew, ok := claims["isNewSub"].(bool); !ok || isNew != (status == "REGISTERED") {
		t.Errorf("isNewSub is %v", claims["isNewSub"])
	}
	return claims
}

// checkErrorAssertion verifies that a browser was sent back with this error.
func checkErrorAssertion(t *testing.T, assertion string, application e2e.Object, status, code int) {
	t.Helper()
	header, claims := unpack(t, assertion, client.Key.Secret)
	if header.Text("kid") != client.Key.ID || header.Text("alg") != "HS256" {
		t.Errorf("the header is %v", header)
	}
	problem := claims.Object("err")
	if problem == nil || problem.Number(t, "code") != code || problem.Number(t, "status") != status {
		t.Fatalf("the claims are %v, want error %d/%d", claims, status, code)
	}
	for _, name := range []string{"message", "developerMessage", "moreInfo"} {
		if problem.Text(name) == "" {
			t.Errorf("the error lacks %s: %v", name, problem)
		}
	}
	for _, name := range []string{"aud", "sub", "status"} {
		if value, given := claims[name]; given {
			t.Errorf("an error assertion has %s %v", name, value)
		}
	}
	if claims.Text("iss") != application.Href() || claims.Text("jti") == "" {
		t.Errorf("the claims are %v", claims)
	}
}

func exchange(application e2e.Object, assertion string) e2e.Request {
	return post(application.Href()+"/oauth/token", url.Values{"grant_type": {"service_token"}, "token": {assertion}})
}

func TestAHostedLogin(t *testing.T) {
	site := newHosted(t)
	account := client.Register(t, site.Application.Link(t, "accounts"))
	browser := client.Browser()
	page := begin(t, browser, site.Application, nil, "/")
	claims := page.claims()
	if claims.Text("app_href") != site.Application.Href() || claims["onk"] != nil || claims["sof"] != false || claims["require_mfa"] != nil ||
		claims.Object("scope").Object("account") != nil || claims.Object("scope").Object("application") == nil {
		t.Errorf("the session's claims are %v", claims)
	}

	model := page.object(http.StatusOK, http.MethodGet, site.Application.Href()+"?expand=idSiteModel", nil)
	policy := model.Object("idSiteModel").Object("passwordPolicy")
	if model.Text("name") != site.Application.Text("name") || policy.Number(t, "minLength") != 8 || policy["requireSymbol"] != false || model["status"] != nil {
		t.Errorf("the model is %v", model)
	}
	page.refused(400, 7100, http.MethodPost, site.Application.Link(t, "loginAttempts"), loginBody(account.Text("email"), "Wrong0000"))
	page.refused(400, 7100, http.MethodPost, site.Application.Link(t, "loginAttempts"), loginBody("nobody", "Wrong0000"))
	page.logIn(account.Text("email"))
	assertion := page.land()
	checkAssertion(t, assertion, "AUTHENTICATED", account.Href())

	t.Run("its session is over once it has ended", func(t *testing.T) {
		after := *page
		after.T = t
		after.refused(401, 12001, http.MethodGet, site.Application.Href()+"?expand=idSiteModel", nil)
		checkErrorAssertion(t, strings.TrimPrefix(after.back, callback+"?jwtResponse="), site.Application, 401, 12001)
	})
	t.Run("of fifty exchanges of its assertion one is answered with tokens", func(t *testing.T) {
		statuses := together(t, 50, exchange(site.Application, assertion))
		if statuses[http.StatusOK] != 1 || statuses[http.StatusBadRequest] != 49 {
			t.Errorf("the answers by status are %v", statuses)
		}
		oauthRefused(t, 400, 11005, "invalid_client", exchange(site.Application, assertion))
	})
	t.Run("the older name of the grant works too", func(t *testing.T) {
		form := url.Values{"grant_type": {"id_site_token"}, "token": {signIn(t, client.Browser(), site.Application, account.Text("email"))}}
		token := client.Token(t, site.Application.Href(), form)
		if _, claims := unpack(t, token.Text("access_token"), client.Key.Secret); claims.Text("sub") != account.Href() {
			t.Errorf("the token is for %v", claims)
		}
	})
	t.Run("a second application needs no password", func(t *testing.T) {
		second := authorize(t, client.NewApplication(t), callback)
		mapping := client.Create(t, "/accountStoreMappings", e2e.Object{
			"application": e2e.Object{"href": second.Href()}, "accountStore": e2e.Object{"href": site.Directory.Href()},
		})
		again := returned(t, browser, ssoRequest(hostedRequest(t, second, nil)))
		checkAssertion(t, again, "AUTHENTICATED", account.Href())
		client.Token(t, second.Href(), exchange(second, again).Body.(url.Values))
		begin(t, browser, second, e2e.Object{"path": "/#/register"}, "/register")
		begin(t, client.Browser(), second, nil, "/")
		client.Delete(t, mapping.Href())
		begin(t, browser, second, nil, "/")
	})
	t.Run("a logout ends the session", func(t *testing.T) {
		checkAssertion(t, returned(t, browser, logoutRequest(hostedRequest(t, site.Application, nil))), "LOGOUT", account.Href())
		begin(t, browser, site.Application, nil, "/")
		checkAssertion(t, returned(t, browser, logoutRequest(hostedRequest(t, site.Application, nil))), "LOGOUT", nil)
	})
}

func TestTheCookiesOfHostedLogins(t *testing.T) {
	site := newHosted(t)
	account := client.Register(t, site.Application.Link(t, "accounts"))
	browser := client.Browser()
	cookie := func(t *testing.T, answer e2e.Answer, name string) *http.Cookie {
		t.Helper()
		for _, each := range (&http.Response{Header: answer.Header}).Cookies() {
			if each.Name == name {
				if !each.HttpOnly || !each.Secure || each.Path != "/sso" || each.SameSite != http.SameSiteNoneMode {
					t.Errorf("the cookie is %v", each)
				}
				return each
			}
		}
		return nil
	}
	page := begin(t, browser, site.Application, nil, "/")
	page.logIn(account.Text("email"))
	landing := get(strings.Replace(page.back, callback, client.Key.HostURL()+"/sso/", 1))

	t.Run("a browser that did not begin gets no session", func(t *testing.T) {
		answer := client.Browser().Want(t, http.StatusFound, landing)
		if answer.Header.Get("Location") != page.back || cookie(t, answer, "sso") != nil {
			t.Errorf("the header is %v", answer.Header)
		}
	})
	t.Run("the one that began gets it once, until it is closed", func(t *testing.T) {
		session := cookie(t, browser.Want(t, http.StatusFound, landing), "sso")
		if session == nil || session.MaxAge != 0 || !session.Expires.IsZero() || len(session.Value) < 40 {
			t.Errorf("the session is %v", session)
		}
		if again := cookie(t, browser.Want(t, http.StatusFound, landing), "sso"); again != nil {
			t.Errorf("a second one is %v", again)
		}
	})
	t.Run("logout clears it", func(t *testing.T) {
		answer := browser.Want(t, http.StatusFound, logoutRequest(hostedRequest(t, site.Application, nil)))
		if cleared := cookie(t, answer, "sso"); cleared == nil || cleared.Value != "" || cleared.Expires.After(time.Now()) {
			t.Errorf("it becomes %v", cleared)
		}
	})
	t.Run("an assertion that nobody signed, or a request in its place, lands nowhere", func(t *testing.T) {
		for _, token := range []string{strings.TrimPrefix(page.back, callback+"?jwtResponse=") + "x", hostedRequest(t, site.Application, nil), "x"} {
			browser.Refused(t, 400, 400, get(client.Key.HostURL()+"/sso/?jwtResponse="+url.QueryEscape(token)))
		}
	})
}

func TestHostedRequestsThatAreRefused(t *testing.T) {
	site := newHosted(t)
	now := time.Now().Unix()
	null := json.RawMessage("null")
	endpoints := map[string]func(string) e2e.Request{"login": ssoRequest, "logout": logoutRequest}

	t.Run("where nothing can be trusted, with a page or JSON and no redirect", func(t *testing.T) {
		good := hostedRequest(t, site.Application, nil)
		user := client.Create(t, client.Register(t, site.Application.Link(t, "accounts")).Link(t, "apiKeys"), nil)
		requests := map[string]string{
			"missing":                    "",
			"no JWT":                     "abc",
			"bad signature":              good[:len(good)-4] + "AAAA",
			"unknown issuer":             hostedRequest(t, site.Application, e2e.Object{"iss": "NOBODY"}),
			"no issuer":                  hostedRequest(t, site.Application, e2e.Object{"iss": nil}),
			"unknown application":        hostedRequest(t, e2e.Object{"href": client.Key.BaseURL + "/applications/0000000000000000000000"}, nil),
			"no application":             hostedRequest(t, site.Directory, nil),
			"no callback":                hostedRequest(t, site.Application, e2e.Object{"cb_uri": nil}),
			"null callback":              hostedRequest(t, site.Application, e2e.Object{"cb_uri": null}),
			"callback elsewhere":         hostedRequest(t, site.Application, e2e.Object{"cb_uri": "https://evil.example/callback"}),
			"callback of another path":   hostedRequest(t, site.Application, e2e.Object{"cb_uri": callback + "/../x"}),
			"callback with another user": hostedRequest(t, site.Application, e2e.Object{"cb_uri": "https://shop.localhost@evil.example/callback"}),
			"callback of another scheme": hostedRequest(t, site.Application, e2e.Object{"cb_uri": "http://shop.localhost/callback"}),
			"another algorithm":          signJWT(t, e2e.Object{"alg": "none"}, claimsOf(t, good), client.Key.Secret),
			"the key of an end user": signJWT(t, e2e.Object{"alg": "HS256"},
				e2e.Object{"iss": user.Text("id"), "sub": site.Application.Href(), "cb_uri": callback, "iat": now, "jti": rand.Text()}, user.Text("secret")),
			"an assertion": signJWT(t, e2e.Object{"alg": "HS256", "stt": "assertion"}, claimsOf(t, good), client.Key.Secret),
		}
		for name, request := range requests {
			for endpoint, to := range endpoints {
				t.Run(name+", "+endpoint, func(t *testing.T) {
					client.Browser().Refused(t, 400, 400, to(request))
					asPage := to(request)
					asPage.Header = http.Header{"Accept": {"text/html"}}
					answer := client.Browser().Want(t, http.StatusBadRequest, asPage)
					if answer.Header.Get("Location") != "" || !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") || len(answer.Header["Set-Cookie"]) > 0 {
						t.Errorf("the page has the header %v", answer.Header)
					}
				})
			}
		}
	})
	t.Run("where the callback is good, with an error assertion", func(t *testing.T) {
		used := rand.Text()
		begin(t, client.Browser(), site.Application, e2e.Object{"jti": used}, "/")
		disabled, unmapped := newOrganization(t), newOrganization(t)
		mapOrganization(t, site, disabled)
		client.Update(t, disabled.Href(), e2e.Object{"status": "DISABLED"})
		for name, refused := range map[string]struct {
			code    int
			changes e2e.Object
		}{
			"older than ten minutes":    {10011, e2e.Object{"iat": now - 700}},
			"expired":                   {10011, e2e.Object{"exp": now - 100}},
			"of the future":             {10012, e2e.Object{"iat": now + 300}},
			"used":                      {11005, e2e.Object{"jti": used}},
			"without jti":               {11004, e2e.Object{"jti": nil}},
			"with an empty jti":         {11004, e2e.Object{"jti": ""}},
			"with a null iat":           {11004, e2e.Object{"iat": null}},
			"with an empty onk":         {11004, e2e.Object{"onk": ""}},
			"with a null onk":           {11004, e2e.Object{"onk": null}},
			"of no organization":        {11001, e2e.Object{"onk": "nobody-at-all"}},
			"of a disabled one":         {11002, e2e.Object{"onk": disabled.Text("nameKey")}},
			"of one that is not mapped": {11003, e2e.Object{"onk": unmapped.Text("nameKey")}},
		} {
			t.Run(name, func(t *testing.T) {
				checkErrorAssertion(t, returned(t, client.Browser(), ssoRequest(hostedRequest(t, site.Application, refused.changes))), site.Application, 400, refused.code)
			})
		}
		begin(t, client.Browser(), site.Application, e2e.Object{"state": "", "path": ""}, "/")
	})
	t.Run("where the application is disabled", func(t *testing.T) {
		disabled := authorize(t, client.NewApplication(t), callback)
		client.Update(t, disabled.Href(), e2e.Object{"status": "DISABLED"})
		checkErrorAssertion(t, returned(t, client.Browser(), ssoRequest(hostedRequest(t, disabled, nil))), disabled, 400, 10015)
	})
}

func newOrganization(t *testing.T) e2e.Object {
	t.Helper()
	key := strings.ToLower(e2e.Unique("org"))
	organization := client.Create(t, "/organizations", e2e.Object{"name": key, "nameKey": key})
	client.DeleteAtEnd(t, organization.Href())
	return organization
}

func mapOrganization(t *testing.T, site e2e.Site, organization e2e.Object) {
	t.Helper()
	client.Create(t, "/accountStoreMappings", e2e.Object{
		"application": e2e.Object{"href": site.Application.Href()}, "accountStore": e2e.Object{"href": organization.Href()},
	})
}

func TestAHostedRequestIsUsedOnceAmongFiftyTries(t *testing.T) {
	site := newHosted(t)
	request := ssoRequest(hostedRequest(t, site.Application, nil))
	began, replayed := 0, 0
	for _, answer := range answersTogether(t, 50, request) {
		for answer.Status == http.StatusTooManyRequests { // more at once than one address may have in flight
			answer = client.Call(t, request)
		}
		switch location := answer.Header.Get("Location"); {
		case strings.HasPrefix(location, pageOrigin(t)+"/#/?jwt="):
			began++
		case strings.HasPrefix(location, callback+"?jwtResponse="):
			checkErrorAssertion(t, strings.TrimPrefix(location, callback+"?jwtResponse="), site.Application, 400, 11005)
			replayed++
		default:
			t.Errorf("%s leads to %s", answer, location)
		}
	}
	if began != 1 || replayed != 49 {
		t.Errorf("%d began, %d were refused", began, replayed)
	}
}

func TestASessionEndsWithThePasswordAndTheAccount(t *testing.T) {
	for name, change := range map[string]e2e.Object{"new password": {"password": newPassword}, "disabled": {"status": "DISABLED"}} {
		t.Run(name, func(t *testing.T) {
			site := newHosted(t)
			account := client.Register(t, site.Application.Link(t, "accounts"))
			browser := client.Browser()
			signIn(t, browser, site.Application, account.Text("email"))
			returned(t, browser, ssoRequest(hostedRequest(t, site.Application, nil)))
			client.Update(t, account.Href(), change)
			began := time.Now()
			awaitNoSession(t, browser, site.Application)
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("the session lived on for %s", took)
			}
			if name == "disabled" {
				client.Update(t, account.Href(), e2e.Object{"status": "ENABLED"})
				begin(t, browser, site.Application, nil, "/")
			}
		})
	}
}

// awaitNoSession waits until a browser has to sign in again.
func awaitNoSession(t *testing.T, browser *e2e.Client, application e2e.Object) {
	t.Helper()
	awaitTrue(t, "the session to be over", func() bool {
		answer := browser.Want(t, http.StatusFound, ssoRequest(hostedRequest(t, application, nil)))
		return strings.HasPrefix(answer.Header.Get("Location"), pageOrigin(t))
	})
}

func TestAHostedRegistration(t *testing.T) {
	site := newHosted(t)
	email := e2e.Unique("new") + "@example.test"
	browser := client.Browser()
	page := begin(t, browser, site.Application, e2e.Object{"path": "/#/register"}, "/register")
	page.refused(400, 2007, http.MethodPost, site.Application.Link(t, "accounts"), e2e.Object{"email": email, "password": "x"})
	page.call(http.StatusNoContent, http.MethodPost, site.Application.Link(t, "accounts"), e2e.Object{"email": email, "password": e2e.Password, "givenName": nil, "surname": nil})
	account := checkAssertion(t, page.land(), "REGISTERED", client.Get(t, site.Directory.Link(t, "accounts")).Items(t)[0].Href()).Text("sub")
	if got := client.Get(t, account); got.Text("email") != email {
		t.Errorf("the account is %v", got)
	}
	checkAssertion(t, returned(t, browser, ssoRequest(hostedRequest(t, site.Application, nil))), "AUTHENTICATED", account)

	t.Run("where addresses are confirmed the user waits, a taken one too", func(t *testing.T) {
		client.Update(t, site.Directory.Link(t, "accountCreationPolicy"), e2e.Object{"verificationEmailStatus": "ENABLED"})
		pending := e2e.Unique("new") + "@example.test"
		for _, each := range []string{pending, email} {
			page := begin(t, client.Browser(), site.Application, e2e.Object{"path": "/register"}, "/register")
			answer := page.call(http.StatusAccepted, http.MethodPost, site.Application.Link(t, "accounts"), e2e.Object{"email": each, "password": e2e.Password})
			if len(answer.Body) > 0 {
				t.Errorf("the answer is %s", answer)
			}
		}
		token, err := client.AwaitMail(t, pending).Sptoken()
		if err != nil {
			t.Fatal(err)
		}
		page := begin(t, client.Browser(), site.Application, e2e.Object{"path": "/#/verify", "sp_token": token}, "/verify")
		if page.claims().Text("sp_token") != token {
			t.Errorf("the claims are %v", page.claims())
		}
		page.call(http.StatusOK, http.MethodPost, client.Key.HostURL()+"//v1/accounts/emailVerificationTokens/"+token, nil)
		page.refused(404, 404, http.MethodPost, client.Key.BaseURL+"/accounts/emailVerificationTokens/"+token, nil)
		page.logIn(pending)
		page.land()
	})
}

func TestAHostedPasswordReset(t *testing.T) {
	site := newHosted(t)
	account := client.Register(t, site.Application.Link(t, "accounts"))
	email, tokens := account.Text("email"), site.Application.Link(t, "passwordResetTokens")
	other := client.Browser()
	signIn(t, other, site.Application, email)

	page := begin(t, client.Browser(), site.Application, e2e.Object{"path": "/forgot"}, "/forgot")
	for _, each := range []string{e2e.Unique("nobody") + "@example.test", email} {
		if answer := page.call(http.StatusOK, http.MethodPost, tokens, e2e.Object{"email": each}); string(answer.Body) != "{}" {
			t.Errorf("the answer is %s", answer)
		}
	}
	token, err := client.AwaitMail(t, email).Sptoken()
	if err != nil {
		t.Fatal(err)
	}
	page = begin(t, client.Browser(), site.Application, e2e.Object{"path": "/#/reset", "sp_token": token}, "/reset")
	page.refused(404, 404, http.MethodGet, tokens+"/"+token+"x", nil)
	at := page.object(http.StatusOK, http.MethodGet, tokens+"/"+token, nil).Href()
	page.refused(400, 2007, http.MethodPost, at, e2e.Object{"password": "x"})
	page.call(http.StatusOK, http.MethodPost, at, e2e.Object{"password": newPassword})
	page.refused(404, 404, http.MethodPost, at, e2e.Object{"password": newPassword + "2"})
	awaitNoSession(t, other, site.Application)
	page.call(http.StatusNoContent, http.MethodPost, site.Application.Link(t, "loginAttempts"), loginBody(email, newPassword))
	page.land()
}

func TestWhatAHostedSessionMayNotCall(t *testing.T) {
	site, foreign := newHosted(t), newHosted(t)
	account := client.Register(t, site.Application.Link(t, "accounts"))
	factor := client.Create(t, account.Link(t, "factors"), e2e.Object{"type": "google-authenticator"})
	for name, changes := range map[string]e2e.Object{"before the password": nil, "after the password": {"require_mfa": []string{"sms"}}} {
		t.Run(name, func(t *testing.T) {
			page := begin(t, client.Browser(), site.Application, changes, "/")
			if changes != nil {
				page.call(http.StatusOK, http.MethodPost, site.Application.Link(t, "loginAttempts"), loginBody(account.Text("email"), e2e.Password))
			}
			for _, call := range []e2e.Request{
				get("/tenants/current"), get(account.Href()), get(site.Application.Link(t, "accounts")), get(site.Directory.Href() + "?expand=idSiteModel"),
				get(foreign.Application.Href() + "?expand=idSiteModel"), get("/applications"), get(account.Link(t, "apiKeys")), get(account.Link(t, "customData")),
				post(foreign.Application.Link(t, "loginAttempts"), loginBody(account.Text("email"), e2e.Password)),
				post(foreign.Application.Link(t, "accounts"), e2e.Object{"email": "a@example.test", "password": e2e.Password}),
				post(foreign.Application.Link(t, "passwordResetTokens"), e2e.Object{"email": account.Text("email")}),
				post(account.Href(), e2e.Object{"password": newPassword}), post(account.Link(t, "apiKeys"), nil), post(site.Application.Href(), e2e.Object{"name": "x"}),
				post(site.Application.Href()+"/oauth/token", passwordGrant(account.Text("email"), e2e.Password)),
				get(factor.Href()), get(client.Register(t, site.Application.Link(t, "accounts")).Link(t, "factors")),
				post(factor.Link(t, "challenges"), e2e.Object{"code": "123456"}), // of a type that is not allowed, or before the password
			} {
				address := call.URL
				if strings.HasPrefix(address, "/") {
					address = client.Key.BaseURL + address
				}
				page.call(http.StatusForbidden, call.Method, address, call.Body)
			}
			for _, address := range []string{account.Href(), factor.Href()} {
				request := del(address)
				request.Anonymous, request.Header = true, http.Header{"Authorization": {"Bearer " + page.token}}
				if answer := client.Call(t, request); answer.Status != http.StatusForbidden && answer.Status != http.StatusMethodNotAllowed {
					t.Errorf("%s", answer)
				}
				client.Get(t, address)
			}
		})
	}
}

func TestTheOriginsOfHostedPages(t *testing.T) {
	site, settings := newHosted(t), idSite(t)
	foreign := "https://pages-" + strings.ToLower(rand.Text()[:8]) + ".example"
	page := begin(t, client.Browser(), site.Application, nil, "/")
	model := site.Application.Href() + "?expand=idSiteModel"
	from := func(origin, method string) e2e.Request {
		request := e2e.Request{Method: method, URL: model, Anonymous: true, Header: http.Header{"Origin": {origin}, "Authorization": {"Bearer " + page.token}}}
		if method == http.MethodOptions {
			request.Header = http.Header{"Origin": {origin}, "Access-Control-Request-Method": {"GET"}, "Access-Control-Request-Headers": {"authorization"}}
		}
		return request
	}
	allowed := func(t *testing.T, answer e2e.Answer, origin string) {
		t.Helper()
		header := answer.Header
		if header.Get("Access-Control-Allow-Origin") != origin || header.Get("Access-Control-Allow-Credentials") != "true" {
			t.Errorf("the header is %v", header)
		}
	}
	own := pageOrigin(t)
	preflight := client.Call(t, from(own, http.MethodOptions))
	allowed(t, preflight, own)
	if preflight.Status/100 != 2 || preflight.Header.Get("Access-Control-Allow-Methods") != "GET, POST, OPTIONS" ||
		preflight.Header.Get("Access-Control-Allow-Headers") != "Accept, Authorization, Content-Type" {
		t.Errorf("the preflight is %d %v", preflight.Status, preflight.Header)
	}
	answer := client.Want(t, http.StatusOK, from(own, http.MethodGet))
	allowed(t, answer, own)
	if exposed := answer.Header.Get("Access-Control-Expose-Headers"); !strings.EqualFold(exposed, "Authorization, "+redirectHeader) {
		t.Errorf("exposed are %s", exposed)
	}

	if refused := client.Call(t, from(foreign, http.MethodGet)); refused.Header.Get("Access-Control-Allow-Origin") != "" || refused.Header.Get("Authorization") != "" || strings.Contains(string(refused.Body), "idSiteModel") {
		t.Errorf("a foreign page reads %s with %v", refused, refused.Header)
	}
	before := settings["authorizedOriginUris"]
	client.Update(t, settings.Href(), e2e.Object{"authorizedOriginUris": []string{foreign}})
	defer client.Update(t, settings.Href(), e2e.Object{"authorizedOriginUris": before})
	awaitTrue(t, "the origin to be let in", func() bool {
		return client.Call(t, from(foreign, http.MethodGet)).Header.Get("Access-Control-Allow-Origin") == foreign
	})
}

// enrolAuthenticator enrols an authenticator by the page and returns its key URI.
func (p *hostedPage) enrolAuthenticator(account e2e.Object) (keyURI, challenges string) {
	p.Helper()
	factor := p.object(http.StatusCreated, http.MethodPost, account.Link(p.T, "factors"), e2e.Object{"type": "google-authenticator", "issuer": "Shop"})
	if factor.Text("base64QRImage") == "" || factor.Text("secret") == "" {
		p.Errorf("the factor is %v", factor)
	}
	return factor.Text("keyUri"), factor.Link(p.T, "challenges")
}

func TestAHostedLoginWithASecondFactor(t *testing.T) {
	site := newHosted(t)
	account := client.Register(t, site.Application.Link(t, "accounts"))
	attempts, factors := site.Application.Link(t, "loginAttempts"), account.Link(t, "factors")
	anyFactor := e2e.Object{"require_mfa": []string{"SMS", "google-authenticator"}}
	password := func(t *testing.T, browser *e2e.Client, changes e2e.Object) *hostedPage {
		t.Helper()
		page := begin(t, browser, site.Application, changes, "/")
		body := page.object(http.StatusOK, http.MethodPost, attempts, loginBody(account.Text("email"), e2e.Password))
		if body.Link(t, "account") != account.Href() || page.claims().Object("scope").Object("account")[account.ID()] == nil {
			t.Errorf("the password step is answered with %v, claims %v", body, page.claims())
		}
		return page
	}
	plain := client.Browser()
	signIn(t, plain, site.Application, account.Text("email"))

	first := client.Browser()
	page := password(t, first, anyFactor)
	if items := page.object(http.StatusOK, http.MethodGet, factors, nil).Items(t); len(items) != 0 {
		t.Errorf("the factors are %v", items)
	}
	keyURI, challenges := page.enrolAuthenticator(account)
	wrong := page.object(http.StatusCreated, http.MethodPost, challenges, e2e.Object{"code": otherThan(oneTime(t, keyURI, time.Now()))})
	if wrong.Text("status") != "FAILED" {
		t.Errorf("a wrong code is %v", wrong)
	}
	// The code of half a minute ago is accepted; the one of now is kept for the next login.
	if right := page.object(http.StatusCreated, http.MethodPost, challenges, e2e.Object{"code": oneTime(t, keyURI, time.Now().Add(-30*time.Second))}); right.Text("status") != "SUCCESS" {
		t.Fatalf("the right code is %v", right)
	}
	checkAssertion(t, page.land(), "AUTHENTICATED", account.Href())
	checkAssertion(t, returned(t, first, ssoRequest(hostedRequest(t, site.Application, anyFactor))), "AUTHENTICATED", account.Href())

	t.Run("a session without the second step must pass it", func(t *testing.T) {
		page := begin(t, plain, site.Application, anyFactor, "/")
		if page.claims().Object("scope").Object("account")[account.ID()] == nil {
			t.Errorf("the claims are %v", page.claims())
		}
		returned(t, plain, ssoRequest(hostedRequest(t, site.Application, nil)))
	})
	t.Run("a client that knows the password alone cannot enrol another factor", func(t *testing.T) {
		page := password(t, client.Browser(), anyFactor)
		page.call(http.StatusForbidden, http.MethodPost, factors, e2e.Object{"type": "google-authenticator"})
		page.call(http.StatusForbidden, http.MethodPost, factors, e2e.Object{"type": "sms", "phone": e2e.Object{"number": "+12675550100"}})
		for _, each := range page.object(http.StatusOK, http.MethodGet, factors, nil).Items(t) {
			if each["secret"] != nil || each["keyUri"] != nil || each["base64QRImage"] != nil {
				t.Errorf("the factor is %v", each)
			}
		}
	})
	t.Run("a code by text message", func(t *testing.T) {
		number := enrolPhone(t, account)
		before := codeSentTo(t, number, "")
		page := password(t, client.Browser(), e2e.Object{"require_mfa": []string{"sms"}})
		page.call(http.StatusForbidden, http.MethodPost, challenges, e2e.Object{"code": "123456"})
		var phone e2e.Object
		for _, each := range page.object(http.StatusOK, http.MethodGet, factors, nil).Items(t) {
			if each.Text("type") == "SMS" {
				phone = each
			}
		}
		if phone.Object("phone").Text("number") != number {
			t.Fatalf("the phone is %v", phone)
		}
		page.object(http.StatusCreated, http.MethodPost, phone.Link(t, "challenges"), nil)
		former := codeSentTo(t, number, before)
		again := page.object(http.StatusCreated, http.MethodPost, phone.Link(t, "challenges"), e2e.Object{})
		code := codeSentTo(t, number, former)
		if failed := page.object(http.StatusOK, http.MethodPost, again.Href(), e2e.Object{"code": otherThan(code)}); failed.Text("status") != "FAILED" || page.back != "" {
			t.Errorf("a wrong code is %v", failed)
		}
		if right := page.object(http.StatusOK, http.MethodPost, again.Href(), e2e.Object{"code": code}); right.Text("status") != "SUCCESS" {
			t.Errorf("the right code is %v", right)
		}
		page.land()
	})
	t.Run("a page that went back starts with the password again", func(t *testing.T) {
		page := begin(t, client.Browser(), site.Application, anyFactor, "/")
		before := page.token
		page.object(http.StatusOK, http.MethodPost, attempts, loginBody(account.Text("email"), e2e.Password))
		page.token = before
		page.call(http.StatusForbidden, http.MethodGet, factors, nil)
	})
}

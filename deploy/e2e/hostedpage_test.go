package e2e_test

import (
	"crypto/rand"
	"encoding/base64"
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

// newHosted is a fixture whose application takes answers of a hosted login at the
// callback.
func newHosted(t *testing.T) e2e.Fixture {
	t.Helper()
	fixture := client.NewFixture(t)
	fixture.Application = authorize(t, fixture.Application, callback)
	return fixture
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
	return e2e.SignJWT(e2e.Object{"alg": "HS256"}, claims, client.Key.Secret)
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

// openLogin starts a hosted login that must lead to the pages, at the path.
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
	return e2e.Claims(p.T, p.token)
}

func loginBody(login, password string) e2e.Object {
	return e2e.Object{"type": "basic", "value": base64.StdEncoding.EncodeToString([]byte(login + ":" + password))}
}

// logIn is the password step, which ends the login where no factor is demanded.
func (p *hostedPage) logIn(login string) {
	p.Helper()
	p.call(http.StatusNoContent, http.MethodPost, p.app.Link(p.T, "loginAttempts"), loginBody(login, e2e.Password))
}

// finishLogin takes the browser back to the application, as the page does, and returns the
// assertion.
func (p *hostedPage) finishLogin() string {
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
	return page.finishLogin()
}

// redirectAssertion is the assertion with which a browser is sent straight back.
func redirectAssertion(t *testing.T, browser *e2e.Client, request e2e.Request) string {
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

package rest_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/idsitetest"
	idsiterest "github.com/doorward/doorward/services/idsite/rest"
)

// visitSSO begins a hosted login, with the cookies that a browser has.
func (p *pageAPI) visitSSO(t *testing.T, jti string, cookies ...string) *http.Response {
	t.Helper()
	request, err := secure.SignJWT(map[string]any{"typ": "JWT"}, secure.Claims{
		"iss": "K1", "sub": base.To("applications", p.application), "cb_uri": returnTo, "iat": 1795242600, "jti": jti,
	}, "secret")
	if err != nil {
		t.Fatal(err)
	}
	answer, body := p.send(t, http.MethodGet, "/sso?jwtRequest="+request, "", "", "Cookie", strings.Join(cookies, "; "))
	if answer.StatusCode != http.StatusFound {
		t.Fatalf("the request is answered %d %s", answer.StatusCode, body)
	}
	if _, token, found := strings.Cut(answer.Header.Get("Location"), "?jwt="); found {
		p.token = token
	}
	return answer
}

// land logs in on the page and returns the cookies that the browser gets when it lands.
func (p *pageAPI) land(t *testing.T, cookies ...string) []*http.Cookie {
	t.Helper()
	answer, body := p.logIn(t, "jo@example.test", idsitetest.Password.Reveal())
	_, assertion, found := strings.Cut(answer.Header.Get("Service-SSO-Redirect-Location"), "jwtResponse=")
	if !found {
		t.Fatalf("the login answers %d %s", answer.StatusCode, body)
	}
	landed, _ := p.send(t, http.MethodGet, "/sso/?jwtResponse="+assertion, "", "", "Cookie", strings.Join(cookies, "; "))
	if landed.StatusCode != http.StatusFound {
		t.Fatalf("the browser lands with %d", landed.StatusCode)
	}
	return landed.Cookies()
}

func pair(c *http.Cookie) string { return c.Name + "=" + c.Value }

// isCleared reports whether a cookie is deleted by Max-Age and by Expires.
func isCleared(c *http.Cookie) bool {
	return c.Value == "" && c.MaxAge == -1 && c.Expires.Year() < 2000
}

// A browser refuses a cookie with the prefix __Host- from any other host: the flags are what makes it so.
func TestTheCookiesOfSingleSignOnAreOfOneHost(t *testing.T) {
	p := newPage(t)
	began := p.visitSSO(t, "one").Cookies()
	if len(began) != 1 || !strings.HasPrefix(began[0].Name, "__Host-sso.rq.") || began[0].MaxAge != 1800 {
		t.Fatalf("the login begins with %v", began)
	}
	session := p.land(t, pair(began[0]))
	if len(session) != 1 || session[0].Name != "__Host-sso" || session[0].MaxAge != 0 {
		t.Fatalf("the session is %v", session)
	}
	for _, cookie := range []*http.Cookie{began[0], session[0]} {
		if !cookie.Secure || !cookie.HttpOnly || cookie.Path != "/" || cookie.Domain != "" || cookie.SameSite != http.SameSiteLaxMode {
			t.Errorf("the cookie is %v", cookie.Raw)
		}
	}
	if to := p.visitSSO(t, "two", pair(session[0])).Header.Get("Location"); !strings.HasPrefix(to, returnTo) {
		t.Errorf("with its session the browser is sent to %s", to)
	}
}

// Each login has a cookie of its own, so that a cookie that was planted before is worth nothing and
// two tabs do not disturb each other.
func TestEachLoginHasACookieOfItsOwn(t *testing.T) {
	p := newPage(t)
	first := p.visitSSO(t, "first").Cookies()[0]
	one := p.token
	second := p.visitSSO(t, "second", pair(first)).Cookies()
	if len(second) != 1 || second[0].Name == first.Name || second[0].Value == first.Value {
		t.Fatalf("the second login begins with %v, the first with %v", second, first)
	}
	if landed := p.land(t, pair(first)); len(landed) > 0 {
		t.Errorf("the cookie of another login opens the session %v", landed)
	}
	p.token = one
	if landed := p.land(t, pair(first), pair(second[0])); len(landed) != 1 {
		t.Errorf("the first tab lands with %v", landed)
	}
}

// A browser keeps ten logins that it has begun; the oldest cookies go.
func TestABrowserKeepsTenLogins(t *testing.T) {
	p := newPage(t)
	var kept []string
	for i := range 12 {
		set := p.visitSSO(t, fmt.Sprint("login ", i), kept...).Cookies()
		if last := set[len(set)-1]; isCleared(last) || len(set) != 1+max(0, i-9) && i < 11 {
			t.Fatalf("login %d sets %v", i, set)
		}
		for _, cookie := range set {
			if isCleared(cookie) {
				if name, _, _ := strings.Cut(kept[0], "="); name != cookie.Name {
					t.Errorf("login %d clears %s, want the oldest, %s", i, cookie.Name, name)
				}
				kept = kept[1:]
			}
		}
		kept = append(kept, pair(set[len(set)-1]))
	}
	if len(kept) != 10 {
		t.Errorf("the browser has %d cookies, want 10", len(kept))
	}
}

// A cookie that arrives twice was planted by the page of another host: both are cleared, and the login
// begins anew.
func TestACookieThatArrivesTwiceIsRefused(t *testing.T) {
	p := newPage(t)
	began := p.visitSSO(t, "one").Cookies()[0]
	session := p.land(t, pair(began))[0]
	answer := p.visitSSO(t, "two", pair(session), "__Host-sso=planted")
	if to := answer.Header.Get("Location"); strings.HasPrefix(to, returnTo) {
		t.Errorf("with two sessions the browser is sent to %s", to)
	}
	if cookies := answer.Cookies(); len(cookies) != 2 || cookies[0].Name != "__Host-sso" || !isCleared(cookies[0]) {
		t.Errorf("with two sessions the cookies are %v", cookies)
	}
	began = p.visitSSO(t, "three").Cookies()[0]
	if landed := p.land(t, pair(began), began.Name+"=planted"); len(landed) != 1 || !isCleared(landed[0]) {
		t.Errorf("with two cookies of the login the browser lands with %v", landed)
	}
}

// The logins at providers that the Client API begins, and those of SAML service providers, are bound
// alike.
func TestALoginAtAProviderIsBoundToItsBrowser(t *testing.T) {
	p := newPage(t)
	google := p.mapGoogle(t)
	begin := url.Values{"response_type": {"service_token"}, "redirect_uri": {returnTo}, "account_store_href": {base.To("directories", google)}}
	answer, body := p.client.call(t, http.MethodGet, "/authorize?"+begin.Encode(), "")
	cookies := answer.Cookies()
	if len(cookies) != 1 || !strings.HasPrefix(cookies[0].Name, "__Host-authorize.rq.") || cookies[0].Path != "/" || !cookies[0].Secure ||
		cookies[0].SameSite != http.SameSiteLaxMode {
		t.Fatalf("the login at a provider begins with %v: %s", cookies, body)
	}
	to, err := url.Parse(answer.Header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	back := "/authorize/callback?code=user:1&state=" + url.QueryEscape(to.Query().Get("state"))
	for _, sent := range []string{"", "__Host-authorize.rq.x=" + strings.Repeat("x", 32), pair(cookies[0]) + "; " + pair(cookies[0])} {
		if answer, _ := p.client.call(t, http.MethodGet, back, "", "Cookie", sent); answer.StatusCode != http.StatusBadRequest {
			t.Errorf("with the cookies %q the callback answers %d", sent, answer.StatusCode)
		}
	}
	if answer, body := p.client.call(t, http.MethodGet, back, "", "Cookie", "other=1; "+pair(cookies[0])); answer.StatusCode != http.StatusFound {
		t.Errorf("with its cookie the callback answers %d %s", answer.StatusCode, body)
	}
}

// Two applications whose Client APIs are on one host keep their tokens apart: each has its own path,
// and does not touch what the other has.
func TestApplicationsOnOneHostDoNotLogEachOtherOut(t *testing.T) {
	c, user := newClientAPI(t)
	other := c.peers.Applications.NewApplication(user.TenantID, user.DirectoryID)
	c.peers.Applications.SetLabel(id.Ref{Tenant: user.TenantID, ID: other}, "blue-fox")
	answer, _ := c.call(t, "POST", "/login", signIn)
	for _, cookie := range answer.Cookies() {
		if cookie.Path != "/client/calm-otter" {
			t.Errorf("the cookie is for the path %q", cookie.Path)
		}
	}
	foreign, err := secure.SignJWT(map[string]any{"alg": "HS256"}, secure.Claims{"iss": base.To("applications", other)}, "secret")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"access_token", "refresh_token"} {
		if answer, _ := c.call(t, "GET", "/me", "", "Cookie", name+"="+foreign); answer.StatusCode != 401 || len(answer.Cookies()) > 0 {
			t.Errorf("with the %s of another application the profile answers %d and sets %v", name, answer.StatusCode, answer.Cookies())
		}
	}
	revoked := c.peers.OAuth.Calls("ClientRevoke")
	if _, _ = c.call(t, "POST", "/logout", "", "Cookie", "access_token="+foreign); c.peers.OAuth.Calls("ClientRevoke") != revoked {
		t.Error("a logout revokes the token of another application")
	}
	byHost, _ := c.call(t, "POST", "/login", signIn, idsiterest.HostHeader, "calm-otter.apps.localhost:8443")
	for _, cookie := range byHost.Cookies() {
		if cookie.Path != "/" || cookie.Domain != "" {
			t.Errorf("at its own host the cookie is %v", cookie.Raw)
		}
	}
}

// A token cookie that arrives twice is no credential, and both are cleared.
func TestATokenCookieThatArrivesTwiceIsRefused(t *testing.T) {
	c, _ := newClientAPI(t)
	answer, _ := c.call(t, "POST", "/login", signIn)
	token := pair(answer.Cookies()[0])
	for _, cookies := range []string{token + "; access_token=planted", "access_token=planted; " + token, token + "; " + token} {
		answer, _ := c.call(t, "GET", "/me", "", "Cookie", cookies)
		if set := answer.Cookies(); answer.StatusCode != 401 || len(set) != 2 || !isCleared(set[0]) || !isCleared(set[1]) {
			t.Errorf("%s: the profile answers %d and sets %v", cookies, answer.StatusCode, set)
		}
	}
}

package e2e_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
)

func TestAHostedLogin(t *testing.T) {
	fixture := newHosted(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	browser := client.Browser()
	page := begin(t, browser, fixture.Application, nil, "/")
	claims := page.claims()
	if claims.Text("app_href") != fixture.Application.Href() || claims["onk"] != nil || claims["sof"] != false || claims["require_mfa"] != nil ||
		claims.Object("scope").Object("account") != nil || claims.Object("scope").Object("application") == nil {
		t.Errorf("the session's claims are %v", claims)
	}

	model := page.object(http.StatusOK, http.MethodGet, fixture.Application.Href()+"?expand=idSiteModel", nil)
	policy := model.Object("idSiteModel").Object("passwordPolicy")
	if model.Text("name") != fixture.Application.Text("name") || policy.Number(t, "minLength") != 8 || policy["requireSymbol"] != false || model["status"] != nil {
		t.Errorf("the model is %v", model)
	}
	page.refused(400, 7100, http.MethodPost, fixture.Application.Link(t, "loginAttempts"), loginBody(account.Text("email"), "Wrong0000"))
	page.refused(400, 7100, http.MethodPost, fixture.Application.Link(t, "loginAttempts"), loginBody("nobody", "Wrong0000"))
	page.logIn(account.Text("email"))
	assertion := page.finishLogin()
	checkAssertion(t, assertion, "AUTHENTICATED", account.Href())

	t.Run("its session is over once it has ended", func(t *testing.T) {
		after := *page
		after.T = t
		after.refused(401, 12001, http.MethodGet, fixture.Application.Href()+"?expand=idSiteModel", nil)
		checkErrorAssertion(t, strings.TrimPrefix(after.back, callback+"?jwtResponse="), fixture.Application, 401, 12001)
	})
	t.Run("of fifty exchanges of its assertion one is answered with tokens", func(t *testing.T) {
		statuses := sendConcurrently(t, 50, exchange(fixture.Application, assertion))
		if statuses[http.StatusOK] != 1 || statuses[http.StatusBadRequest] != 49 {
			t.Errorf("fifty exchanges are answered with %v", statuses)
		}
		oauthRefused(t, 400, 11005, "invalid_client", exchange(fixture.Application, assertion))
	})
	t.Run("the older name of the grant works too", func(t *testing.T) {
		form := url.Values{"grant_type": {"id_site_token"}, "token": {signIn(t, client.Browser(), fixture.Application, account.Text("email"))}}
		token := client.Token(t, fixture.Application.Href(), form)
		if _, claims := unpack(t, token.Text("access_token"), client.Key.Secret); claims.Text("sub") != account.Href() {
			t.Errorf("the token is for %v", claims)
		}
	})
	t.Run("a second application needs no password", func(t *testing.T) {
		second := authorize(t, client.NewApplication(t), callback)
		mapping := client.Create(t, "/accountStoreMappings", e2e.Object{
			"application": e2e.Object{"href": second.Href()}, "accountStore": e2e.Object{"href": fixture.Directory.Href()},
		})
		again := redirectAssertion(t, browser, ssoRequest(hostedRequest(t, second, nil)))
		checkAssertion(t, again, "AUTHENTICATED", account.Href())
		client.Token(t, second.Href(), exchange(second, again).Body.(url.Values))
		begin(t, browser, second, e2e.Object{"path": "/#/register"}, "/register")
		begin(t, client.Browser(), second, nil, "/")
		client.Delete(t, mapping.Href())
		begin(t, browser, second, nil, "/")
	})
	t.Run("a logout ends the session", func(t *testing.T) {
		checkAssertion(t, redirectAssertion(t, browser, logoutRequest(hostedRequest(t, fixture.Application, nil))), "LOGOUT", account.Href())
		begin(t, browser, fixture.Application, nil, "/")
		checkAssertion(t, redirectAssertion(t, browser, logoutRequest(hostedRequest(t, fixture.Application, nil))), "LOGOUT", nil)
	})
}

func TestTheCookiesOfHostedLogins(t *testing.T) {
	fixture := newHosted(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	browser := client.Browser()
	cookie := func(t *testing.T, answer e2e.Answer, name string) *http.Cookie {
		t.Helper()
		for _, each := range (&http.Response{Header: answer.Header}).Cookies() {
			if each.Name == name {
				if !each.HttpOnly || !each.Secure || each.Path != "/" || each.Domain != "" || each.SameSite != http.SameSiteLaxMode {
					t.Errorf("the cookie is %v", each)
				}
				return each
			}
		}
		return nil
	}
	page := begin(t, browser, fixture.Application, nil, "/")
	page.logIn(account.Text("email"))
	landing := get(strings.Replace(page.back, callback, client.Key.HostURL()+"/sso/", 1))

	t.Run("a browser that did not begin gets no session", func(t *testing.T) {
		answer := client.Browser().Want(t, http.StatusFound, landing)
		if answer.Header.Get("Location") != page.back || cookie(t, answer, "__Host-sso") != nil {
			t.Errorf("the header is %v", answer.Header)
		}
	})
	t.Run("the one that began gets it once, until it is closed", func(t *testing.T) {
		session := cookie(t, browser.Want(t, http.StatusFound, landing), "__Host-sso")
		if session == nil || session.MaxAge != 0 || !session.Expires.IsZero() || len(session.Value) < 40 {
			t.Errorf("the session is %v", session)
		}
		if again := cookie(t, browser.Want(t, http.StatusFound, landing), "__Host-sso"); again != nil {
			t.Errorf("a second one is %v", again)
		}
	})
	t.Run("logout clears it", func(t *testing.T) {
		answer := browser.Want(t, http.StatusFound, logoutRequest(hostedRequest(t, fixture.Application, nil)))
		if cleared := cookie(t, answer, "__Host-sso"); cleared == nil || cleared.Value != "" || cleared.Expires.After(time.Now()) {
			t.Errorf("after the logout the cookie is %v", cleared)
		}
	})
	t.Run("an assertion that nobody signed, or a request in its place, lands nowhere", func(t *testing.T) {
		for _, token := range []string{strings.TrimPrefix(page.back, callback+"?jwtResponse=") + "x", hostedRequest(t, fixture.Application, nil), "x"} {
			browser.Refused(t, 400, 400, get(client.Key.HostURL()+"/sso/?jwtResponse="+url.QueryEscape(token)))
		}
	})
}

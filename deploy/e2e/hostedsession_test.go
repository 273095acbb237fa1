package e2e_test

import (
	"crypto/rand"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
)

func TestASessionEndsWithThePasswordAndTheAccount(t *testing.T) {
	for name, change := range map[string]e2e.Object{"new password": {"password": newPassword}, "disabled": {"status": "DISABLED"}} {
		t.Run(name, func(t *testing.T) {
			fixture := newHosted(t)
			account := client.Register(t, fixture.Application.Link(t, "accounts"))
			browser := client.Browser()
			signIn(t, browser, fixture.Application, account.Text("email"))
			redirectAssertion(t, browser, ssoRequest(hostedRequest(t, fixture.Application, nil)))
			client.Update(t, account.Href(), change)
			began := time.Now()
			awaitNoSession(t, browser, fixture.Application)
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("the session lived on for %s", took)
			}
			if name == "disabled" {
				client.Update(t, account.Href(), e2e.Object{"status": "ENABLED"})
				begin(t, browser, fixture.Application, nil, "/")
			}
		})
	}
}

// awaitNoSession waits until a browser has to sign in again.
func awaitNoSession(t *testing.T, browser *e2e.Client, application e2e.Object) {
	t.Helper()
	awaitTrue(t, "the session to be over", func() bool { return !hasSession(t, browser, application) })
}

// hasSession uses the session of a browser, if it has one.
func hasSession(t *testing.T, browser *e2e.Client, application e2e.Object) bool {
	t.Helper()
	answer := browser.Want(t, http.StatusFound, ssoRequest(hostedRequest(t, application, nil)))
	return !strings.HasPrefix(answer.Header.Get("Location"), pageOrigin(t))
}

// A session ends with the limits of the settings: after sessionTti where it is not
// used, and after sessionTtl where it is.
func TestASessionEndsInTime(t *testing.T) {
	fixture := newHosted(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	settings := idSite(t)
	limit := func(idle, absolute any) {
		client.Update(t, settings.Href(), e2e.Object{"sessionTti": idle, "sessionTtl": absolute})
	}
	defer limit(settings["sessionTti"], settings["sessionTtl"])

	t.Run("when it is not used", func(t *testing.T) {
		limit("PT2S", "PT1H")
		browser := client.Browser()
		signIn(t, browser, fixture.Application, account.Text("email"))
		for range 2 { // the token of a page lives as long, in whole seconds
			other := begin(t, client.Browser(), fixture.Application, nil, "/")
			model := e2e.Request{Method: http.MethodGet, URL: fixture.Application.Href(), Header: http.Header{"Authorization": {"Bearer " + other.token}}}
			awaitTrue(t, "the token to be over", func() bool { return other.browser.Call(t, model).Status == http.StatusUnauthorized })
		}
		begin(t, browser, fixture.Application, nil, "/")
	})
	t.Run("when it is used", func(t *testing.T) {
		limit("PT2S", "PT4S")
		for range 5 {
			browser, began := client.Browser(), time.Now()
			signIn(t, browser, fixture.Application, account.Text("email"))
			used, pause := time.Now(), time.Duration(0)
			awaitTrue(t, "the session to be over", func() bool {
				asked := time.Now()
				over := !hasSession(t, browser, fixture.Application)
				used, pause = asked, max(pause, time.Since(used))
				return over
			})
			if took := time.Since(began); pause < 2*time.Second {
				if took < 4*time.Second || took > 10*time.Second {
					t.Errorf("the session lived for %s", took)
				}
				return
			} // else the machine stood still, and the session was not used for as long
		}
		t.Error("the machine stands still for two seconds again and again")
	})
}

func TestWhatAHostedSessionMayNotCall(t *testing.T) {
	fixture, foreign := newHosted(t), newHosted(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	factor := client.Create(t, account.Link(t, "factors"), e2e.Object{"type": "google-authenticator"})
	for name, changes := range map[string]e2e.Object{"before the password": nil, "after the password": {"require_mfa": []string{"sms"}}} {
		t.Run(name, func(t *testing.T) {
			page := begin(t, client.Browser(), fixture.Application, changes, "/")
			if changes != nil {
				page.call(http.StatusOK, http.MethodPost, fixture.Application.Link(t, "loginAttempts"), loginBody(account.Text("email"), e2e.Password))
			}
			for _, call := range []e2e.Request{
				get("/tenants/current"), get(account.Href()), get(fixture.Application.Link(t, "accounts")), get(fixture.Directory.Href() + "?expand=idSiteModel"),
				get(foreign.Application.Href() + "?expand=idSiteModel"), get("/applications"), get(account.Link(t, "apiKeys")), get(account.Link(t, "customData")),
				post(foreign.Application.Link(t, "loginAttempts"), loginBody(account.Text("email"), e2e.Password)),
				post(foreign.Application.Link(t, "accounts"), e2e.Object{"email": "a@example.test", "password": e2e.Password}),
				post(foreign.Application.Link(t, "passwordResetTokens"), e2e.Object{"email": account.Text("email")}),
				post(account.Href(), e2e.Object{"password": newPassword}), post(account.Link(t, "apiKeys"), nil), post(fixture.Application.Href(), e2e.Object{"name": "x"}),
				post(fixture.Application.Href()+"/oauth/token", passwordGrant(account.Text("email"), e2e.Password)),
				get(factor.Href()), get(client.Register(t, fixture.Application.Link(t, "accounts")).Link(t, "factors")),
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
				if answer := client.Call(t, request); answer.Status != http.StatusForbidden || answer.Header.Get("Authorization") == "" {
					t.Errorf("the call with a session token is answered with %s", answer)
				}
				client.Get(t, address)
			}
		})
	}
}

func TestTheOriginsOfHostedPages(t *testing.T) {
	fixture, settings := newHosted(t), idSite(t)
	foreign := "https://pages-" + strings.ToLower(rand.Text()[:8]) + ".example"
	page := begin(t, client.Browser(), fixture.Application, nil, "/")
	model := fixture.Application.Href() + "?expand=idSiteModel"
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
	for _, address := range []string{client.Key.BaseURL + "/nonsense", client.Key.BaseURL + "/applications"} {
		request := from(own, http.MethodOptions)
		request.URL = address
		if answer := client.Want(t, http.StatusUnauthorized, request); answer.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("the preflight of %s has %v", address, answer.Header)
		}
	}
	answer := client.Want(t, http.StatusOK, from(own, http.MethodGet))
	allowed(t, answer, own)
	if exposed := answer.Header.Get("Access-Control-Expose-Headers"); !strings.EqualFold(exposed, "Authorization, "+redirectHeader) {
		t.Errorf("the exposed headers are %s", exposed)
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

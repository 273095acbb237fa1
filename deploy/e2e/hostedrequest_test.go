package e2e_test

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
)

func TestHostedRequestsThatAreRefused(t *testing.T) {
	fixture := newHosted(t)
	now := time.Now().Unix()
	null := json.RawMessage("null")
	endpoints := map[string]func(string) e2e.Request{"login": ssoRequest, "logout": logoutRequest}

	t.Run("where nothing can be trusted, with a page or JSON and no redirect", func(t *testing.T) {
		good := hostedRequest(t, fixture.Application, nil)
		user := client.Create(t, client.Register(t, fixture.Application.Link(t, "accounts")).Link(t, "apiKeys"), nil)
		requests := map[string]string{
			"missing":                    "",
			"no JWT":                     "abc",
			"bad signature":              good[:len(good)-4] + "AAAA",
			"unknown issuer":             hostedRequest(t, fixture.Application, e2e.Object{"iss": "NOBODY"}),
			"no issuer":                  hostedRequest(t, fixture.Application, e2e.Object{"iss": nil}),
			"unknown application":        hostedRequest(t, e2e.Object{"href": client.Key.BaseURL + "/applications/0000000000000000000000"}, nil),
			"no application":             hostedRequest(t, fixture.Directory, nil),
			"no callback":                hostedRequest(t, fixture.Application, e2e.Object{"cb_uri": nil}),
			"null callback":              hostedRequest(t, fixture.Application, e2e.Object{"cb_uri": null}),
			"callback elsewhere":         hostedRequest(t, fixture.Application, e2e.Object{"cb_uri": "https://evil.example/callback"}),
			"callback of another path":   hostedRequest(t, fixture.Application, e2e.Object{"cb_uri": callback + "/../x"}),
			"callback with another user": hostedRequest(t, fixture.Application, e2e.Object{"cb_uri": "https://shop.localhost@evil.example/callback"}),
			"callback of another scheme": hostedRequest(t, fixture.Application, e2e.Object{"cb_uri": "http://shop.localhost/callback"}),
			"another algorithm":          e2e.SignJWT(e2e.Object{"alg": "none"}, e2e.Claims(t, good), client.Key.Secret),
			"the key of an end user": e2e.SignJWT(e2e.Object{"alg": "HS256"},
				e2e.Object{"iss": user.Text("id"), "sub": fixture.Application.Href(), "cb_uri": callback, "iat": now, "jti": rand.Text()}, user.Text("secret")),
			"an assertion": e2e.SignJWT(e2e.Object{"alg": "HS256", "stt": "assertion"}, e2e.Claims(t, good), client.Key.Secret),
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
		begin(t, client.Browser(), fixture.Application, e2e.Object{"jti": used}, "/")
		disabled, unmapped := newOrganization(t), newOrganization(t)
		mapOrganization(t, fixture, disabled)
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
				checkErrorAssertion(t, redirectAssertion(t, client.Browser(), ssoRequest(hostedRequest(t, fixture.Application, refused.changes))), fixture.Application, 400, refused.code)
			})
		}
		begin(t, client.Browser(), fixture.Application, e2e.Object{"state": "", "path": ""}, "/")
	})
	t.Run("where the application is disabled", func(t *testing.T) {
		disabled := authorize(t, client.NewApplication(t), callback)
		client.Update(t, disabled.Href(), e2e.Object{"status": "DISABLED"})
		checkErrorAssertion(t, redirectAssertion(t, client.Browser(), ssoRequest(hostedRequest(t, disabled, nil))), disabled, 400, 10015)
	})
}

func newOrganization(t *testing.T) e2e.Object {
	t.Helper()
	key := strings.ToLower(e2e.Unique("org"))
	organization := client.Create(t, "/organizations", e2e.Object{"name": key, "nameKey": key})
	client.DeleteAtEnd(t, organization.Href())
	return organization
}

func mapOrganization(t *testing.T, fixture e2e.Fixture, organization e2e.Object) {
	t.Helper()
	client.Create(t, "/accountStoreMappings", e2e.Object{
		"application": e2e.Object{"href": fixture.Application.Href()}, "accountStore": e2e.Object{"href": organization.Href()},
	})
}

func TestAHostedRequestIsUsedOnceAmongFiftyTries(t *testing.T) {
	fixture := newHosted(t)
	request := ssoRequest(hostedRequest(t, fixture.Application, nil))
	began, replayed := 0, 0
	for _, answer := range concurrentAnswers(t, 50, request) {
		for answer.Status == http.StatusTooManyRequests { // more at once than one address may have in flight
			answer = client.Call(t, request)
		}
		switch location := answer.Header.Get("Location"); {
		case strings.HasPrefix(location, pageOrigin(t)+"/#/?jwt="):
			began++
		case strings.HasPrefix(location, callback+"?jwtResponse="):
			checkErrorAssertion(t, strings.TrimPrefix(location, callback+"?jwtResponse="), fixture.Application, 400, 11005)
			replayed++
		default:
			t.Errorf("%s leads to %s", answer, location)
		}
	}
	if began != 1 || replayed != 49 {
		t.Errorf("%d began, %d were refused", began, replayed)
	}
}

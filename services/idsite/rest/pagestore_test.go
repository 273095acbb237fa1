package rest_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory/directorytest"
	"github.com/doorward/doorward/services/idsite/idsitetest"
)

// The application has signed which account store a login is for, and the browser writes the bodies: a
// body names another account store only where the request names none, or lets the user name an
// organization. The rule is the same for every call that has an account store.
func TestABrowserCannotChangeTheAccountStoreOfASignedRequest(t *testing.T) {
	p := newPage(t)
	google := p.mapGoogle(t)
	customers := p.peers.Directories.NewDirectory(p.tenant, "Customers of organizations")
	acme := p.peers.Applications.NewOrganization(p.tenant, p.application, "acme", customers, google)
	p.peers.Applications.NewOrganization(p.tenant, p.application, "other", customers, google)
	store := func(href string) string { return `{"href":"` + href + `"}` }
	key := func(name string) string { return `{"nameKey":"` + name + `"}` }
	acmeHref, googleHref := base.To("organizations", acme), base.To("directories", google)
	calls := map[string]func(at string) (*http.Response, string){
		"login": func(at string) (*http.Response, string) {
			value := base64.StdEncoding.EncodeToString([]byte("nobody@example.test:" + idsitetest.Password.Reveal()))
			return p.call(t, http.MethodPost, "/applications/"+p.application.String()+"/loginAttempts",
				`{"type":"basic","value":"`+value+`","accountStore":`+at+`}`)
		},
		"social login": func(at string) (*http.Response, string) {
			token := directorytest.UserToken("1", "jo@example.test").Reveal()
			return p.call(t, http.MethodPost, "/applications/"+p.application.String()+"/loginAttempts",
				`{"providerData":{"providerId":"facebook","accessToken":"`+token+`","accountStore":`+at+`}}`)
		},
		"registration": func(at string) (*http.Response, string) {
			return p.call(t, http.MethodPost, "/applications/"+p.application.String()+"/accounts", `{"email":"","accountStore":`+at+`}`)
		},
		"forgotten password": func(at string) (*http.Response, string) {
			return p.call(t, http.MethodPost, "/applications/"+p.application.String()+"/passwordResetTokens",
				`{"email":"nobody@example.test","accountStore":`+at+`}`)
		},
	}
	for _, c := range []struct {
		name    string
		signed  secure.Claims
		at      string
		refused bool
	}{
		{"the organization of the request, by its nameKey", secure.Claims{"onk": "acme"}, key("ACME"), false},
		{"the organization of the request, by its href", secure.Claims{"onk": "acme"}, store(acmeHref), false},
		{"the organization of the request, whose href is signed", secure.Claims{"ash": acmeHref}, key("acme"), false},
		{"the directory of the request", secure.Claims{"ash": googleHref}, store(googleHref), false},
		{"another organization", secure.Claims{"onk": "acme"}, key("other"), true},
		{"a directory of the organization", secure.Claims{"onk": "acme"}, store(googleHref), true},
		{"an organization in place of a directory", secure.Claims{"ash": googleHref}, key("acme"), true},
		{"another directory", secure.Claims{"ash": googleHref}, store(base.To("directories", customers)), true},
		{"what does not exist", secure.Claims{"ash": googleHref}, store("https://evil.test/v1/directories/x"), true},
		{"two names, of which one is that of the request", secure.Claims{"onk": "acme"}, `{"nameKey":"acme","href":"` + googleHref + `"}`, true},
		{"another organization, which the user may name", secure.Claims{"onk": "acme", "sof": true}, key("other"), false},
		{"an organization in place of a directory, which the user may name", secure.Claims{"ash": googleHref, "sof": true}, key("acme"), false},
		{"a directory, where the user may name an organization", secure.Claims{"onk": "acme", "sof": true}, store(googleHref), true},
		{"an organization, where the request names nothing", secure.Claims{}, key("acme"), false},
	} {
		for call, send := range calls {
			c.signed["jti"] = c.name + call
			p.begin(t, c.signed)
			answer, text := send(c.at)
			if (answer.StatusCode == http.StatusForbidden) != c.refused {
				t.Errorf("%s: the %s answers %d %s, want a refusal: %v", c.name, call, answer.StatusCode, text, c.refused)
			}
			if answer.StatusCode == http.StatusForbidden && answer.Header.Get("Authorization") == "" {
				t.Errorf("%s: the %s ends the session of the page", c.name, call)
			}
		}
	}
}

// A session token authorizes less than an API key: no expansion but that of the page's model, and no
// method in the query.
func TestAPageExpandsNothingAndOverridesNoMethod(t *testing.T) {
	p := newPage(t)
	at := "/applications/" + p.application.String()
	for query, want := range map[string]int{
		"": 200, "?expand=idSiteModel": 200, "?expand=accounts": 403, "?expand=idSiteModel,accounts": 403, "?expand=idSiteModel&expand=tenant": 403,
		"?_method=DELETE": 403, "?_method=GET": 403, "?expand=idSiteModel&%5Fmethod=DELETE": 403,
	} {
		if answer, text := p.call(t, http.MethodGet, at+query, ""); answer.StatusCode != want || answer.Header.Get("Authorization") == "" {
			t.Errorf("GET %s answers %d %s, want %d", query, answer.StatusCode, text, want)
		}
	}
	if answer, text := p.call(t, http.MethodPost, at+"/loginAttempts?_method=DELETE", `{}`); answer.StatusCode != 403 {
		t.Errorf("POST with _method answers %d %s", answer.StatusCode, text)
	}
}

// Some programs write the Origin with a slash at its end.
func TestThePageOfAnOriginWithASlash(t *testing.T) {
	p := newPage(t)
	for origin, want := range map[string]int{pageOrigin + "/": 200, pageOrigin + ":443": 200, pageOrigin + ".evil.test/": 403} {
		answer, text := p.send(t, http.MethodGet, "/session/v1/applications/"+p.application.String(), "", "", "Origin", origin,
			"Authorization", "Bearer "+p.token)
		if answer.StatusCode != want || strings.TrimSuffix(answer.Header.Get("Access-Control-Allow-Origin"), "/") == "" && want == 200 {
			t.Errorf("from %s the answer is %d %s, %v", origin, answer.StatusCode, text, answer.Header)
		}
	}
}

// An organization may have no directory for new accounts, or one that is disabled.
func TestARegistrationAtAnOrganizationThatTakesNoAccounts(t *testing.T) {
	p := newPage(t)
	p.peers.Applications.NewOrganization(p.tenant, p.application, "mirrored", p.mapGoogle(t))
	closed := p.peers.Directories.NewDirectory(p.tenant, "Closed")
	p.peers.Applications.NewOrganization(p.tenant, p.application, "closed", closed)
	p.peers.Directories.Disable(t, id.Ref{Tenant: p.tenant, ID: closed})
	for nameKey, code := range map[string]string{"mirrored": "4600", "closed": "4601"} {
		answer, body := p.call(t, http.MethodPost, "/applications/"+p.application.String()+"/accounts",
			`{"email":"new@example.test","password":"Changeme1!","accountStore":{"nameKey":"`+nameKey+`"}}`)
		if answer.StatusCode != 400 || !strings.Contains(body, `"code":`+code) {
			t.Errorf("a registration at the organization %s is answered %d %s, want the code %s", nameKey, answer.StatusCode, body, code)
		}
	}
}

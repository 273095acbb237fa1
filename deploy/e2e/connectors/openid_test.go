package connectors_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/connectors"
)

// provider is an OpenID provider and how a browser signs in on its page.
type provider struct {
	issuer    string
	newClient func(t testing.TB, redirects ...string) (id, secret string)
	signIn    func(v *htmlBrowser, login string)
	login     string // of a user
	email     string // of that user
	given     string // the user's first name
	denied    func(v *htmlBrowser)
}

func keycloakProvider(t *testing.T) provider {
	k := keycloak(t)
	email := k.NewUser(t, nil)
	return provider{issuer: k.Issuer(), newClient: k.NewClient, login: email, email: email, given: "Kim", signIn: keycloakSignIn}
}

func nodeProvider(t *testing.T) provider {
	o := connectors.StartOpenID(t, authority)
	login := strings.ToLower(e2e.Unique("noa"))
	return provider{issuer: o.Issuer, newClient: o.NewClient, login: login, email: login + "@example.test", given: "Noa", signIn: nodeSignIn, denied: func(v *htmlBrowser) {
		_, path, found := strings.Cut(v.body, `href="`)
		path, _, end := strings.Cut(path, `"`)
		if !found || !end || !strings.HasSuffix(path, "/abort") {
			v.Fatalf("the page is not the provider's login: %s", v.page())
		}
		v.open(o.Issuer + strings.TrimPrefix(path, o.Issuer))
	}}
}

// nodeSignIn logs in and consents.
func nodeSignIn(v *htmlBrowser, login string) {
	v.Helper()
	v.submit(map[string]string{"login": login, "password": "any"})
	v.submit(nil)
}

// openIDDirectory connects a provider that is known by nothing but its issuer.
func openIDDirectory(t *testing.T, application e2e.Object, p provider) e2e.Object {
	t.Helper()
	id, secret := p.newClient(t, clientAPI(t, application)+"/authorize/callback", client.Key.HostURL()+"/sso/provider")
	return connect(t, application, e2e.Object{
		"providerId": e2e.Unique("openid"), "clientId": id, "clientSecret": secret, "discoveryUrl": p.issuer,
		"scope":                []string{"openid", "email", "profile"},
		"userInfoMappingRules": e2e.Object{"items": []e2e.Object{{"name": "sub", "accountAttributes": []string{"customData.subject"}}}},
	})
}

// authorizeAddress begins a login at a directory's provider.
func authorizeAddress(t *testing.T, application, directory e2e.Object) string {
	t.Helper()
	return clientAPI(t, application) + "/authorize?" + url.Values{
		"response_type": {"service_token"}, "account_store_href": {directory.Href()}, "redirect_uri": {shopCallback}, "state": {"s 1"},
	}.Encode()
}

func TestAnOpenIDProviderNeedsOnlyItsIssuer(t *testing.T) {
	for name, start := range map[string]func(*testing.T) provider{"Keycloak": keycloakProvider, "node-oidc-provider": nodeProvider} {
		t.Run(name, func(t *testing.T) {
			p, application := start(t), newShop(t)
			directory := openIDDirectory(t, application, p)
			var first e2e.Object
			t.Run("a user signs in on its page and has an account", func(t *testing.T) {
				v := newHTMLBrowser(t)
				v.open(authorizeAddress(t, application, directory))
				p.signIn(v, p.login)
				query := v.callbackQuery()
				if query.Get("state") != "s 1" {
					t.Errorf("the state is %q", query.Get("state"))
				}
				var claims e2e.Object
				claims, first = redeem(t, application, query)
				if claims["isNewSub"] != true || claims.Text("iss") != application.Href() {
					t.Errorf("the assertion says %v", claims)
				}
				if first.Text("email") != p.email || first.Text("givenName") != p.given || first.Text("status") != "ENABLED" {
					t.Errorf("the account is %v", first)
				}
				data := client.Get(t, first.Link(t, "providerData"))
				if data.Text("accessToken") == "" || data.Object("userInfo").Text("sub") == "" {
					t.Errorf("the provider's data is %v", data)
				}
				if custom := client.Get(t, first.Link(t, "customData")); custom.Text("subject") != data.Object("userInfo").Text("sub") {
					t.Errorf("the mapping rules made %v of %v", custom, data)
				}
				// The same assertion is good for one session only by the Client API; a second visit is what comes next.
				v.open(authorizeAddress(t, application, directory))
				claims, second := redeem(t, application, v.callbackQuery())
				if claims["isNewSub"] != false || second.Href() != first.Href() {
					t.Errorf("the second visit says %v", claims)
				}
			})
			if p.denied != nil {
				t.Run("a user who refuses is redirected with the error", func(t *testing.T) {
					v := newHTMLBrowser(t)
					v.open(authorizeAddress(t, application, directory))
					p.denied(v)
					if query := v.callbackQuery(); query.Get("error") == "" || query.Get("error_description") == "" || query.Get("state") != "s 1" {
						t.Errorf("the callback has %v", query)
					}
				})
			}
			t.Run("the way back works once, and in one browser only", func(t *testing.T) {
				v, other := newHTMLBrowser(t), newHTMLBrowser(t)
				v.open(authorizeAddress(t, application, directory))
				other.open(v.at.String())
				// the other browser's provider session knows nothing of this login; its answer with our state is refused.
				answer := other.http
				response, err := answer.Get(clientAPI(t, application) + "/authorize/callback?code=stolen&state=" + url.QueryEscape(v.at.Query().Get("state")))
				if err != nil {
					t.Fatal(err)
				}
				defer response.Body.Close()
				if location := response.Header.Get("Location"); strings.Contains(location, "jwtResponse") {
					t.Errorf("the other browser is sent to %s", location)
				}
			})
		})
	}
}

package connectors_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/connectors"
)

// provider is an OpenID provider and how a visitor signs in on its page.
type provider struct {
	issuer    string
	newClient func(t testing.TB, redirect string) (id, secret string)
	signIn    func(v *visitor, login string)
	login     string // of a user
	email     string // of that user
	given     string // the user's first name
	denied    func(v *visitor)
}

func keycloakProvider(t *testing.T) provider {
	k := keycloak(t)
	email := k.NewUser(t, nil)
	return provider{issuer: k.Issuer(), newClient: k.NewClient, login: email, email: email, given: "Kim", signIn: keycloakSignIn}
}

func keycloakSignIn(v *visitor, login string) {
	v.Helper()
	if !strings.Contains(v.body, "kc-form-login") {
		v.Fatalf("this is not Keycloak's login: %s", v.page())
	}
	v.submit(map[string]string{"username": login, "password": e2e.Password})
}

func nodeProvider(t *testing.T) provider {
	o := connectors.StartOpenID(t, authority)
	login := strings.ToLower(e2e.Unique("noa"))
	return provider{issuer: o.Issuer, newClient: o.NewClient, login: login, email: login + "@example.test", given: "Noa", signIn: nodeSignIn, denied: func(v *visitor) {
		_, path, found := strings.Cut(v.body, `href="`)
		path, _, end := strings.Cut(path, `"`)
		if !found || !end || !strings.HasSuffix(path, "/abort") {
			v.Fatalf("this is not the provider's login: %s", v.page())
		}
		v.open(o.Issuer + strings.TrimPrefix(path, o.Issuer))
	}}
}

// nodeSignIn logs in and consents.
func nodeSignIn(v *visitor, login string) {
	v.Helper()
	v.submit(map[string]string{"login": login, "password": "any"})
	v.submit(nil)
}

// openIDDirectory connects a provider that is known by nothing but its issuer.
func openIDDirectory(t *testing.T, application e2e.Object, p provider) e2e.Object {
	t.Helper()
	id, secret := p.newClient(t, clientAPI(t, application)+"/authorize/callback")
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
			t.Run("a visitor signs in on its page and has an account", func(t *testing.T) {
				v := newVisitor(t)
				v.open(authorizeAddress(t, application, directory))
				p.signIn(v, p.login)
				query := v.arrived()
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
				claims, second := redeem(t, application, v.arrived())
				if claims["isNewSub"] != false || second.Href() != first.Href() {
					t.Errorf("the second visit says %v", claims)
				}
			})
			if p.denied != nil {
				t.Run("a visitor who refuses comes back with the error", func(t *testing.T) {
					v := newVisitor(t)
					v.open(authorizeAddress(t, application, directory))
					p.denied(v)
					if query := v.arrived(); query.Get("error") == "" || query.Get("error_description") == "" || query.Get("state") != "s 1" {
						t.Errorf("the visitor brings %v", query)
					}
				})
			}
			t.Run("the way back works once, and in one browser only", func(t *testing.T) {
				v, other := newVisitor(t), newVisitor(t)
				v.open(authorizeAddress(t, application, directory))
				other.open(v.at.String())
				// The other visitor's provider session knows nothing of this login; its answer with our state is refused.
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

func TestAProvidersTokensAndCodesSignIn(t *testing.T) {
	k, application := keycloak(t), newShop(t)
	email := k.NewUser(t, nil)
	id, secret := k.NewClient(t, shopCallback)
	name := e2e.Unique("keycloak")
	directory := connect(t, application, e2e.Object{
		"providerId": name, "providerType": "oauth2", "clientId": id, "clientSecret": secret,
		"authorizationEndpoint": k.OpenID("auth"), "tokenEndpoint": k.OpenID("token"), "resourceEndpoint": k.OpenID("userinfo"),
		"idField": "sub", "scope": []string{"openid", "email", "profile"},
	})
	accounts := application.Href() + "/accounts"
	token := k.Token(t, id, secret, email)
	created := client.Create(t, accounts, e2e.Object{"providerData": e2e.Object{"providerId": name, "accessToken": token}})
	if created.Text("email") != email || created.Text("surname") != "Ruiz" {
		t.Errorf("the account is %v", created)
	}
	if client.Get(t, created.Link(t, "directory")).Href() != directory.Href() {
		t.Error("it is in another directory")
	}

	t.Run("a second time the account is found, and its names follow", func(t *testing.T) {
		users, _ := k.Admin(t, http.MethodGet, "/users?exact=true&email="+url.QueryEscape(email), nil).([]any)
		user, _ := users[0].(map[string]any)
		k.Admin(t, http.MethodPut, "/users/"+user["id"].(string), e2e.Object{"email": email, "emailVerified": true, "firstName": "Kit", "lastName": "Ruiz"})
		again := client.WantObject(t, http.StatusOK, post(accounts, e2e.Object{"providerData": e2e.Object{"providerId": name, "accessToken": token}}))
		if again.Href() != created.Href() || again.Text("givenName") != "Kit" {
			t.Errorf("the account is %v", again)
		}
	})
	t.Run("a code is exchanged, once", func(t *testing.T) {
		body := e2e.Object{"providerData": e2e.Object{"providerId": name, "code": code(t, k, id, email), "redirectUri": shopCallback}}
		if again := client.WantObject(t, http.StatusOK, post(accounts, body)); again.Href() != created.Href() {
			t.Errorf("the account is %v", again)
		}
		client.Refused(t, 400, 7200, post(accounts, body))
	})
	t.Run("the grant of the token endpoint takes both", func(t *testing.T) {
		for _, what := range []url.Values{{"accessToken": {token}}, {"code": {code(t, k, id, email)}, "redirectUri": {shopCallback}}} {
			what.Set("grant_type", "service_social")
			what.Set("providerId", name)
			answer := client.Token(t, application.Href(), what)
			if answer.Text("refresh_token") == "" {
				t.Errorf("the tokens are %v", answer)
			}
		}
	})
	t.Run("what the provider refuses is said with its words", func(t *testing.T) {
		refused := client.Refused(t, 400, 7200, post(accounts, e2e.Object{"providerData": e2e.Object{"providerId": name, "accessToken": "forged"}}))
		if text := refused.Text("developerMessage"); !strings.Contains(text, "error message: 401 Unauthorized") {
			t.Errorf("it says %q", text)
		}
		client.Refused(t, 400, 7200, post(accounts, e2e.Object{"providerData": e2e.Object{"providerId": name, "code": "forged", "redirectUri": shopCallback}}))
		client.Refused(t, 400, 2000, post(accounts, e2e.Object{"providerData": e2e.Object{"providerId": name, "code": "a", "accessToken": "b"}}))
		client.Refused(t, 400, 5201, post(accounts, e2e.Object{"providerData": e2e.Object{"providerId": "nobody", "accessToken": "b"}}))
	})
	t.Run("a disabled account stays out", func(t *testing.T) {
		client.Update(t, created.Href(), e2e.Object{"status": "DISABLED"})
		client.Refused(t, 400, 7101, post(accounts, e2e.Object{"providerData": e2e.Object{"providerId": name, "accessToken": token}}))
		client.Update(t, created.Href(), e2e.Object{"status": "ENABLED"})
	})
	t.Run("another person with an address that is not verified does not get it", func(t *testing.T) {
		k.Admin(t, http.MethodDelete, "/users/"+userID(t, k, email), nil)
		k.NewUser(t, e2e.Object{"username": e2e.Unique("thief"), "email": email, "emailVerified": false})
		answer := client.Call(t, post(accounts, e2e.Object{"providerData": e2e.Object{"providerId": name, "accessToken": k.Token(t, id, secret, email)}}))
		if answer.Status == http.StatusOK {
			t.Errorf("an account of somebody else was handed out: %s", answer)
		}
	})
}

// code signs in at Keycloak as an application does and returns the code.
func code(t *testing.T, k *connectors.Keycloak, id, email string) string {
	t.Helper()
	v := newVisitor(t)
	v.open(k.OpenID("auth") + "?" + url.Values{
		"client_id": {id}, "response_type": {"code"}, "redirect_uri": {shopCallback}, "scope": {"openid email profile"}, "state": {"x"},
	}.Encode())
	keycloakSignIn(v, email)
	found := v.arrived().Get("code")
	if found == "" {
		t.Fatalf("no code came back: %v", v.arrived())
	}
	return found
}

// userID is Keycloak's own id of a user.
func userID(t *testing.T, k *connectors.Keycloak, email string) string {
	t.Helper()
	users, _ := k.Admin(t, http.MethodGet, "/users?exact=true&email="+url.QueryEscape(email), nil).([]any)
	if len(users) != 1 {
		t.Fatalf("Keycloak has the users %v", users)
	}
	user, _ := users[0].(map[string]any)
	id, _ := user["id"].(string)
	return id
}

package connectors_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/connectors"
)

func TestAProvidersTokensAndCodesSignIn(t *testing.T) {
	k, application := keycloak(t), newShop(t)
	email := k.NewUser(t, nil)
	id, secret := k.NewClient(t, shopCallback)
	name := e2e.Unique("keycloak")
	directory := connect(t, application, e2e.Object{
		"providerId": name, "providerType": "oauth2", "clientId": id, "clientSecret": secret,
		"authorizationEndpoint": k.OpenID("auth"), "tokenEndpoint": k.OpenID("token"), "resourceEndpoint": k.OpenID("userinfo"),
		"introspectionEndpoint": k.OpenID("token/introspect"), "idField": "sub", "scope": []string{"openid", "email", "profile"},
	})
	accounts := application.Href() + "/accounts"
	token := k.Token(t, id, secret, email)
	created := client.Create(t, accounts, e2e.Object{"providerData": e2e.Object{"providerId": name, "accessToken": token}})
	if created.Text("email") != email || created.Text("surname") != "Ruiz" {
		t.Errorf("the account is %v", created)
	}
	if client.Get(t, created.Link(t, "directory")).Href() != directory.Href() {
		t.Error("the account is in another directory")
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
			t.Errorf("the refusal says %q", text)
		}
		client.Refused(t, 400, 7200, post(accounts, e2e.Object{"providerData": e2e.Object{"providerId": name, "code": "forged", "redirectUri": shopCallback}}))
		client.Refused(t, 400, 2000, post(accounts, e2e.Object{"providerData": e2e.Object{"providerId": name, "code": "a", "accessToken": "b"}}))
		client.Refused(t, 400, 5201, post(accounts, e2e.Object{"providerData": e2e.Object{"providerId": "nobody", "accessToken": "b"}}))
	})
	t.Run("a token of another client of the provider is refused", func(t *testing.T) {
		otherID, otherSecret := k.NewClient(t, shopCallback)
		foreign := k.Token(t, otherID, otherSecret, email)
		client.Refused(t, 400, 7203, post(accounts, e2e.Object{"providerData": e2e.Object{"providerId": name, "accessToken": foreign}}))
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
	v := newHTMLBrowser(t)
	v.open(k.OpenID("auth") + "?" + url.Values{
		"client_id": {id}, "response_type": {"code"}, "redirect_uri": {shopCallback}, "scope": {"openid email profile"}, "state": {"x"},
	}.Encode())
	keycloakSignIn(v, email)
	found := v.callbackQuery().Get("code")
	if found == "" {
		t.Fatalf("no code came back: %v", v.callbackQuery())
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

func keycloakSignIn(v *htmlBrowser, login string) {
	v.Helper()
	if !strings.Contains(v.body, "kc-form-login") {
		v.Fatalf("the page is not Keycloak's login: %s", v.page())
	}
	v.submit(map[string]string{"username": login, "password": e2e.Password})
}

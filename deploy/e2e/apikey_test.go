package e2e_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/doorward/doorward/deploy/e2e"
)

// The users of an application call it with API keys of their own: it looks a key
// up by its id, or lets the service make a token of it.
func TestAUsersKeyIsForTheApplicationsThatReachIt(t *testing.T) {
	fixture, elsewhere := client.NewFixture(t), client.NewFixture(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	key := client.Create(t, account.Link(t, "apiKeys"), e2e.Object{"name": "laptop"})
	found := func(t *testing.T, application e2e.Object) []e2e.Object {
		t.Helper()
		return client.Get(t, application.Link(t, "apiKeys")+"?id="+key.Text("id")+"&expand=account").Items(t)
	}
	grant := func(id, secret string) url.Values {
		return url.Values{"grant_type": {"client_credentials"}, id: {key.Text("id")}, secret: {key.Text("secret")}}
	}
	ofApplication := func(application e2e.Object) string { return application.Href() + "/oauth/token" }

	t.Run("it is found by its id, with its secret", func(t *testing.T) {
		items := found(t, fixture.Application)
		if len(items) != 1 || items[0].Text("secret") != key.Text("secret") || items[0].Object("account").Text("email") != account.Text("email") {
			t.Errorf("the collection has the keys %v", items)
		}
		if items := found(t, elsewhere.Application); len(items) != 0 {
			t.Errorf("another application found %v", items)
		}
	})
	t.Run("it is exchanged for an access token and no refresh token", func(t *testing.T) {
		for _, form := range []url.Values{grant("client_id", "client_secret"), grant("apiKeyId", "apiKeySecret")} {
			token := client.Token(t, fixture.Application.Href(), form)
			if _, given := token["refresh_token"]; given || token.Text("service_access_token_href") == "" {
				t.Errorf("the token endpoint answered %v", token)
			}
			client.Want(t, http.StatusFound, validate(fixture.Application, token.Text("access_token")))
		}
		oauthRefused(t, 400, 10019, "invalid_client", post(ofApplication(elsewhere.Application), grant("client_id", "client_secret")))
	})
	t.Run("it is no key to the management API", func(t *testing.T) {
		user := client.With(key.Text("id"), key.Text("secret"))
		checkUnauthorized(t, user.Want(t, http.StatusUnauthorized, get("/tenants/current")))
		checkUnauthorized(t, user.Want(t, http.StatusUnauthorized, post(ofApplication(fixture.Application), grant("client_id", "client_secret"))))
	})
	t.Run("a disabled account is found, as disabled, where the key was found before", func(t *testing.T) {
		client.Update(t, account.Href(), e2e.Object{"status": "DISABLED"})
		if items := found(t, fixture.Application); len(items) != 1 || items[0].Object("account").Text("status") != "DISABLED" {
			t.Errorf("the key of a disabled account is found as %v", items)
		}
		if items := found(t, elsewhere.Application); len(items) != 0 {
			t.Errorf("another application found %v", items)
		}
		oauthRefused(t, 400, 10019, "invalid_client", post(ofApplication(fixture.Application), grant("client_id", "client_secret")))
		client.Update(t, account.Href(), e2e.Object{"status": "ENABLED"})
		client.Token(t, fixture.Application.Href(), grant("client_id", "client_secret"))
	})
	t.Run("a disabled key is shown and gets no token", func(t *testing.T) {
		whole := client.Get(t, key.Href()+"?expand=account,tenant")
		whole["status"] = "disabled"
		client.Update(t, key.Href(), whole)
		if items := found(t, fixture.Application); len(items) != 1 || items[0].Text("status") != "DISABLED" || items[0].Text("name") != "laptop" {
			t.Errorf("the disabled key is found as %v", items)
		}
		oauthRefused(t, 400, 10019, "invalid_client", post(ofApplication(fixture.Application), grant("client_id", "client_secret")))
	})
	t.Run("a deleted one is nowhere", func(t *testing.T) {
		client.Delete(t, key.Href())
		client.NotFound(t, key.Href())
		if items := found(t, fixture.Application); len(items) != 0 {
			t.Errorf("the deleted key is found as %v", items)
		}
	})
}

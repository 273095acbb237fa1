package connectors_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/doorward/doorward/deploy/e2e"
)

// Keycloak knows Doorward by the address of its discovery document, and ends its own session with that
// of Doorward.
func TestKeycloakBrokersAnOpenIDProvider(t *testing.T) {
	k, callback, fixture := keycloak(t), callbackPage(t), client.NewFixture(t)
	account := client.Register(t, fixture.Directory.Link(t, "accounts"))
	issuer, alias := openIDIssuer(t, fixture.Application), strings.ToLower(e2e.Unique("doorward"))
	clientID, secret := newOpenIDClient(t, fixture.Application, e2e.Object{
		"name": "Keycloak", "redirectUris": []string{k.Issuer() + "/broker/" + alias + "/endpoint"},
		"backchannelLogoutUri": k.OpenID("logout/backchannel-logout"),
	})
	said, _ := k.Admin(t, http.MethodPost, "/identity-provider/import-config", e2e.Object{
		"providerId": "oidc", "fromUrl": issuer + "/.well-known/openid-configuration",
	}).(map[string]any)
	maps.Copy(said, e2e.Object{
		"clientId": clientID, "clientSecret": secret, "clientAuthMethod": "client_secret_basic",
		"defaultScope": "openid profile email", "pkceEnabled": "true", "pkceMethod": "S256", "backchannelSupported": "true",
	})
	k.Admin(t, http.MethodPost, "/identity-provider/instances", e2e.Object{
		"alias": alias, "providerId": "oidc", "enabled": true, "trustEmail": true, "config": said,
	})
	id, _ := k.NewClient(t, callback)

	b := openBrowser(t)
	b.do(chromedp.Navigate(k.OpenID("auth") + "?" + url.Values{
		"client_id": {id}, "response_type": {"code"}, "redirect_uri": {callback}, "scope": {"openid"}, "state": {"x"},
		"kc_idp_hint": {alias},
	}.Encode()))
	b.logIn(account)
	if query := b.awaitCallback(); query.Get("code") == "" {
		t.Fatalf("the browser brings %v", query)
	}
	users, _ := k.Admin(t, http.MethodGet, "/users?exact=true&email="+url.QueryEscape(account.Text("email")), nil).([]any)
	if len(users) != 1 {
		t.Fatalf("Keycloak has the users %v", users)
	}
	user, _ := users[0].(map[string]any)
	sessions := func() []any {
		list, _ := k.Admin(t, http.MethodGet, "/users/"+e2e.Object(user).Text("id")+"/sessions", nil).([]any)
		return list
	}
	if user["firstName"] != "Jo" || user["lastName"] != "Doe" || len(sessions()) != 1 {
		t.Errorf("Keycloak has the user %v with the sessions %v", user, sessions())
	}
	client.Delete(t, account.Href()+"/sessions")
	err := e2e.Await(t.Context(), "the end of Keycloak's session", func(context.Context) error {
		if found := sessions(); len(found) > 0 {
			return fmt.Errorf("Keycloak has the sessions %v", found)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

package connectors_test

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/connectors"
)

// serviceProvider returns the metadata of a SAML directory, as XML and as JSON.
func serviceProvider(t *testing.T, directory e2e.Object) (xml []byte, object e2e.Object) {
	t.Helper()
	object = client.Get(t, directory.Href()+"/provider?expand=serviceProviderMetadata").Object("serviceProviderMetadata")
	return document(t, object.Href(), "application/samlmetadata+xml"), client.WantObject(t, http.StatusOK, e2e.Request{
		Method: http.MethodGet, URL: object.Href(), Header: http.Header{"Accept": {"application/json"}},
	})
}

// document reads what need not be JSON.
func document(t *testing.T, address, accept string) []byte {
	t.Helper()
	return client.Want(t, http.StatusOK, e2e.Request{Method: http.MethodGet, URL: address, Header: http.Header{"Accept": {accept}}}).Body
}

// samlDirectory is a directory of an identity provider, with two rules for attributes.
func samlDirectory(t *testing.T, application e2e.Object, login, entityID, certificate string) e2e.Object {
	t.Helper()
	return connect(t, application, e2e.Object{
		"providerId": "saml", "ssoLoginUrl": login, "ssoLogoutUrl": login, "encodedX509SigningCert": certificate, "entityId": entityID,
		"attributeStatementMappingRules": e2e.Object{"items": []e2e.Object{
			{"name": "login", "accountAttributes": []string{"customData.login"}},
			{"name": "team", "accountAttributes": []string{"customData.team"}},
		}},
	})
}

// samlLogin begins a login at an identity provider.
func samlLogin(t *testing.T, application e2e.Object, changes e2e.Object) string {
	t.Helper()
	return application.Href() + "/saml/sso/idpRedirect?accessToken=" + requestJWT(t, application, changes)
}

// message is the response that the page at hand would post, decoded.
func (v *htmlBrowser) message() string {
	v.Helper()
	raw, err := base64.StdEncoding.DecodeString(v.form().values.Get("SAMLResponse"))
	if err != nil {
		v.Fatal(err)
	}
	return string(raw)
}

func TestKeycloakIsASAMLIdentityProvider(t *testing.T) {
	k, application := keycloak(t), newShop(t)
	directory := samlDirectory(t, application, k.SAML(), k.Issuer(), k.Certificate(t))
	metadata, _ := serviceProvider(t, directory)
	id, initiated := k.NewServiceProvider(t, metadata, e2e.Object{
		"saml.client.signature": "true", "saml.assertion.signature": "true", "saml.encrypt": "false",
	})
	email := k.NewUser(t, nil)
	var first e2e.Object

	t.Run("a user signs in on its page and has an account", func(t *testing.T) {
		v := newHTMLBrowser(t)
		v.open(samlLogin(t, application, e2e.Object{"ash": directory.Href()}))
		keycloakSignIn(v, email)
		v.submit(nil)
		var claims e2e.Object
		claims, first = redeem(t, application, v.callbackQuery())
		if claims["isNewSub"] != true || claims.Text("state") != "a b~?ü" || claims.Text("irt") == "" || claims.Text("aud") != client.Key.ID {
			t.Errorf("the assertion says %v", claims)
		}
		if first.Text("email") != email || first.Text("givenName") != "Kim" || first.Text("surname") != "Ruiz" {
			t.Errorf("the account is %v", first)
		}
		if custom := client.Get(t, first.Link(t, "customData")); custom.Text("login") != email {
			t.Errorf("the rules made %v", custom)
		}
		if data := client.Get(t, first.Link(t, "providerData")); data.Text("mail") != email || data.Text("providerId") != "saml" {
			t.Errorf("the provider's data is %v", data)
		}
	})
	t.Run("a second visit finds it, in the only SAML directory without naming it", func(t *testing.T) {
		v := newHTMLBrowser(t)
		v.open(samlLogin(t, application, nil))
		keycloakSignIn(v, email)
		v.submit(nil)
		if claims, again := redeem(t, application, v.callbackQuery()); claims["isNewSub"] != false || again.Href() != first.Href() {
			t.Errorf("the assertion says %v", claims)
		}
	})
	t.Run("a response is good once", func(t *testing.T) {
		v := newHTMLBrowser(t)
		v.open(samlLogin(t, application, nil))
		keycloakSignIn(v, email)
		again := *v
		v.submit(nil)
		redeem(t, application, v.callbackQuery())
		again.submit(nil)
		if refused := refusal(t, again.callbackQuery()); refused["code"] != 10100.0 {
			t.Errorf("the second time brings %v", again.callbackQuery())
		}
	})
	t.Run("a response that was changed is refused", func(t *testing.T) {
		v := newHTMLBrowser(t)
		v.open(samlLogin(t, application, nil))
		keycloakSignIn(v, email)
		forged := strings.ReplaceAll(v.message(), email, "owner@example.test")
		v.submit(map[string]string{"SAMLResponse": base64.StdEncoding.EncodeToString([]byte(forged))})
		if refused := refusal(t, v.callbackQuery()); refused["code"] != 10101.0 {
			t.Errorf("the changed response is refused with %v", refused)
		}
	})
	t.Run("a login may begin there, by the relay state of the application", func(t *testing.T) {
		policy := client.Get(t, application.Link(t, "samlPolicy"))
		states := client.Get(t, policy.Link(t, "serviceProvider")).Link(t, "defaultRelayStates")
		state := client.WantObject(t, http.StatusOK, post(states, e2e.Object{"callbackUri": shopCallback, "state": "from there"})).Text("defaultRelayState")
		v := newHTMLBrowser(t)
		v.open(k.SAML() + "/clients/" + initiated + "?RelayState=" + url.QueryEscape(state))
		keycloakSignIn(v, email)
		v.submit(map[string]string{"RelayState": state})
		if claims, again := redeem(t, application, v.callbackQuery()); claims.Text("state") != "from there" || again.Href() != first.Href() {
			t.Errorf("the assertion says %v", claims)
		}
	})
	t.Run("an encrypted assertion is read", func(t *testing.T) {
		it, _ := k.Admin(t, http.MethodGet, "/clients/"+id, nil).(map[string]any)
		settings, _ := it["attributes"].(map[string]any)
		settings["saml.encrypt"] = "true" // for the certificate that it has from the metadata
		k.Admin(t, http.MethodPut, "/clients/"+id, it)
		v := newHTMLBrowser(t)
		v.open(samlLogin(t, application, nil))
		keycloakSignIn(v, email)
		if text := v.message(); strings.Contains(text, email) || !strings.Contains(text, "EncryptedAssertion") {
			t.Errorf("the assertion is not encrypted: %s", text)
		}
		v.submit(nil)
		if _, again := redeem(t, application, v.callbackQuery()); again.Href() != first.Href() {
			t.Errorf("the account is %v", again)
		}
	})
}

func TestPySAML2IsASAMLIdentityProvider(t *testing.T) {
	idp, application := connectors.NewPySAML(t, authority), newShop(t)
	directory := samlDirectory(t, application, idp.URL+"/idp/sso", idp.URL+"/idp/metadata", idp.Certificate)
	metadata, object := serviceProvider(t, directory)
	certificate := string(document(t, object.Link(t, "x509SigningCert"), "application/pkix-cert"))
	email := strings.ToLower(e2e.Unique("ada")) + "@example.test"
	user := connectors.SAMLUser{NameID: email, Attributes: map[string][]string{
		"mail": {email}, "givenName": {"Ada"}, "sn": {"Ōe"}, "team": {"blue", "<red> & more"},
	}}
	for name, options := range map[string]connectors.SAMLOptions{
		"the response is signed":  {SignResponse: true},
		"the assertion is signed": {SignAssertion: true},
		"both are signed":         {SignResponse: true, SignAssertion: true},
	} {
		t.Run(name, func(t *testing.T) {
			idp.Start(t, metadata, user, options)
			v := newHTMLBrowser(t)
			v.open(samlLogin(t, application, e2e.Object{"ash": directory.Href()}))
			v.submit(nil)
			_, account := redeem(t, application, v.callbackQuery())
			if account.Text("email") != email || account.Text("surname") != "Ōe" {
				t.Errorf("the account is %v", account)
			}
			if data := client.Get(t, account.Link(t, "providerData")); len(data["team"].([]any)) != 2 {
				t.Errorf("the provider's data is %v", data)
			}
		})
	}
	// Triple DES is what pysaml2 encrypts with, and nothing else; Keycloak is tried with what is accepted.
	for name, options := range map[string]connectors.SAMLOptions{
		"what nobody signed is refused":                {},
		"what is encrypted with Triple DES is refused": {SignResponse: true, SignAssertion: true, EncryptFor: certificate},
	} {
		t.Run(name, func(t *testing.T) {
			idp.Start(t, metadata, user, options)
			v := newHTMLBrowser(t)
			v.open(samlLogin(t, application, nil))
			v.submit(nil)
			if refused := refusal(t, v.callbackQuery()); refused["code"] != 10101.0 {
				t.Errorf("the response is refused with %v", refused)
			}
		})
	}
	t.Run("a login may begin there, also without a relay state", func(t *testing.T) {
		idp.Start(t, metadata, user, connectors.SAMLOptions{SignAssertion: true})
		v := newHTMLBrowser(t)
		v.open(idp.URL + "/idp/start?sp=" + url.QueryEscape(object.Text("entityId")))
		v.submit(nil)
		if _, account := redeem(t, application, v.callbackQuery()); account.Text("email") != email {
			t.Errorf("the account is %v", account)
		}
	})
}

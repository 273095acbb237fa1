package connectors_test

import (
	"bytes"
	"encoding/json"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/connectors"
)

// identityProvider is an application as a SAML identity provider, whose assertions
// have the attributes mail, first, last and roles, and its metadata.
func identityProvider(t *testing.T, application e2e.Object) (provider e2e.Object, metadata []byte) {
	t.Helper()
	provider = client.Get(t, client.Get(t, application.Link(t, "samlPolicy")).Link(t, "identityProvider"))
	client.Update(t, provider.Link(t, "attributeStatementMappingRules"), e2e.Object{"items": []e2e.Object{
		{"name": "mail", "accountAttributes": []string{"email"}},
		{"name": "first", "accountAttributes": []string{"givenName"}},
		{"name": "last", "accountAttributes": []string{"surname"}},
		{"name": "roles", "accountAttributes": []string{"customData.roles"}},
	}})
	return provider, document(t, provider.Link(t, "metadata"), "application/samlmetadata+xml")
}

// register registers a service provider with the identity provider.
func register(t *testing.T, provider e2e.Object, fields e2e.Object) e2e.Object {
	t.Helper()
	service := client.Create(t, "/registeredSamlServiceProviders", fields)
	client.DeleteAtEnd(t, service.Href())
	client.Create(t, provider.Link(t, "samlServiceProviderRegistrations"), e2e.Object{"serviceProvider": e2e.Object{"href": service.Href()}})
	return service
}

func TestPySAML2IsASAMLServiceProvider(t *testing.T) {
	fixture := client.NewFixture(t)
	provider, metadata := identityProvider(t, fixture.Application)
	sp := connectors.NewPySAML(t, authority)
	sp.Start(t, metadata, connectors.SAMLUser{}, connectors.SAMLOptions{SignAssertion: true})
	account := client.Register(t, fixture.Directory.Link(t, "accounts"))
	client.Update(t, account.Link(t, "customData"), e2e.Object{"roles": []string{"reader", "a <b> & \"c\""}})
	service := register(t, provider, e2e.Object{
		"assertionConsumerServiceUrl": sp.URL + "/sp/acs", "entityId": sp.URL + "/sp/metadata", "encodedX509Certificate": sp.Certificate,
	})

	// The application's own login page stands in the place of the hosted one.
	login := func(t *testing.T) e2e.Object {
		t.Helper()
		v := newHTMLBrowser(t)
		v.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		response, err := v.http.Get(sp.URL + "/sp/login?relay=" + url.QueryEscape("back to ü"))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		location := response.Header.Get("Location")
		target, err := url.Parse(location)
		if err != nil || !strings.HasPrefix(location, provider.Link(t, "ssoLoginEndpoint")) {
			t.Fatalf("the service provider redirects its user to %q", location)
		}
		query := target.Query()
		verified := client.WantObject(t, http.StatusOK, post(provider.Href()+"/authnVerifications", e2e.Object{
			"samlRequest": query.Get("SAMLRequest"), "relayState": query.Get("RelayState"), "queryString": target.RawQuery,
		}))
		if verified.Object("serviceProvider").Href() != service.Href() || verified.Text("relayState") != "back to ü" {
			t.Fatalf("the request is %v", verified)
		}
		answer := client.WantObject(t, http.StatusOK, post(provider.Href()+"/samlResponses", e2e.Object{
			"account": e2e.Object{"href": account.Href()}, "serviceProvider": e2e.Object{"href": service.Href()},
			"requestId": verified["requestId"], "authnIssueInstant": verified["authnIssueInstant"],
		}))
		received, err := v.http.PostForm(sp.URL+"/sp/acs", url.Values{"SAMLResponse": {answer.Text("value")}, "RelayState": {verified.Text("relayState")}})
		if err != nil {
			t.Fatal(err)
		}
		defer received.Body.Close()
		var said e2e.Object
		if err := json.NewDecoder(received.Body).Decode(&said); err != nil || received.StatusCode != http.StatusOK {
			t.Fatalf("pysaml2 refuses with %d: %v", received.StatusCode, err)
		}
		return said
	}

	t.Run("it takes the assertion, and xmlsec1 verifies it", func(t *testing.T) {
		said := login(t)
		if said.Text("nameId") != account.Text("email") || said.Text("issuer") != entityID(t, provider) || said.Text("relayState") != "back to ü" {
			t.Errorf("the service provider read %v", said)
		}
		attributes := said.Object("attributes")
		if roles, _ := attributes["roles"].([]any); len(roles) != 2 || roles[1] != `a <b> & "c"` {
			t.Errorf("the service provider read the attributes %v", attributes)
		}
		certificate := string(document(t, provider.Link(t, "x509SigningCert"), "application/pkix-cert"))
		for _, element := range []string{"Assertion", "Response"} {
			if err := connectors.VerifySignature(t, said.Text("response"), element, certificate); err != nil {
				t.Error(err)
			}
		}
		forged := strings.Replace(said.Text("response"), account.Text("email"), "owner@example.test", 1)
		if err := connectors.VerifySignature(t, forged, "Assertion", certificate); err == nil {
			t.Error("xmlsec1 verifies a changed assertion too")
		}
	})
	t.Run("names of a visit and names of a service differ", func(t *testing.T) {
		client.Update(t, service.Href(), e2e.Object{"nameIdFormat": "PERSISTENT"})
		one, two := login(t), login(t)
		if one.Text("nameId") != two.Text("nameId") || one.Text("nameId") == account.Text("email") || !strings.HasSuffix(one.Text("format"), ":persistent") {
			t.Errorf("the persistent names are %v and %v", one, two)
		}
		client.Update(t, service.Href(), e2e.Object{"nameIdFormat": "TRANSIENT"})
		one, two = login(t), login(t)
		if one.Text("nameId") == two.Text("nameId") || !strings.HasSuffix(one.Text("format"), ":transient") {
			t.Errorf("the transient names are %v and %v", one, two)
		}
	})
	t.Run("a request that was changed is refused", func(t *testing.T) {
		v := newHTMLBrowser(t)
		v.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		response, err := v.http.Get(sp.URL + "/sp/login?relay=here")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		target, err := url.Parse(response.Header.Get("Location"))
		if err != nil {
			t.Fatal(err)
		}
		query := target.Query()
		changed := strings.Replace(target.RawQuery, "RelayState=here", "RelayState=there", 1)
		client.Refused(t, 400, 2006, post(provider.Href()+"/authnVerifications", e2e.Object{
			"samlRequest": query.Get("SAMLRequest"), "relayState": "there", "queryString": changed,
		}))
	})
}

// entityID is the name of an identity provider in its metadata.
func entityID(t *testing.T, provider e2e.Object) string {
	t.Helper()
	return client.WantObject(t, http.StatusOK, e2e.Request{
		Method: http.MethodGet, URL: provider.Link(t, "metadata"), Header: http.Header{"Accept": {"application/json"}},
	}).Text("entityId")
}

// brokered lets Keycloak sign users in at our identity provider and returns where
// such a login begins.
func brokered(t *testing.T, k *connectors.Keycloak, application e2e.Object, callback string) string {
	t.Helper()
	provider, metadata := identityProvider(t, application)
	alias := strings.ToLower(e2e.Unique("doorward"))
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	if err := form.WriteField("providerId", "saml"); err != nil {
		t.Fatal(err)
	}
	part, err := form.CreateFormFile("file", "metadata.xml")
	if err == nil {
		_, err = part.Write(metadata)
	}
	if err == nil {
		err = form.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	said, _ := k.Admin(t, http.MethodPost, "/identity-provider/import-config", connectors.Upload{ContentType: form.FormDataContentType(), Body: body.Bytes()}).(map[string]any)
	config := e2e.Object(said)
	name := k.Issuer() + "/" + alias
	settings := e2e.Object{
		"entityId": name, "wantAuthnRequestsSigned": "true", "validateSignature": "true", "wantAssertionsSigned": "true",
		"postBindingResponse": "true", "postBindingAuthnRequest": "false", "principalType": "SUBJECT", "syncMode": "IMPORT",
		"nameIDPolicyFormat": "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress", "signatureAlgorithm": "RSA_SHA256",
	}
	for field, value := range settings {
		config[field] = value
	}
	k.Admin(t, http.MethodPost, "/identity-provider/instances", e2e.Object{
		"alias": alias, "providerId": "saml", "enabled": true, "trustEmail": true, "config": config,
	})
	for attribute, property := range map[string]string{"mail": "email", "first": "firstName", "last": "lastName"} {
		k.Admin(t, http.MethodPost, "/identity-provider/instances/"+alias+"/mappers", e2e.Object{
			"name": attribute, "identityProviderAlias": alias, "identityProviderMapper": "saml-user-attribute-idp-mapper",
			"config": e2e.Object{"syncMode": "INHERIT", "attribute.name": attribute, "user.attribute": property},
		})
	}
	register(t, provider, e2e.Object{
		"assertionConsumerServiceUrl": k.Issuer() + "/broker/" + alias + "/endpoint", "entityId": name, "encodedX509Certificate": k.Certificate(t),
	})
	id, _ := k.NewClient(t, callback)
	return k.OpenID("auth") + "?" + url.Values{
		"client_id": {id}, "response_type": {"code"}, "redirect_uri": {callback}, "scope": {"openid"}, "state": {"x"}, "kc_idp_hint": {alias},
	}.Encode()
}

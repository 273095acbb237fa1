package e2e_test

import (
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/doorward/doorward/deploy/e2e"
)

// identityProvider returns the SAML identity provider of an application.
func identityProvider(t *testing.T, application e2e.Object) e2e.Object {
	t.Helper()
	return client.Get(t, client.Get(t, application.Link(t, "samlPolicy")).Link(t, "identityProvider"))
}

// port is that of the deployment's address where it is not the usual one, with the
// colon.
func port(t *testing.T) string {
	t.Helper()
	host, err := url.Parse(client.Key.HostURL())
	if err != nil {
		t.Fatal(err)
	}
	if host.Port() == "" {
		return ""
	}
	return ":" + host.Port()
}

// document reads what need not be JSON.
func document(t *testing.T, address, accept string) e2e.Answer {
	t.Helper()
	return client.Want(t, http.StatusOK, e2e.Request{Method: http.MethodGet, URL: address, Header: http.Header{"Accept": {accept}}})
}

func TestAnApplicationIsASAMLIdentityProvider(t *testing.T) {
	fixture := client.NewFixture(t)
	policy := client.Get(t, fixture.Application.Href()+"?expand=samlPolicy").Object("samlPolicy")
	address := policy.Link(t, "identityProvider")

	certificates := make([]string, 20)
	t.Run("whose key pair is made once", func(t *testing.T) {
		var group sync.WaitGroup
		for i := range certificates {
			group.Go(func() { certificates[i] = client.Get(t, address).Text("shaFingerprint") })
		}
		group.Wait()
		for _, fingerprint := range certificates {
			if fingerprint != certificates[0] {
				t.Fatalf("the identity provider has the keys %v", certificates)
			}
		}
	})
	provider := client.Get(t, address+"?expand=metadata,attributeStatementMappingRules,registeredSamlServiceProviders,samlServiceProviderRegistrations")
	t.Run("it says who it is", func(t *testing.T) {
		block, _ := pem.Decode(document(t, provider.Link(t, "x509SigningCert"), "").Body)
		if block == nil {
			t.Fatal("the certificate is not in PEM")
		}
		sum := sha1.Sum(block.Bytes)
		if provider.Text("shaFingerprint") != hex.EncodeToString(sum[:]) || provider.Text("signatureAlgorithm") != "RSA-SHA256" || provider.Text("status") != "ENABLED" {
			t.Errorf("the identity provider is %v", provider)
		}
		login := "https://" + webConfig(t, fixture.Application).Text("domainName") + port(t) + "/saml/sso"
		if provider.Link(t, "ssoLoginEndpoint") != login {
			t.Errorf("logins begin at %s", provider.Link(t, "ssoLoginEndpoint"))
		}
		metadata := string(document(t, provider.Object("metadata").Href(), "application/xml").Body)
		for _, part := range []string{provider.Object("metadata").Text("entityId"), base64.StdEncoding.EncodeToString(block.Bytes), login, "IDPSSODescriptor"} {
			if part == "" || !strings.Contains(metadata, part) {
				t.Errorf("the metadata of the identity provider lacks %q: %s", part, metadata)
			}
		}
	})
	t.Run("its assertions can be configured", func(t *testing.T) {
		rules := provider.Object("attributeStatementMappingRules")
		if items, ok := rules["items"].([]any); !ok || len(items) != 0 {
			t.Errorf("the new identity provider has the rules %v", rules)
		}
		client.Update(t, rules.Href(), e2e.Object{"items": []e2e.Object{{"name": "mail", "accountAttributes": []string{"email"}}}})
		if items, _ := client.Get(t, rules.Href())["items"].([]any); len(items) != 1 {
			t.Errorf("the identity provider keeps the rules %v", items)
		}
	})
	t.Run("it serves registered providers", func(t *testing.T) {
		wiki := client.Create(t, "/registeredSamlServiceProviders", e2e.Object{"assertionConsumerServiceUrl": "https://wiki.example.test/acs", "entityId": e2e.Unique("wiki")})
		body := e2e.Object{"serviceProvider": e2e.Object{"href": wiki.Href()}}
		registration := client.Create(t, provider.Object("samlServiceProviderRegistrations").Href()+"?expand=serviceProvider,identityProvider", body)
		if registration.Object("serviceProvider").Text("entityId") != wiki.Text("entityId") || registration.Object("identityProvider").Text("shaFingerprint") != certificates[0] {
			t.Errorf("the registration is %v", registration)
		}
		client.Refused(t, 400, 10111, post(provider.Object("samlServiceProviderRegistrations").Href(), body))
		if served := client.Get(t, provider.Object("registeredSamlServiceProviders").Href()).Items(t); len(served) != 1 || served[0].Href() != wiki.Href() {
			t.Errorf("the identity provider serves %v", served)
		}
		client.Delete(t, wiki.Href())
		client.NotFound(t, registration.Href())
	})
	t.Run("all of it goes with the application", func(t *testing.T) {
		client.Delete(t, fixture.Application.Href())
		for _, address := range []string{policy.Href(), policy.Link(t, "serviceProvider"), address, provider.Object("metadata").Href(), provider.Link(t, "x509SigningCert"), provider.Object("attributeStatementMappingRules").Href()} {
			client.NotFound(t, address)
		}
	})
}

// The directory service and the application service have certificates and rules
// under one address: each is found, and nothing of the one is the other's.
func TestCertificatesAndRulesHaveOneAddress(t *testing.T) {
	fixture := client.NewFixture(t)
	own := identityProvider(t, fixture.Application)
	certificate := string(document(t, own.Link(t, "x509SigningCert"), "").Body)
	mirror := client.Create(t, "/directories", e2e.Object{"name": e2e.Unique("saml"), "provider": e2e.Object{
		"providerId": "saml", "ssoLoginUrl": "https://idp.example.test/login", "ssoLogoutUrl": "https://idp.example.test/logout", "encodedX509SigningCert": certificate,
	}})
	defer client.Delete(t, mirror.Href())
	provider := client.Get(t, mirror.Href()+"/provider?expand=serviceProviderMetadata")
	if other := string(document(t, provider.Object("serviceProviderMetadata").Link(t, "x509SigningCert"), "").Body); other == certificate || !strings.HasPrefix(other, "-----BEGIN CERTIFICATE-----") {
		t.Errorf("the directory's certificate is %s", other)
	}
	for _, rules := range []string{own.Link(t, "attributeStatementMappingRules"), provider.Link(t, "attributeStatementMappingRules")} {
		client.Update(t, rules, e2e.Object{"items": []e2e.Object{{"name": rules, "accountAttributes": []string{"email"}}}})
		client.Refused(t, 400, 2002, post(rules, e2e.Object{"items": []e2e.Object{{"name": "x", "accountAttributes": []string{"password"}}}}))
		if items, _ := client.Get(t, rules)["items"].([]any); len(items) != 1 || items[0].(map[string]any)["name"] != rules {
			t.Errorf("%s has %v", rules, items)
		}
	}
	const nobody = "/0000000000000000000000"
	client.NotFound(t, "/x509certificates"+nobody)
	client.NotFound(t, "/attributeStatementMappingRules"+nobody)
}

func TestADefaultRelayState(t *testing.T) {
	fixture := client.NewFixture(t)
	service := client.Get(t, client.Get(t, fixture.Application.Link(t, "samlPolicy")).Link(t, "serviceProvider"))
	address := service.Link(t, "defaultRelayStates")
	client.Update(t, fixture.Application.Href(), e2e.Object{"authorizedCallbackUris": []string{"https://app.example.test/cb"}})
	client.Want(t, http.StatusOK, e2e.Request{Method: http.MethodPost, URL: address})
	token := client.WantObject(t, http.StatusOK, post(address, e2e.Object{"callbackUri": "https://app.example.test/cb", "state": "s1"})).Text("defaultRelayState")
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("the RelayState is %q", token)
	}
	var header, claims e2e.Object
	for part, to := range map[string]*e2e.Object{parts[0]: &header, parts[1]: &claims} {
		decoded, err := base64.RawURLEncoding.DecodeString(part)
		if err == nil {
			err = json.Unmarshal(decoded, to)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if header.Text("tid") != client.Tenant(t).ID() || header.Text("stt") != "assertion" || header.Text("alg") != "HS256" {
		t.Errorf("the header of the RelayState is %v", header)
	}
	if claims.Text("spUid") != service.ID() || claims.Text("jti") == "" || claims.Text("cb_uri") != "https://app.example.test/cb" || claims.Text("state") != "s1" || claims["exp"] != nil {
		t.Errorf("the claims of the RelayState are %v", claims)
	}
	client.Refused(t, 400, 5121, post(address, e2e.Object{"callbackUri": "https://evil.example/cb"}))
	client.Refused(t, 400, 2014, post(address, e2e.Object{"organization": e2e.Object{"nameKey": "nobody-has-this-key"}}))
	client.Refused(t, http.StatusMethodNotAllowed, 1100, e2e.Request{Method: http.MethodGet, URL: address})
}

package rest_test

import (
	"bytes"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"encoding/xml"
	"strings"
	"sync"
	"testing"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/rest/resttest"
	"github.com/doorward/doorward/services/application/applicationtest"
)

// accept gets a path with an Accept header.
func (c *client) accept(t *testing.T, path, accept string) (status int, kind string, body []byte) {
	t.Helper()
	client := resttest.New(t, c.app, c.signer, caller.Caller{Tenant: c.tenant})
	if accept != "" {
		client = client.With("Accept", accept)
	}
	a := client.Get(path)
	return a.Status, a.Header.Get("Content-Type"), a.Body
}

func TestIdentityProviderAnswers(t *testing.T) {
	t.Parallel()
	c := open(t)
	_, _, provider := c.saml(t, c.application(t, "Shop"))
	rules, metadata := linked(t, c.get(t, provider), "attributeStatementMappingRules"),
		linked(t, c.get(t, provider), "metadata")
	for _, scenario := range []struct {
		name, method, path string
		body               any
	}{
		{"identity-provider", "GET", provider, nil},
		{"identity-provider-updated", "POST", provider,
			object{"status": "disabled", "shaFingerprint": "x", "metadata": object{"href": "x"}, "href": "x"}},
		{"identity-rules-empty", "GET", rules, nil},
		{"identity-rules-updated", "POST", rules,
			object{"items": []object{{"name": "mail", "accountAttributes": []string{"email"}},
				{"nameFormat": "urn:x", "accountAttributes": []string{"customData.plan"}}}}},
		{"identity-rules", "GET", rules, nil},
	} {
		t.Run(scenario.name, func(t *testing.T) {
			c.Clock.Tick()
			c.want(t, 200, scenario.method, scenario.path, scenario.body).Golden(scenario.name)
		})
	}
	t.Run("identity-metadata", func(t *testing.T) {
		client := resttest.New(t, c.app, c.signer, caller.Caller{Tenant: c.tenant})
		client.WithTimes().With("Accept", "application/json").Get(metadata).Golden("identity-metadata")
	})
	t.Run("what is read can be sent back", func(t *testing.T) {
		was := c.get(t, provider)
		c.update(t, provider, was)
		whole := c.get(t, provider)
		whole["attributeStatementMappingRules"] = c.get(t, rules)
		whole["status"] = "ENABLED"
		if now := c.update(t, provider, whole); now["status"] != "ENABLED" {
			t.Errorf("the identity provider is %v", now)
		}
		before := c.get(t, rules)["items"].([]any)
		if after := c.update(t, rules, c.get(t, rules))["items"].([]any); len(after) != len(before) {
			t.Errorf("the rules are %v", after)
		}
	})
}

func TestIdentityProvidersAndRulesThatAreRefused(t *testing.T) {
	t.Parallel()
	c := open(t)
	_, _, provider := c.saml(t, c.application(t, "Shop"))
	rules := linked(t, c.get(t, provider), "attributeStatementMappingRules")
	for _, scenario := range []struct {
		what, path string
		body       any
		code       int
	}{
		{"no status", provider, object{"status": nil}, 2000},
		{"an unknown status", provider, object{"status": "ON"}, 2003},
		{"a status that is no text", provider, object{"status": true}, 2004},
		{"an unknown member", provider, object{"name": "x"}, 2015},
		{"no object", provider, "1", 2006},
		{"a rule without a name", rules, object{"items": []object{{"accountAttributes": []string{"email"}}}}, 2000},
		{"a rule without targets", rules, object{"items": []object{{"name": "mail", "accountAttributes": []string{}}}}, 2000},
		{"a rule of a secret", rules, object{"items": []object{{"name": "mail", "accountAttributes": []string{"password"}}}},
			2002},
		{"a rule with more", rules, object{"items": []object{{"name": "mail", "accountAttributes": []string{"email"},
			"x": 1}}}, 2015},
		{"rules that are none", rules, object{"items": "x"}, 2004},
		{"an unknown member of rules", rules, object{"rules": []any{}}, 2015},
	} {
		t.Run(scenario.what, func(t *testing.T) {
			before := c.want(t, 200, "GET", scenario.path, nil).body
			c.refused(t, 400, scenario.code, "POST", scenario.path, scenario.body)
			if after := c.want(t, 200, "GET", scenario.path, nil).body; !bytes.Equal(before, after) {
				t.Errorf("the resource changed from %s to %s", before, after)
			}
		})
	}
	c.refused(t, 405, 1100, "DELETE", provider, nil)
	c.refused(t, 405, 1100, "DELETE", rules, nil)
}

// What an identity provider shows of its key: one certificate in three forms.
func TestTheCertificateOfAnIdentityProvider(t *testing.T) {
	t.Parallel()
	c := open(t)
	_, _, path := c.saml(t, c.application(t, "Shop"))
	provider := c.get(t, path)
	status, kind, body := c.accept(t, linked(t, provider, "x509SigningCert"), "")
	if status != 200 || kind != "application/pkix-cert" {
		t.Fatalf("the certificate is answered with %d %s", status, kind)
	}
	block, rest := pem.Decode(body)
	if block == nil || len(rest) > 0 {
		t.Fatalf("the certificate is %s", body)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	key, ok := certificate.PublicKey.(*rsa.PublicKey)
	if !ok || key.N.BitLen() != 2048 || certificate.SignatureAlgorithm != x509.SHA256WithRSA {
		t.Errorf("the key is of a %T, signed with %s", certificate.PublicKey, certificate.SignatureAlgorithm)
	}
	if now := c.Clock.Now(); now.Before(certificate.NotBefore) || now.AddDate(9, 0, 0).After(certificate.NotAfter) {
		t.Errorf("the certificate is good from %s to %s", certificate.NotBefore, certificate.NotAfter)
	}
	if sum := sha1.Sum(block.Bytes); provider["shaFingerprint"] != hex.EncodeToString(sum[:]) {
		t.Errorf("the fingerprint is %v", provider["shaFingerprint"])
	}
	t.Run("belongs to the key that is kept", func(t *testing.T) {
		var sealed []byte
		at := idOf(t, path)
		if err := c.DB.QueryRow(t.Context(), "SELECT private_key_sealed FROM saml_identity_providers WHERE id = $1", at).Scan(
			&sealed); err != nil {
			t.Fatal(err)
		}
		opened, err := c.Ring.Open(sealed, "application.saml/"+at.String())
		if err != nil {
			t.Fatal(err)
		}
		private, err := x509.ParsePKCS8PrivateKey([]byte(opened.Reveal()))
		if err != nil || !private.(*rsa.PrivateKey).PublicKey.Equal(key) {
			t.Errorf("the private key is another, %v", err)
		}
	})
	t.Run("is in the metadata", func(t *testing.T) {
		var descriptor struct {
			XMLName  xml.Name `xml:"urn:oasis:names:tc:SAML:2.0:metadata EntityDescriptor"`
			EntityID string   `xml:"entityID,attr"`
			Role     []struct {
				Protocols string `xml:"protocolSupportEnumeration,attr"`
				Key       []struct {
					Use         string `xml:"use,attr"`
					Certificate string `xml:"http://www.w3.org/2000/09/xmldsig# KeyInfo>X509Data>X509Certificate"`
				} `xml:"KeyDescriptor"`
				NameIDFormats []string `xml:"NameIDFormat"`
				SignOn        []struct {
					Binding  string `xml:"Binding,attr"`
					Location string `xml:"Location,attr"`
				} `xml:"SingleSignOnService"`
			} `xml:"urn:oasis:names:tc:SAML:2.0:metadata IDPSSODescriptor"`
		}
		metadata := linked(t, provider, "metadata")
		_, _, document := c.accept(t, metadata, "")
		if err := xml.Unmarshal(document, &descriptor); err != nil {
			t.Fatalf("the metadata is no XML, %v: %s", err, document)
		}
		if len(descriptor.Role) != 1 || len(descriptor.Role[0].Key) != 1 || len(descriptor.Role[0].SignOn) != 2 {
			t.Fatalf("the metadata is %s", document)
		}
		role := descriptor.Role[0]
		if role.Protocols != "urn:oasis:names:tc:SAML:2.0:protocol" || len(role.NameIDFormats) != 3 ||
			role.NameIDFormats[0] != "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress" {
			t.Errorf("the metadata is %s", document)
		}
		if role.Key[0].Use != "signing" || role.Key[0].Certificate != base64.StdEncoding.EncodeToString(block.Bytes) {
			t.Errorf("the metadata has another certificate: %s", document)
		}
		if role.SignOn[0].Binding != "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" ||
			role.SignOn[0].Location != linked(t, provider, "ssoLoginEndpoint") {
			t.Errorf("the login leads to %s", role.SignOn[0].Location)
		}
		if inJSON := c.want(t, 200, "GET", metadata, nil); len(inJSON.body) == 0 ||
			!strings.HasPrefix(descriptor.EntityID, "urn:service:application:") {
			t.Errorf("the entity is %s", descriptor.EntityID)
		}
		for accept, want := range map[string]string{
			"": "application/samlmetadata+xml", "*/*": "application/samlmetadata+xml",
			"text/plain":      "application/samlmetadata+xml",
			"application/xml": "application/xml", "application/json": "application/json;charset=UTF-8",
		} {
			if status, kind, _ := c.accept(t, metadata, accept); status != 200 || kind != want {
				t.Errorf("Accept: %s returns %d %s, want %s", accept, status, kind, want)
			}
		}
	})
}

// The first fifty that read an identity provider, by any of its addresses, see
// one key pair.
func TestAnIdentityProviderHasOneKeyPair(t *testing.T) {
	t.Parallel()
	c := open(t)
	_, _, provider := c.saml(t, c.application(t, "Shop"))
	if made := c.count(t, "saml_identity_providers"); made != 0 {
		t.Errorf("%d are made with the application", made)
	}
	certificate := strings.Replace(provider, "samlIdentityProviders", "x509certificates", 1)
	var group sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]bool{}
	for i := range 50 {
		group.Go(func() {
			if i%2 == 0 {
				c.want(t, 200, "GET", provider+"/samlServiceProviderRegistrations", nil)
			}
			_, _, body := c.accept(t, certificate, "")
			mu.Lock()
			defer mu.Unlock()
			seen[string(body)] = true
		})
	}
	group.Wait()
	if len(seen) != 1 {
		t.Errorf("%d certificates were seen", len(seen))
	}
}

// The address follows the name of the Client API.
func TestWhereServiceProvidersSendBrowsers(t *testing.T) {
	t.Parallel()
	c := open(t)
	shop := c.application(t, "Shop")
	_, _, provider := c.saml(t, shop)
	if _, err := c.Service.SetDNSLabel(t.Context(),
		applicationapi.SetDNSLabel{Tenant: c.tenant, Application: idOf(t, shop), Label: "brave-fox"}); err != nil {
		t.Fatal(err)
	}
	if at := linked(t, c.get(t, provider), "ssoLoginEndpoint"); at != "https://brave-fox."+applicationtest.Suffix+
		"/saml/sso" {
		t.Errorf("the login endpoint is %s", at)
	}
}

func TestTheConsoleIsNoIdentityProvider(t *testing.T) {
	t.Parallel()
	c := open(t)
	signedUp, err := c.Service.SignUp(t.Context(), applicationapi.SignUp{
		Tenant: c.tenant, Console: c.NewID(), ConsoleName: "Service", Administrators: c.administrators,
		ConsoleMapping: c.NewID(),
		Application:    c.NewID(), ApplicationMapping: c.NewID(), Directory: c.NewID(),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, _, provider := c.saml(t, applicationtest.Base.To("applications", signedUp.Console.ID))
	was := c.get(t, provider)
	if was["status"] != "DISABLED" || was["ssoLoginEndpoint"] != nil {
		t.Errorf("the identity provider is %v", was)
	}
	c.refused(t, 400, 400, "POST", provider, object{"status": "ENABLED"})
	c.update(t, provider, was)
	if _, _, document := c.accept(t, linked(t, was, "metadata"), ""); !bytes.Contains(document,
		[]byte("IDPSSODescriptor")) || bytes.Contains(document, []byte("SingleSignOnService")) {
		t.Errorf("its metadata is %s", document)
	}
	_, _, own := c.saml(t, applicationtest.Base.To("applications", signedUp.Application.ID))
	if c.get(t, own)["status"] != "ENABLED" {
		t.Error("that of My Application is off")
	}
}

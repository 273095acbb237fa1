package rest_test

import (
	"bytes"
	"compress/flate"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/beevik/etree"
	dsig "github.com/russellhaering/goxmldsig"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/saml"
	"github.com/doorward/doorward/services/application/applicationtest"
)

// authnRequest is an AuthnRequest of a service provider, as sent by HTTP-Redirect.
func (c *client) authnRequest(t *testing.T, issuer, more string) string {
	t.Helper()
	return authnRequestOf(t, c.Clock.Now(), issuer, more)
}

func authnRequestOf(t *testing.T, at time.Time, issuer, more string) string {
	t.Helper()
	text := fmt.Sprintf(`<p:AuthnRequest xmlns:p="urn:oasis:names:tc:SAML:2.0:protocol" ID="_a1" Version="2.0" IssueInstant="%s" %s>`+
		`<Issuer xmlns="urn:oasis:names:tc:SAML:2.0:assertion">%s</Issuer></p:AuthnRequest>`, at.UTC().Format(time.RFC3339),
		more, issuer)
	var deflated bytes.Buffer
	w, err := flate.NewWriter(&deflated, flate.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(deflated.Bytes())
}

func TestAuthnVerifications(t *testing.T) {
	t.Parallel()
	c := open(t)
	_, _, identity := c.saml(t, c.application(t, "Shop"))
	path := identity + "/authnVerifications"
	pair, err := saml.NewKeyPair("wiki", c.Clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	wiki := text(c.create(t, "/registeredSamlServiceProviders", object{
		"assertionConsumerServiceUrl": consumer, "entityId": "urn:wiki", "encodedX509Certificate": pair.Certificate})["href"])
	chat := c.serviceProvider(t, "urn:chat")
	c.serviceProvider(t, "urn:unregistered")
	registrations := identity + "/samlServiceProviderRegistrations"
	c.create(t, registrations, object{"serviceProvider": link(wiki)})
	registration := text(c.create(t, registrations,
		object{"serviceProvider": link(chat), "defaultRelayState": "home"})["href"])

	valid := c.authnRequest(t, "urn:wiki", "")
	c.refused(t, 400, 2006, "POST", path, object{"samlRequest": valid, "relayState": "x", "queryString": nil})
	c.update(t, wiki, object{"requestsMustBeSigned": false})
	got := c.want(t, 200, "POST", path, object{"samlRequest": valid, "relayState": "x", "queryString": nil}).object(t)
	if len(got) != 4 || got["relayState"] != "x" || linked(t, got, "serviceProvider") != wiki ||
		got["requestId"] != "_a1" ||
		got["authnIssueInstant"] != c.Clock.Now().UTC().Truncate(time.Second).Format("2006-01-02T15:04:05.000Z") {
		t.Errorf("the request is %v", got)
	}
	if got := c.want(t, 200, "POST", path, object{"samlRequest": valid}).object(t); got["relayState"] != nil {
		t.Errorf("without a relay state it is %v", got)
	}
	if got := c.want(t, 200, "POST", path, object{"samlRequest": c.authnRequest(t, "urn:chat", "")}).object(
		t); got["relayState"] != "home" {
		t.Errorf("with that of the registration it is %v", got)
	}
	c.want(t, 200, "POST", path, object{"samlRequest": c.authnRequest(t, "urn:wiki", `AssertionConsumerServiceURL="`+
		consumer+`"`)})

	query := "SAMLRequest=" + url.QueryEscape(valid) + "&RelayState=x&SigAlg=" +
		url.QueryEscape(dsig.RSASHA256SignatureMethod)
	sum := sha256.Sum256([]byte(query))
	octets, err := rsa.SignPKCS1v15(rand.Reader, pair.Key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	query += "&Signature=" + url.QueryEscape(base64.StdEncoding.EncodeToString(octets))
	c.want(t, 200, "POST", path, object{"samlRequest": valid, "relayState": "x", "queryString": query})
	decoded, err := url.QueryUnescape(strings.ReplaceAll(query, "+", "%2B"))
	if err != nil {
		t.Fatal(err)
	}
	c.want(t, 200, "POST", path, object{"samlRequest": valid, "relayState": "x", "queryString": decoded})
	if got := c.update(t, wiki, object{"requestsMustBeSigned": nil}); got["requestsMustBeSigned"] != true ||
		got["certificateStatus"] != "VALID" {
		t.Errorf("a service provider with a certificate is %v", got)
	}
	c.want(t, 200, "POST", path, object{"samlRequest": valid, "relayState": "x", "queryString": query})

	for _, scenario := range []struct {
		what string
		body any
		code int
	}{
		{"no request", object{}, 2000},
		{"a request that is none", object{"samlRequest": "x"}, 2006},
		{"a number", object{"samlRequest": 1}, 2004},
		{"an unknown member", object{"samlRequest": valid, "x": 1}, 2015},
		{"a request from the future", object{"samlRequest": authnRequestOf(t, c.Clock.Now().Add(time.Hour), "urn:wiki", "")},
			2006},
		{"a request of more than 10 minutes ago",
			object{"samlRequest": authnRequestOf(t, c.Clock.Now().Add(-11*time.Minute), "urn:chat", "")}, 2006},
		{"no signature, although the service provider has a certificate", object{"samlRequest": valid, "relayState": "x"},
			2006},
		{"a decoded query of another relay state", object{"samlRequest": valid, "relayState": "y", "queryString": decoded},
			2006},
		{"a decoded query with a wrong signature",
			object{"samlRequest": valid, "relayState": "x",
				"queryString": strings.Replace(decoded, "Signature=", "Signature=AA", 1)}, 2006},
		{"another consumer", object{"samlRequest": c.authnRequest(t, "urn:wiki",
			`AssertionConsumerServiceURL="https://evil.test/"`)}, 2006},
		{"a signature of another relay state", object{"samlRequest": valid, "relayState": "y", "queryString": query}, 2006},
		{"a wrong signature", object{"samlRequest": valid, "relayState": "x",
			"queryString": strings.Replace(query, "Signature=", "Signature=AA", 1)}, 2006},
		{"half a signature", object{"samlRequest": valid, "queryString": "Signature=AA"}, 2006},
		{"a signature that cannot be verified",
			object{"samlRequest": c.authnRequest(t, "urn:chat", ""), "relayState": "x", "queryString": query}, 2006},
		{"an unknown service provider", object{"samlRequest": c.authnRequest(t, "urn:unknown", "")}, 2014},
		{"an entity id in another case", object{"samlRequest": c.authnRequest(t, "urn:Wiki", "")}, 2014},
		{"a service provider that is not registered", object{"samlRequest": c.authnRequest(t, "urn:unregistered", "")}, 2021},
	} {
		t.Run(scenario.what, func(t *testing.T) { c.refused(t, 400, scenario.code, "POST", path, scenario.body) })
	}
	c.update(t, registration, object{"status": "DISABLED"})
	c.refused(t, 400, 2021, "POST", path, object{"samlRequest": c.authnRequest(t, "urn:chat", "")})
	c.update(t, identity, object{"status": "DISABLED"})
	c.refused(t, 400, 2021, "POST", path, object{"samlRequest": valid})
	c.another(t).refused(t, 404, 404, "POST", path, object{"samlRequest": valid})
	c.refused(t, 405, 1100, "GET", path, nil)
}

// samlResponse requests a response, verifies both signatures with the certificate of the identity
// provider, and returns the root element.
func (c *client) samlResponse(t *testing.T, identity, account, provider string) *etree.Element {
	t.Helper()
	got := c.want(t, 200, "POST", identity+"/samlResponses", object{
		"account": link(account), "serviceProvider": link(provider), "requestId": "_a1",
		"authnIssueInstant": "2026-11-20T20:25:00.000Z"}).object(t)
	written, err := base64.StdEncoding.DecodeString(text(got["value"]))
	if err != nil || len(got) != 1 {
		t.Fatalf("the answer is %v, %v", got, err)
	}
	_, _, encoded := c.accept(t, linked(t, c.get(t, identity), "x509SigningCert"), "")
	block, _ := pem.Decode(encoded)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	document := etree.NewDocument()
	if err := document.ReadFromBytes(written); err != nil {
		t.Fatal(err)
	}
	validator := dsig.NewDefaultValidationContext(
		&dsig.MemoryX509CertificateStore{Roots: []*x509.Certificate{certificate}})
	validator.Clock = dsig.NewFakeClockAt(c.Clock.Now())
	for _, signed := range []*etree.Element{document.Root(), document.Root().SelectElement("Assertion")} {
		if _, err := validator.Validate(signed); err != nil {
			t.Fatalf("a signature is refused: %v in %s", err, written)
		}
	}
	return document.Root()
}

// metadata returns the metadata of an identity provider in JSON.
func (c *client) metadata(t *testing.T, identity string) (metadata object) {
	t.Helper()
	_, _, body := c.accept(t, linked(t, c.get(t, identity), "metadata"), "application/json")
	if err := json.Unmarshal(body, &metadata); err != nil {
		t.Fatal(err)
	}
	return metadata
}

// A browser may send any bytes as RelayState.
func TestARelayStateThatIsNoTextIsRefused(t *testing.T) {
	t.Parallel()
	c := open(t)
	shop := c.application(t, "Shop")
	_, _, identity := c.saml(t, shop)
	wiki := c.serviceProvider(t, "urn:wiki")
	c.create(t, identity+"/samlServiceProviderRegistrations", object{"serviceProvider": link(wiki)})
	ref, _ := applicationtest.Base.Parse(shop)
	in := applicationapi.VerifySAMLRequest{Tenant: c.tenant, Application: ref.ID,
		Request: c.authnRequest(t, "urn:wiki", "")}
	for relayState, want := range map[string]error{"home": nil, "": nil, "a\x00b": apierr.Format, "\xff": apierr.Format} {
		in.RelayState = relayState
		if _, err := c.Service.VerifySAMLRequest(t.Context(), in); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", relayState, err, want)
		}
	}
}

// A service provider names as the Destination where it sends the browser: the address by domain, or the one
// by path, when the request has arrived there.
func TestTheDestinationOfARequestIsAnAddressOfItsApplication(t *testing.T) {
	t.Parallel()
	c := open(t)
	shop := c.application(t, "Shop")
	_, _, identity := c.saml(t, shop)
	wiki := c.serviceProvider(t, "urn:wiki")
	c.create(t, identity+"/samlServiceProviderRegistrations", object{"serviceProvider": link(wiki)})
	ref, _ := applicationtest.Base.Parse(shop)
	byDomain, byPath := linked(t, c.get(t, identity), "ssoLoginEndpoint"), "https://localhost:8443/client/shop/saml/sso"
	for _, arrived := range []string{byDomain, byPath} {
		for destination, want := range map[string]error{
			"": nil, byDomain: nil, byPath: map[bool]error{false: apierr.Format}[arrived == byPath],
			"https://localhost:8443/client/other/saml/sso": apierr.Format,
			"https://evil.test/client/shop/saml/sso":       apierr.Format,
			byPath + "/":                                   apierr.Format, "/client/shop/saml/sso": apierr.Format,
			identity: apierr.Format,
		} {
			more := `Destination="` + destination + `"`
			if destination == "" {
				more = ""
			}
			_, err := c.Service.VerifySAMLRequest(t.Context(), applicationapi.VerifySAMLRequest{
				Tenant: c.tenant, Application: ref.ID, Request: c.authnRequest(t, "urn:wiki", more), Address: arrived,
			})
			if !errors.Is(err, want) {
				t.Errorf("a request for %q that arrived at %s: %v, want %v", destination, arrived, err, want)
			}
		}
	}
}

// An assertion says when the user has proved who he is, which may be long before the request, and in which
// session; one that a client makes says that it was now.
func TestAnAssertionNamesTheLoginAndItsSession(t *testing.T) {
	t.Parallel()
	c := open(t)
	shop := c.application(t, "Shop")
	_, _, identity := c.saml(t, shop)
	staff, wiki := c.directory(t, "Staff"), c.serviceProvider(t, "urn:wiki")
	c.mapping(t, shop, staff, nil)
	c.create(t, identity+"/samlServiceProviderRegistrations", object{"serviceProvider": link(wiki)})
	jo := c.Account(t, c.tenant, idOf(t, staff), "jo@example.test")
	statement := func(root *etree.Element) (at, index string) {
		t.Helper()
		found := root.FindElements("./Assertion/AuthnStatement")
		if len(found) != 1 {
			t.Fatalf("the assertion has %d AuthnStatements", len(found))
		}
		return found[0].SelectAttrValue("AuthnInstant", ""), found[0].SelectAttrValue("SessionIndex", "")
	}
	answer := func(session string) (at, index string) {
		t.Helper()
		signed, err := c.Service.SAMLResponse(t.Context(), applicationapi.SAMLAnswer{
			Tenant: c.tenant, Application: idOf(t, shop), ServiceProvider: idOf(t, wiki), RequestID: "_a1", Account: jo,
			AuthenticatedAt: time.Date(2026, 11, 20, 18, 5, 7, 0, time.FixedZone("", 3600)), SessionIndex: session,
		})
		if err != nil {
			t.Fatal(err)
		}
		document := etree.NewDocument()
		written, err := base64.StdEncoding.DecodeString(signed.Response.Reveal())
		if err == nil {
			err = document.ReadFromBytes(written)
		}
		if err != nil {
			t.Fatal(err)
		}
		return statement(document.Root())
	}
	if at, index := answer("_session"); at != "2026-11-20T17:05:07Z" || index != "_session" {
		t.Errorf("a login of the session %q at %s, want _session at 17:05:07", index, at)
	}
	_, first := answer("")
	_, second := answer("")
	if first == "" || first == second {
		t.Errorf("without a session the logins have the indexes %q and %q", first, second)
	}
	account := applicationtest.Base.To("accounts", jo)
	now, first := statement(c.samlResponse(t, identity, account, wiki))
	if at, err := time.Parse(time.RFC3339, now); err != nil || !at.Equal(c.Clock.Now()) {
		t.Errorf("the login that a client states was at %s, %v, want %s", now, err, c.Clock.Now())
	}
	if _, second = statement(c.samlResponse(t, identity, account, wiki)); first == "" || first == second {
		t.Errorf("the logins that a client states have the indexes %q and %q", first, second)
	}
}

func TestSAMLResponses(t *testing.T) {
	t.Parallel()
	c := open(t)
	shop := c.application(t, "Shop")
	_, _, identity := c.saml(t, shop)
	staff, strangers := c.directory(t, "Staff"), c.directory(t, "Strangers")
	c.mapping(t, shop, staff, nil)
	jo := applicationtest.Base.To("accounts", c.Account(t, c.tenant, idOf(t, staff), "jo@example.test"))
	stranger := applicationtest.Base.To("accounts", c.Account(t, c.tenant, idOf(t, strangers), "x@example.test"))
	c.Directories.SetCustomData(t, id.Ref{Tenant: c.tenant, ID: idOf(t, jo)},
		`{"plan":"gold","level":12,"tags":["a","b",{"c":1}],"deep":{"yes":true},"none":null}`)
	wiki := c.serviceProvider(t, "urn:wiki")
	unregistered := c.serviceProvider(t, "urn:unregistered")
	registration := text(c.create(t, identity+"/samlServiceProviderRegistrations",
		object{"serviceProvider": link(wiki)})["href"])
	find := func(root *etree.Element, path, attribute string) string {
		element := root.FindElement(path)
		if element == nil {
			t.Errorf("there is no %s", path)
			return ""
		}
		if attribute == "" {
			return element.Text()
		}
		return element.SelectAttrValue(attribute, "")
	}

	root := c.samlResponse(t, identity, jo, wiki)
	entity := text(c.metadata(t, identity)["entityId"])
	for _, want := range []struct{ path, attribute, value string }{
		{".", "InResponseTo", "_a1"}, {".", "Destination", consumer}, {"./Issuer", "", entity},
		{"./Assertion/Issuer", "", entity},
		{"./Status/StatusCode", "Value", "urn:oasis:names:tc:SAML:2.0:status:Success"},
		{"./Assertion/Subject/NameID", "", "jo@example.test"}, {"./Assertion/Subject/NameID", "Format", saml.EmailNameID},
		{"./Assertion/Subject/SubjectConfirmation", "Method", "urn:oasis:names:tc:SAML:2.0:cm:bearer"},
		{"./Assertion/Subject/SubjectConfirmation/SubjectConfirmationData", "InResponseTo", "_a1"},
		{"./Assertion/Subject/SubjectConfirmation/SubjectConfirmationData", "Recipient", consumer},
		{"./Assertion/Conditions/AudienceRestriction/Audience", "", "urn:wiki"},
	} {
		if got := find(root, want.path, want.attribute); got != want.value {
			t.Errorf("%s %s is %q, want %q", want.path, want.attribute, got, want.value)
		}
	}
	until, err := time.Parse(time.RFC3339, find(root, "./Assertion/Conditions", "NotOnOrAfter"))
	if now := c.Clock.Now(); err != nil || !until.After(now) || until.After(now.Add(10*time.Minute)) {
		t.Errorf("the assertion is good until %s, %v", until, err)
	}
	if root.FindElement("./Assertion/AttributeStatement") != nil {
		t.Error("without rules it has attributes")
	}

	t.Run("attributes by the rules", func(t *testing.T) {
		c.update(t, linked(t, c.get(t, identity), "attributeStatementMappingRules"), object{"items": []object{
			{"name": "mail", "nameFormat": "urn:format", "accountAttributes": []string{"email", "customData.plan"}},
			{"nameFormat": "urn:other", "accountAttributes": []string{"username", "customData.tags"}},
			{"name": "level", "accountAttributes": []string{"customData.level", "customData.deep.yes"}},
			{"name": "nothing", "accountAttributes": []string{"surname", "customData.none", "customData.deep",
				"customData.plan.x", "customData.absent"}},
		}})
		var stated []string
		for _, a := range c.samlResponse(t, identity, jo, wiki).FindElements("./Assertion/AttributeStatement/Attribute") {
			values := []string{}
			for _, value := range a.SelectElements("AttributeValue") {
				values = append(values, value.Text())
			}
			stated = append(stated, a.SelectAttrValue("Name", "")+" "+a.SelectAttrValue("NameFormat", "")+" "+
				strings.Join(values, ","))
		}
		want := "mail urn:format jo@example.test,gold|username urn:other jo@example.test|customData.tags urn:other " +
			"a,b|level  12,true"
		if got := strings.Join(stated, "|"); got != want {
			t.Errorf("they are %q, want %q", got, want)
		}
	})
	t.Run("the name by its format", func(t *testing.T) {
		name := func(provider string) (name, format string) {
			nameID := c.samlResponse(t, identity, jo, provider).FindElement("./Assertion/Subject/NameID")
			return nameID.Text(), nameID.SelectAttrValue("Format", "")
		}
		chat := c.serviceProvider(t, "urn:chat")
		c.create(t, identity+"/samlServiceProviderRegistrations", object{"serviceProvider": link(chat)})
		c.update(t, wiki, object{"nameIdFormat": "PERSISTENT"})
		c.update(t, chat, object{"nameIdFormat": "PERSISTENT"})
		first, format := name(wiki)
		again, _ := name(wiki)
		other, _ := name(chat)
		if first != again || first == other || format != saml.PersistentNameID || strings.Contains(first, "jo@") ||
			first == "" {
			t.Errorf("persistent ones are %s, %s, %s %s", first, again, other, format)
		}
		c.update(t, wiki, object{"nameIdFormat": "TRANSIENT"})
		first, format = name(wiki)
		if again, _ = name(wiki); first == again || format != saml.TransientNameID {
			t.Errorf("transient ones are %s, %s %s", first, again, format)
		}
		c.update(t, wiki, object{"nameIdFormat": "EMAIL"})
	})
	t.Run("another algorithm", func(t *testing.T) {
		c.update(t, identity, object{"signatureAlgorithm": "RSA-SHA1"})
		root := c.samlResponse(t, identity, jo, wiki)
		if got := root.FindElement("./Signature/SignedInfo/SignatureMethod").SelectAttrValue("Algorithm",
			""); got != dsig.RSASHA1SignatureMethod {
			t.Errorf("the response is signed with %s", got)
		}
	})

	path := identity + "/samlResponses"
	body := func(change object) object {
		b := object{"account": link(jo), "serviceProvider": link(wiki), "requestId": "_a1",
			"authnIssueInstant": "2026-11-20T20:25:00+01:00"}
		for name, value := range change {
			b[name] = value
		}
		return b
	}
	nobody := applicationtest.Base.To("accounts", c.NewID())
	for _, scenario := range []struct {
		what string
		body any
		code int
	}{
		{"no account", body(object{"account": nil}), 2000},
		{"no service provider", body(object{"serviceProvider": nil}), 2000},
		{"no request", body(object{"requestId": nil}), 2000},
		{"no instant", body(object{"authnIssueInstant": nil}), 2000},
		{"an empty request", body(object{"requestId": ""}), 2000},
		{"a blank instant", body(object{"authnIssueInstant": " "}), 2000},
		{"what is required before what is malformed", object{"requestId": "<"}, 2000},
		{"an id that is none", body(object{"requestId": "a<b"}), 2006},
		{"an instant that is none", body(object{"authnIssueInstant": "yesterday"}), 2006},
		{"an instant in the future", body(object{"authnIssueInstant": "2126-11-20T20:25:00Z"}), 2006},
		{"milliseconds in the future", body(object{"authnIssueInstant": 4949468700000}), 2006},
		{"milliseconds that are no datetime", body(object{"authnIssueInstant": 1 << 62}), 2006},
		{"an instant of the wrong type", body(object{"authnIssueInstant": true}), 2004},
		{"an account that is no link", body(object{"account": jo}), 2004},
		{"an account of another kind", body(object{"account": link(wiki)}), 2014},
		{"an unknown account", body(object{"account": link(nobody)}), 2014},
		{"a service provider of another kind", body(object{"serviceProvider": link(jo)}), 2014},
		{"an unknown service provider",
			body(object{"serviceProvider": link(strings.Replace(nobody, "accounts", "registeredSamlServiceProviders", 1))}),
			2014},
		{"an unknown member", body(object{"x": 1}), 2015},
	} {
		t.Run(scenario.what, func(t *testing.T) { c.refused(t, 400, scenario.code, "POST", path, scenario.body) })
	}
	c.want(t, 200, "POST", path, body(nil))
	c.want(t, 200, "POST", path, body(object{"account": link(stranger)}))
	c.want(t, 200, "POST", path, body(object{"serviceProvider": link(unregistered)}))
	c.want(t, 200, "POST", path, body(object{"authnIssueInstant": 1763670300000}))
	c.update(t, registration, object{"status": "DISABLED"})
	c.refused(t, 400, 2021, "POST", path, body(nil))
	c.update(t, registration, object{"status": "ENABLED"})
	c.update(t, identity, object{"status": "DISABLED"})
	c.refused(t, 400, 2021, "POST", path, body(nil))
	c.update(t, identity, object{"status": "ENABLED"})
	c.update(t, shop, object{"status": "DISABLED"})
	c.refused(t, 400, 2021, "POST", path, body(nil))
	c.update(t, shop, object{"status": "ENABLED"})
	c.Directories.Disable(t, id.Ref{Tenant: c.tenant, ID: idOf(t, staff)})
	c.refused(t, 400, 2021, "POST", path, body(nil))
	c.another(t).refused(t, 404, 404, "POST", path, body(nil))
}

// Another algorithm comes with another key: another certificate at another address.
func TestAChangeOfTheSignatureAlgorithmMakesAKey(t *testing.T) {
	t.Parallel()
	c := open(t)
	_, _, path := c.saml(t, c.application(t, "Shop"))
	was := c.get(t, path)
	former := linked(t, was, "x509SigningCert")
	_, _, descriptor := c.accept(t, linked(t, was, "metadata"), "")
	if same := c.update(t, path, object{"signatureAlgorithm": "RSA-SHA256"}); linked(t, same,
		"x509SigningCert") != former {
		t.Errorf("the same algorithm makes a key: %v", same)
	}
	now := c.update(t, path, object{"signatureAlgorithm": "RSA-SHA1"})
	current := linked(t, now, "x509SigningCert")
	if now["signatureAlgorithm"] != "RSA-SHA1" || now["shaFingerprint"] == was["shaFingerprint"] || current == former {
		t.Errorf("the identity provider is %v", now)
	}
	if status, _, _ := c.accept(t, current, ""); status != 200 {
		t.Errorf("the certificate is answered with %d", status)
	}
	c.refused(t, 404, 404, "GET", former, nil)
	_, _, changed := c.accept(t, linked(t, now, "metadata"), "")
	metadata := c.metadata(t, path)
	if bytes.Equal(descriptor, changed) || linked(t, metadata, "x509SigningCert") != current ||
		linked(t, metadata, "identityProvider") != path {
		t.Errorf("the metadata is %v, %s", metadata, changed)
	}
	if again := c.get(t, path); again["shaFingerprint"] != now["shaFingerprint"] {
		t.Errorf("the certificate changes by itself: %v", again)
	}
	c.refused(t, 400, 2003, "POST", path, object{"signatureAlgorithm": "RSA-MD5"})
	c.refused(t, 400, 2000, "POST", path, object{"signatureAlgorithm": nil, "status": "x"})
	c.another(t).refused(t, 404, 404, "GET", current, nil)
}

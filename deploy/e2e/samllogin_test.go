package e2e_test

import (
	"bytes"
	"compress/flate"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"encoding/xml"
	"html"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crewjam/saml"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/pkg/certificate/certtest"
)

// samlIdentity is a SAML identity provider that logs one user in without asking.
type samlIdentity struct {
	*saml.IdentityProvider
	certificate string
	session     saml.Session
	metadata    []byte // of the service provider
	encrypts    bool   // assertions, for the key in the metadata
	logouts     chan url.Values
	server      *httptest.Server
}

func newSAMLIdentity(t *testing.T) *samlIdentity {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	certificate := certtest.SelfSignedBy(key, time.Now().Add(-time.Hour), time.Now().AddDate(1, 0, 0), "idp")
	name := e2e.Unique("jo")
	p := &samlIdentity{
		certificate: certificate.Chain(), logouts: make(chan url.Values, 1),
		session: saml.Session{
			ID: "s1", NameID: name + "@example.test", NameIDFormat: string(saml.EmailAddressNameIDFormat), Index: "i1", UserEmail: name + "@example.test",
			UserSurname: "Doe", UserGivenName: "Jo", Groups: []string{"staff", "wiki"}, CreateTime: time.Now(), ExpireTime: time.Now().Add(time.Hour),
		},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/sso", func(w http.ResponseWriter, r *http.Request) { p.ServeSSO(w, r) })
	mux.HandleFunc("/slo", func(w http.ResponseWriter, r *http.Request) {
		p.logouts <- r.URL.Query()
		back := url.Values{"SAMLResponse": {"done"}, "RelayState": {r.URL.Query().Get("RelayState")}}
		http.Redirect(w, r, client.Key.HostURL()+"/sso/logout?"+back.Encode(), http.StatusFound)
	})
	p.server = httptest.NewServer(mux)
	t.Cleanup(p.server.Close)
	at := func(path string) url.URL {
		u, _ := url.Parse(p.server.URL + path)
		return *u
	}
	p.IdentityProvider = &saml.IdentityProvider{
		Key: key, Certificate: certificate.Certificate, Logger: log.New(io.Discard, "", 0), MetadataURL: at("/metadata"), SSOURL: at("/sso"),
		ServiceProviderProvider: p, SessionProvider: p, SignatureMethod: "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256",
	}
	return p
}

func (p *samlIdentity) GetSession(http.ResponseWriter, *http.Request, *saml.IdpAuthnRequest) *saml.Session {
	return &p.session
}

func (p *samlIdentity) GetServiceProvider(*http.Request, string) (*saml.EntityDescriptor, error) {
	var descriptor saml.EntityDescriptor
	err := xml.Unmarshal(p.metadata, &descriptor)
	for i := range descriptor.SPSSODescriptors {
		role := &descriptor.SPSSODescriptors[i]
		role.KeyDescriptors = slices.DeleteFunc(role.KeyDescriptors, func(k saml.KeyDescriptor) bool { return k.Use == "encryption" && !p.encrypts })
	}
	return &descriptor, err
}

var formField = regexp.MustCompile(`name="(SAMLResponse|RelayState)" value="([^"]*)"`)

// formOf reads the fields of a page that posts itself.
func formOf(t *testing.T, page string) url.Values {
	t.Helper()
	form := url.Values{}
	for _, field := range formField.FindAllStringSubmatch(page, -1) {
		form.Set(field[1], html.UnescapeString(field[2]))
	}
	if form.Get("SAMLResponse") == "" {
		t.Fatalf("the page has no response: %s", page)
	}
	return form
}

// loginResponse is the form with which the identity provider sends a browser back.
func (p *samlIdentity) loginResponse(t *testing.T, location string) url.Values {
	t.Helper()
	response, err := http.Get(location)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	page, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("the identity provider answers %d: %s, %v", response.StatusCode, page, err)
	}
	return formOf(t, string(page))
}

// idpInitiatedLogin is the form of a login that the identity provider begins.
func (p *samlIdentity) idpInitiatedLogin(t *testing.T, relayState string) url.Values {
	t.Helper()
	recorder := httptest.NewRecorder()
	p.ServeIDPInitiated(recorder, httptest.NewRequest(http.MethodGet, "/", nil), "sp", relayState)
	return formOf(t, recorder.Body.String())
}

// samlFixture is an application whose users log in at an identity provider.
type samlFixture struct {
	*testing.T
	e2e.Fixture
	at       *samlIdentity
	mirror   e2e.Object
	consumer string
}

func newSAMLFixture(t *testing.T) samlFixture {
	t.Helper()
	s := samlFixture{T: t, Fixture: newHosted(t), at: newSAMLIdentity(t)}
	s.mirror = client.Create(t, "/directories", e2e.Object{"name": e2e.Unique("saml"), "provider": e2e.Object{
		"providerId": "saml", "ssoLoginUrl": s.at.server.URL + "/sso", "ssoLogoutUrl": s.at.server.URL + "/slo",
		"encodedX509SigningCert": s.at.certificate, "entityId": s.at.server.URL + "/metadata",
	}})
	client.DeleteAtEnd(t, s.mirror.Href())
	client.Create(t, "/accountStoreMappings", e2e.Object{
		"application": e2e.Object{"href": s.Application.Href()}, "accountStore": e2e.Object{"href": s.mirror.Href()},
	})
	provider := client.Get(t, s.mirror.Link(t, "provider"))
	s.at.metadata = document(t, provider.Link(t, "serviceProviderMetadata"), "application/xml").Body
	s.consumer = s.mirror.Href() + "/saml/sso/post"
	return s
}

// loginRequest is the request that sends a browser to the identity provider; changes
// are to the claims, and one that is nil is left out.
func (s samlFixture) loginRequest(changes e2e.Object) e2e.Request {
	s.Helper()
	claims := e2e.Object{"iss": s.Application.Href(), "iat": time.Now().Unix(), "jti": rand.Text(), "state": "a b~?ü"}
	for name, value := range changes {
		claims[name] = value
	}
	token := e2e.SignJWT(e2e.Object{"alg": "HS256", "kid": client.Key.ID}, claims, client.Key.Secret)
	return e2e.Request{Method: http.MethodGet, URL: s.Application.Href() + "/saml/sso/idpRedirect?accessToken=" + token, Anonymous: true}
}

// begin returns where the browser is sent.
func (s samlFixture) begin(changes e2e.Object) string {
	s.Helper()
	return client.Want(s.T, http.StatusFound, s.loginRequest(changes)).Header.Get("Location")
}

// postResponse posts a response and returns the assertion with which the browser goes to
// the callback.
func (s samlFixture) postResponse(form url.Values) string {
	s.Helper()
	answer := client.Want(s.T, http.StatusFound, e2e.Request{Method: http.MethodPost, URL: s.consumer, Body: form, Anonymous: true})
	assertion, found := strings.CutPrefix(answer.Header.Get("Location"), callback+"?jwtResponse=")
	if !found {
		s.Fatalf("the browser is sent to %s", answer.Header.Get("Location"))
	}
	return assertion
}

func (s samlFixture) refuses(form url.Values, status, code int) {
	s.Helper()
	e2e.CheckError(s.T, client.Want(s.T, status, e2e.Request{Method: http.MethodPost, URL: s.consumer, Body: form, Anonymous: true}), status, code)
}

func (s samlFixture) claims(assertion string) e2e.Object {
	s.Helper()
	header, claims := unpack(s.T, assertion, client.Key.Secret)
	if header.Text("stt") != "assertion" || header.Text("kid") != client.Key.ID || claims.Text("iss") != s.Application.Href() ||
		claims.Text("aud") != client.Key.ID || claims.Text("status") != "AUTHENTICATED" || claims.Text("irt") == "" || claims.Text("jti") == "" {
		s.Errorf("the assertion has %v and %v", header, claims)
	}
	return claims
}

func TestALoginAtASAMLIdentityProvider(t *testing.T) {
	s := newSAMLFixture(t)
	location := s.begin(nil)
	if !strings.HasPrefix(location, s.at.server.URL+"/sso?SAMLRequest=") {
		t.Fatalf("the browser is sent to %s", location)
	}
	checkRedirectSignature(t, location, client.Get(t, s.mirror.Link(t, "provider")).Link(t, "serviceProviderMetadata"))
	form := s.at.loginResponse(t, location)
	claims := s.claims(s.postResponse(form))
	if claims["isNewSub"] != true || claims["state"] != "a b~?ü" {
		t.Errorf("the claims are %v", claims)
	}
	account := client.Get(t, claims.Text("sub"))
	if account.Text("email") != s.at.session.UserEmail || account.Text("givenName") != "Jo" || account.Text("surname") != "Doe" ||
		account.Text("emailVerificationStatus") != "VERIFIED" || account.Link(t, "directory") != s.mirror.Href() {
		t.Errorf("the account is %v", account)
	}
	data := client.Get(t, account.Link(t, "providerData"))
	if data.Text("providerId") != "saml" || data.Text("urn:oid:0.9.2342.19200300.100.1.3") != s.at.session.UserEmail {
		t.Errorf("the provider data of the account is %v", data)
	}
	checkExplained(t, s.Application, s.at.session.UserEmail, "saml")

	t.Run("the assertion is exchanged for tokens", func(t *testing.T) {
		client.Want(t, http.StatusOK, exchange(s.Application, s.postResponse(s.at.loginResponse(t, s.begin(nil)))))
	})
	t.Run("the next login is of the same account, by either form of the issuer", func(t *testing.T) {
		again := s.claims(s.postResponse(s.at.loginResponse(t, s.begin(e2e.Object{"iss": client.Key.ID, "sub": s.Application.Href(), "ash": s.mirror.Href()}))))
		if again["isNewSub"] != false || again.Text("sub") != account.Href() {
			t.Errorf("the claims are %v", again)
		}
	})
	t.Run("rules write attributes into the account", func(t *testing.T) {
		rules := client.Get(t, s.mirror.Link(t, "provider")).Link(t, "attributeStatementMappingRules")
		client.Update(t, rules, e2e.Object{"items": []e2e.Object{
			{"name": "urn:oid:0.9.2342.19200300.100.1.3", "accountAttributes": []string{"email", "customData.mail"}},
		}})
		s.postResponse(s.at.loginResponse(t, s.begin(nil)))
		if got := client.Get(t, account.Link(t, "customData")).Text("mail"); got != s.at.session.UserEmail {
			t.Errorf("customData has %q", got)
		}
	})
	t.Run("a response is used once", func(t *testing.T) {
		checkErrorAssertion(t, s.postResponse(form), s.Application, http.StatusBadRequest, 10100)
		form := s.at.loginResponse(t, s.begin(nil))
		s.postResponse(form)
		form.Del("RelayState")
		s.refuses(form, http.StatusBadRequest, 10100)
	})
	t.Run("an assertion is encrypted for the key in the metadata", func(t *testing.T) {
		s.at.encrypts = true
		form := s.at.loginResponse(t, s.begin(nil))
		s.at.encrypts = false
		if text, err := base64.StdEncoding.DecodeString(form.Get("SAMLResponse")); err != nil || !strings.Contains(string(text), "EncryptedAssertion") {
			t.Errorf("the assertion is not encrypted: %s, %v", text, err)
		}
		if claims := s.claims(s.postResponse(form)); claims.Text("sub") != account.Href() {
			t.Errorf("the claims are %v", claims)
		}
	})
	t.Run("forceAuthn asks for a new login", func(t *testing.T) {
		provider := s.mirror.Link(t, "provider")
		for _, force := range []bool{true, false} {
			client.Update(t, provider, e2e.Object{"forceAuthn": force})
			if got := requestOf(t, s.begin(nil)).ForceAuthn; (got != nil && *got) != force {
				t.Errorf("with forceAuthn %t the request has %v", force, got)
			}
		}
	})
	t.Run("a response of another signer is refused", func(t *testing.T) {
		other := newSAMLIdentity(t)
		other.metadata, other.MetadataURL, other.SSOURL = s.at.metadata, s.at.MetadataURL, s.at.SSOURL
		query := s.begin(nil)[len(s.at.server.URL):]
		checkErrorAssertion(t, s.postResponse(other.loginResponse(t, other.server.URL+query)), s.Application, http.StatusBadRequest, 10101)
	})
	t.Run("what is no response is refused", func(t *testing.T) {
		s.refuses(url.Values{"SAMLResponse": {"x"}}, http.StatusBadRequest, 10100)
		s.refuses(url.Values{"SAMLResponse": {"x"}, "RelayState": {"x"}}, http.StatusBadRequest, 10100)
		s.refuses(url.Values{"SAMLResponse": {"x", "y"}}, http.StatusBadRequest, 10100)
	})
	t.Run("the next certificate of the provider is accepted before it is the only one", func(t *testing.T) {
		provider := s.mirror.Link(t, "provider")
		client.Update(t, provider, e2e.Object{"encodedX509SigningCert": newSAMLIdentity(t).certificate, "encodedX509SigningCertNext": s.at.certificate})
		s.claims(s.postResponse(s.at.loginResponse(t, s.begin(nil))))
		client.Update(t, provider, e2e.Object{"encodedX509SigningCertNext": nil})
		checkErrorAssertion(t, s.postResponse(s.at.loginResponse(t, s.begin(nil))), s.Application, http.StatusBadRequest, 10101)
		client.Update(t, provider, e2e.Object{"encodedX509SigningCert": s.at.certificate})
	})
	t.Run("a disabled directory and a disabled account let nobody in", func(t *testing.T) {
		location := s.begin(nil)
		client.Update(t, account.Href(), e2e.Object{"status": "DISABLED"})
		checkErrorAssertion(t, s.postResponse(s.at.loginResponse(t, location)), s.Application, http.StatusBadRequest, 7101)
		client.Update(t, account.Href(), e2e.Object{"status": "ENABLED"})
		client.Update(t, s.mirror.Href(), e2e.Object{"status": "DISABLED"})
		e2e.CheckError(t, client.Want(t, http.StatusBadRequest, s.loginRequest(e2e.Object{"ash": s.mirror.Href()})), http.StatusBadRequest, 7106)
		client.Update(t, s.mirror.Href(), e2e.Object{"status": "ENABLED"})
	})
}

// requestOf is the request in an address of the identity provider.
func requestOf(t *testing.T, location string) (request saml.AuthnRequest) {
	t.Helper()
	at, err := url.Parse(location)
	if err != nil {
		t.Fatal(err)
	}
	octets, err := base64.StdEncoding.DecodeString(at.Query().Get("SAMLRequest"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(flate.NewReader(bytes.NewReader(octets)))
	if err == nil {
		err = xml.Unmarshal(text, &request)
	}
	if err != nil {
		t.Fatal(err)
	}
	return request
}

// The account store of a login may be an organization that leads to the SAML
// directory.
func TestASAMLLoginThroughAnOrganization(t *testing.T) {
	s := newSAMLFixture(t)
	organization, disabled, unmapped := newOrganization(t), newOrganization(t), newOrganization(t)
	for _, o := range []e2e.Object{organization, disabled} {
		client.Create(t, "/organizationAccountStoreMappings", e2e.Object{
			"organization": e2e.Object{"href": o.Href()}, "accountStore": e2e.Object{"href": s.mirror.Href()},
		})
		mapOrganization(t, s.Fixture, o)
	}
	client.Update(t, disabled.Href(), e2e.Object{"status": "DISABLED"})
	for name, changes := range map[string]e2e.Object{"by its href": {"ash": organization.Href()}, "by its key": {"onk": organization.Text("nameKey")}} {
		t.Run(name, func(t *testing.T) {
			assertion := s.postResponse(s.at.loginResponse(t, s.begin(changes)))
			if claims := s.claims(assertion); claims.Text("org") != organization.Href() {
				t.Errorf("the claims are %v", claims)
			}
			issued, err := client.Want(t, http.StatusOK, exchange(s.Application, assertion)).Object()
			if err != nil {
				t.Fatal(err)
			}
			if _, claims := unpack(t, issued.Text("access_token"), client.Key.Secret); claims.Text("org") != organization.Href() {
				t.Errorf("the token has %v", claims)
			}
		})
	}
	t.Run("by the Client API", func(t *testing.T) {
		at := "/authorize?response_type=service_token&state=s&account_store_href=" +
			url.QueryEscape(respelled(address, s.mirror.Href())) + "&organization_href=" + url.QueryEscape(respelled(address, organization.Href()))
		to := openClientAPI(t, s.Application).want(http.StatusFound, e2e.Request{Method: http.MethodGet, URL: at}).Header.Get("Location")
		answer := client.Want(t, http.StatusFound, e2e.Request{Method: http.MethodPost, URL: s.consumer, Body: s.at.loginResponse(t, to), Anonymous: true})
		assertion, found := strings.CutPrefix(answer.Header.Get("Location"), callback+"?state=s&jwtResponse=")
		if !found {
			t.Fatalf("the browser is sent to %s", answer.Header.Get("Location"))
		}
		claims := e2e.Claims(t, assertion)
		if claims.Text("org") != organization.Href() || claims.Text("state") != "s" || claims.Text("iss") != s.Application.Href() {
			t.Errorf("the claims are %v", claims)
		}
	})
	for name, c := range map[string]struct {
		changes e2e.Object
		code    int
	}{
		"that is disabled, by its key":   {e2e.Object{"onk": disabled.Text("nameKey")}, 11002},
		"that is not mapped, by its key": {e2e.Object{"onk": unmapped.Text("nameKey")}, 11003},
		"that is disabled":               {e2e.Object{"ash": disabled.Href()}, 7107},
		"that is not mapped":             {e2e.Object{"ash": unmapped.Href()}, 5114},
	} {
		t.Run("one "+name, func(t *testing.T) {
			e2e.CheckError(t, client.Want(t, http.StatusBadRequest, s.loginRequest(c.changes)), http.StatusBadRequest, c.code)
		})
	}
	t.Run("one that is disabled while the user is away", func(t *testing.T) {
		location := s.begin(e2e.Object{"onk": organization.Text("nameKey")})
		client.Update(t, organization.Href(), e2e.Object{"status": "DISABLED"})
		checkErrorAssertion(t, s.postResponse(s.at.loginResponse(t, location)), s.Application, http.StatusBadRequest, 11002)
		client.Update(t, organization.Href(), e2e.Object{"status": "ENABLED"})
	})
	t.Run("a group, which only other directories have", func(t *testing.T) {
		group := client.Create(t, s.Directory.Link(t, "groups"), e2e.Object{"name": e2e.Unique("staff")})
		client.Create(t, "/accountStoreMappings", e2e.Object{
			"application": e2e.Object{"href": s.Application.Href()}, "accountStore": e2e.Object{"href": group.Href()},
		})
		e2e.CheckError(t, client.Want(t, http.StatusBadRequest, s.loginRequest(e2e.Object{"ash": group.Href()})), http.StatusBadRequest, 2022)
	})
}

// What account links do at a login through SAML
// (docs/interface/account-linking.md#outcome-at-login).
func TestAccountsOfSAMLDirectoriesAreLinked(t *testing.T) {
	for _, c := range []struct {
		what         string
		policy       e2e.Object
		local        string // email verification status of the account in the default store; empty: there is none
		leadsTo      string // local, mirror or copy
		isNewAccount bool
	}{
		{"no policy", e2e.Object{}, "VERIFIED", "mirror", true},
		{"by email", e2e.Object{"status": "ENABLED", "matchingProperty": "email"}, "VERIFIED", "local", false},
		{"by email, made before with an unverified address", e2e.Object{"status": "ENABLED", "matchingProperty": "email"}, "UNVERIFIED", "mirror", true},
		{"by email, without another account", e2e.Object{"status": "ENABLED", "matchingProperty": "email"}, "", "mirror", true},
		{"provisioning", e2e.Object{"status": "ENABLED", "automaticProvisioning": "ENABLED"}, "", "copy", true},
		{"provisioning where the email is taken", e2e.Object{"status": "ENABLED", "automaticProvisioning": "ENABLED"}, "VERIFIED", "mirror", true},
		{"provisioning and by email", e2e.Object{"status": "ENABLED", "automaticProvisioning": "ENABLED", "matchingProperty": "email"}, "VERIFIED", "local", false},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := newSAMLFixture(t)
			client.Update(t, s.Application.Link(t, "accountLinkingPolicy"), c.policy)
			var local e2e.Object
			if c.local != "" {
				local = client.Create(t, s.Directory.Link(t, "accounts"), e2e.Object{"email": s.at.session.UserEmail, "password": e2e.Password,
					"givenName": "Jo", "surname": "Doe", "emailVerificationStatus": c.local})
			}
			claims := s.claims(s.postResponse(s.at.loginResponse(t, s.begin(nil))))
			if claims["isNewSub"] != c.isNewAccount {
				t.Errorf("the claims are %v", claims)
			}
			account := client.Get(t, claims.Text("sub"))
			led := "mirror"
			switch {
			case account.Href() == local.Href():
				led = "local"
			case account.Link(t, "directory") == s.Directory.Href():
				led = "copy"
			}
			if led != c.leadsTo || account.Text("email") != s.at.session.UserEmail {
				t.Errorf("the login leads to the %s account %v", led, account)
			}
			links := len(client.All(t, account.Link(t, "accountLinks")))
			if (links == 1) != (led != "mirror") {
				t.Errorf("the account has %d links", links)
			}
			again := s.claims(s.postResponse(s.at.loginResponse(t, s.begin(nil))))
			if again["isNewSub"] != false || again.Text("sub") != account.Href() || len(client.All(t, account.Link(t, "accountLinks"))) != links {
				t.Errorf("the next login says %v", again)
			}
		})
	}
}

// checkRedirectSignature verifies the signature of a query with the certificate of
// the service provider.
func checkRedirectSignature(t *testing.T, location, metadata string) {
	t.Helper()
	view, err := document(t, metadata, "application/json").Object()
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(document(t, view.Link(t, "x509SigningCert"), "").Body)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	_, query, _ := strings.Cut(location, "?")
	text, signature, _ := strings.Cut(query, "&Signature=")
	decoded, err := url.QueryUnescape(signature)
	if err != nil {
		t.Fatal(err)
	}
	octets, err := base64.StdEncoding.DecodeString(decoded)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(text))
	if err := rsa.VerifyPKCS1v15(certificate.PublicKey.(*rsa.PublicKey), crypto.SHA256, sum[:], octets); err != nil {
		t.Errorf("the request is not signed: %v", err)
	}
}

func TestASAMLLoginThatCannotBegin(t *testing.T) {
	s := newSAMLFixture(t)
	jti := rand.Text()
	s.begin(e2e.Object{"jti": jti})
	other := client.NewFixture(t)
	for _, c := range []struct {
		what    string
		changes e2e.Object
		code    int
	}{
		{"a jti that was used", e2e.Object{"jti": jti}, 11005},
		{"no jti", e2e.Object{"jti": nil}, 11004},
		{"no iat", e2e.Object{"iat": nil}, 11004},
		{"an iat of yesterday", e2e.Object{"iat": time.Now().Unix() - 86400}, 10011},
		{"an iat of tomorrow", e2e.Object{"iat": time.Now().Unix() + 86400}, 10012},
		{"an exp that is over", e2e.Object{"exp": time.Now().Unix() - 600}, 10011},
		{"another application", e2e.Object{"iss": other.Application.Href()}, 400},
		{"the key without an application", e2e.Object{"iss": client.Key.ID}, 400},
		{"a callback that is not listed", e2e.Object{"cb_uri": "https://evil.example.test/"}, 5121},
		{"a store that is not a SAML directory", e2e.Object{"ash": s.Directory.Href()}, 2022},
		{"a store that is not mapped", e2e.Object{"ash": other.Directory.Href()}, 5114},
		{"a store that is not there", e2e.Object{"ash": s.Directory.Href() + "x"}, 2014},
		{"an organization that is not there", e2e.Object{"onk": e2e.Unique("org")}, 11001},
	} {
		t.Run(c.what, func(t *testing.T) {
			e2e.CheckError(t, client.Want(t, http.StatusBadRequest, s.loginRequest(c.changes)), http.StatusBadRequest, c.code)
		})
	}
	t.Run("no SAML directory", func(t *testing.T) {
		authorize(t, other.Application, callback)
		fixture := samlFixture{T: t, Fixture: other}
		e2e.CheckError(t, client.Want(t, http.StatusBadRequest, fixture.loginRequest(nil)), http.StatusBadRequest, 2014)
	})
	t.Run("no callback, or only some with wildcards", func(t *testing.T) {
		client.Update(t, s.Application.Href(), e2e.Object{"authorizedCallbackUris": []string{}})
		e2e.CheckError(t, client.Want(t, http.StatusBadRequest, s.loginRequest(nil)), http.StatusBadRequest, 5120)
		client.Update(t, s.Application.Href(), e2e.Object{"authorizedCallbackUris": []string{"https://*.example.test/cb"}})
		e2e.CheckError(t, client.Want(t, http.StatusBadRequest, s.loginRequest(nil)), http.StatusBadRequest, 5122)
	})
	t.Run("a foreign signature", func(t *testing.T) {
		request := s.loginRequest(nil)
		request.URL = request.URL[:len(request.URL)-4] + "AAAA"
		e2e.CheckError(t, client.Want(t, http.StatusBadRequest, request), http.StatusBadRequest, 400)
		page, err := http.NewRequestWithContext(t.Context(), http.MethodGet, request.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		page.Header.Set("Accept", "text/html")
		shown, err := client.HTTP.Do(page)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = shown.Body.Close() }()
		if body, err := io.ReadAll(shown.Body); err != nil || shown.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), "<h1>") {
			t.Errorf("a browser sees %d %s, %v", shown.StatusCode, body, err)
		}
	})
}

func TestASAMLLoginThatTheIdentityProviderBegins(t *testing.T) {
	s := newSAMLFixture(t)
	t.Run("without a relay state it leads to the application of the directory", func(t *testing.T) {
		claims := s.claims(s.postResponse(s.at.idpInitiatedLogin(t, "")))
		if _, given := claims["state"]; given || claims["isNewSub"] != true {
			t.Errorf("the claims are %v", claims)
		}
	})
	t.Run("a default relay state is good any number of times", func(t *testing.T) {
		provider := client.Get(t, client.Get(t, s.Application.Link(t, "samlPolicy")).Link(t, "serviceProvider"))
		state, err := client.Want(t, http.StatusOK, post(provider.Link(t, "defaultRelayStates"), e2e.Object{"callbackUri": callback, "state": "x"})).Object()
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if claims := s.claims(s.postResponse(s.at.idpInitiatedLogin(t, state.Text("defaultRelayState")))); claims["state"] != "x" || claims["isNewSub"] != false {
				t.Errorf("the claims are %v", claims)
			}
		}
	})
	t.Run("the answer to a request is none", func(t *testing.T) {
		form := s.at.loginResponse(t, s.begin(nil))
		form.Del("RelayState")
		s.refuses(form, http.StatusBadRequest, 10100)
	})
}

// A hosted page sends the browser to the identity provider; the session that begins
// ends there too.
func TestAHostedPageLogsInAtASAMLIdentityProvider(t *testing.T) {
	s := newSAMLFixture(t)
	browser := client.Browser()
	page := begin(t, browser, s.Application, nil, "/")
	model := page.object(http.StatusOK, http.MethodGet, s.Application.Href()+"?expand=idSiteModel", nil)
	if providers, _ := model.Object("idSiteModel")["providers"].([]any); len(providers) != 1 {
		t.Fatalf("the page shows %v", providers)
	}
	page.refused(http.StatusBadRequest, 2014, http.MethodGet, s.Application.Href()+"/saml/sso/idpRedirect?accountStore.href=x", nil)
	page.refused(http.StatusBadRequest, 2022, http.MethodGet, s.Application.Href()+"/saml/sso/idpRedirect?accountStore.href="+url.QueryEscape(s.Directory.Href()), nil)
	page.call(http.StatusNoContent, http.MethodGet, s.Application.Href()+"/saml/sso/idpRedirect?accountStore.href="+url.QueryEscape(respelled(address, s.mirror.Href())), nil)
	answer := browser.Want(t, http.StatusFound, e2e.Request{Method: http.MethodPost, URL: s.consumer, Body: s.at.loginResponse(t, page.back)})
	landing := answer.Header.Get("Location")
	if !strings.HasPrefix(landing, client.Key.HostURL()+"/sso?jwtResponse=") {
		t.Fatalf("the browser is sent to %s", landing)
	}
	assertion := redirectAssertion(t, browser, get(landing))
	claims := e2e.Claims(t, assertion)
	if claims.Text("iss") != "https://"+idSite(t).Text("domainName") || claims["isNewSub"] != true {
		t.Errorf("the claims are %v", claims)
	}
	client.Want(t, http.StatusOK, exchange(s.Application, assertion))
	t.Run("the browser has a session", func(t *testing.T) {
		again := e2e.Claims(t, redirectAssertion(t, browser, ssoRequest(hostedRequest(t, s.Application, nil))))
		if again.Text("sub") != claims.Text("sub") {
			t.Errorf("the claims are %v", again)
		}
	})
	t.Run("it stays that of the identity provider when a second step is passed", func(t *testing.T) {
		page := begin(t, browser, s.Application, e2e.Object{"require_mfa": []string{"google-authenticator"}}, "/")
		keyURI, challenges := page.enrolAuthenticator(client.Get(t, claims.Text("sub")))
		page.object(http.StatusCreated, http.MethodPost, challenges, e2e.Object{"code": totpCode(t, keyURI, time.Now())})
		checkAssertion(t, page.finishLogin(), "AUTHENTICATED", claims.Text("sub"))
	})
	t.Run("a logout ends it at the identity provider too", func(t *testing.T) {
		to := browser.Want(t, http.StatusFound, logoutRequest(hostedRequest(t, s.Application, nil))).Header.Get("Location")
		if !strings.HasPrefix(to, s.at.server.URL+"/slo?SAMLRequest=") {
			t.Fatalf("the browser is sent to %s", to)
		}
		checkRedirectSignature(t, to, client.Get(t, s.mirror.Link(t, "provider")).Link(t, "serviceProviderMetadata"))
		away := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		response, err := away.Get(to)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		<-s.at.logouts
		ended := e2e.Claims(t, redirectAssertion(t, browser, get(response.Header.Get("Location"))))
		if ended.Text("status") != "LOGOUT" || ended.Text("sub") != claims.Text("sub") {
			t.Errorf("the claims are %v", ended)
		}
		begin(t, browser, s.Application, nil, "/")
	})
	t.Run("its answer may come by a form, with any status, and is of a logout of this service", func(t *testing.T) {
		page := begin(t, browser, s.Application, nil, "/")
		page.call(http.StatusNoContent, http.MethodGet, s.Application.Href()+"/saml/sso/idpRedirect?accountStore.href="+url.QueryEscape(s.mirror.Href()), nil)
		landing := browser.Want(t, http.StatusFound, e2e.Request{Method: http.MethodPost, URL: s.consumer, Body: s.at.loginResponse(t, page.back)})
		redirectAssertion(t, browser, get(landing.Header.Get("Location")))
		to := location(t, browser.Want(t, http.StatusFound, logoutRequest(hostedRequest(t, s.Application, nil))))
		form := func(relayState string) e2e.Request {
			failed := `<p:LogoutResponse xmlns:p="urn:oasis:names:tc:SAML:2.0:protocol" ID="_a" Version="2.0"><p:Status>` +
				`<p:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Responder"/></p:Status></p:LogoutResponse>`
			return e2e.Request{Method: http.MethodPost, URL: client.Key.HostURL() + "/sso/logout", Anonymous: true, Body: url.Values{
				"SAMLResponse": {base64.StdEncoding.EncodeToString([]byte(failed))}, "RelayState": {relayState},
			}}
		}
		if ended := e2e.Claims(t, redirectAssertion(t, client.Browser(), form(to.Query().Get("RelayState")))); ended.Text("status") != "LOGOUT" {
			t.Errorf("the claims are %v", ended)
		}
		e2e.CheckError(t, client.Want(t, http.StatusBadRequest, form("x")), http.StatusBadRequest, 400)
	})
	t.Run("a second factor follows", func(t *testing.T) {
		page := begin(t, browser, s.Application, e2e.Object{"require_mfa": []string{"google-authenticator"}}, "/")
		page.call(http.StatusNoContent, http.MethodGet, s.Application.Href()+"/saml/sso/idpRedirect?accountStore.href="+url.QueryEscape(s.mirror.Href()), nil)
		answer := browser.Want(t, http.StatusFound, e2e.Request{Method: http.MethodPost, URL: s.consumer, Body: s.at.loginResponse(t, page.back)})
		token, found := strings.CutPrefix(answer.Header.Get("Location"), pageOrigin(t)+"/#/?jwt=")
		if !found || e2e.Claims(t, token).Object("scope").Object("account") == nil {
			t.Errorf("the browser is sent to %s", answer.Header.Get("Location"))
		}
	})
}

package e2e_test

import (
	"bytes"
	"compress/flate"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/crewjam/saml"

	"github.com/doorward/doorward/deploy/e2e"
)

// samlServiceProvider is a SAML service provider whose users log in at an application.
type samlServiceProvider struct {
	*testing.T
	e2e.Fixture
	*saml.ServiceProvider
	login        string // where its browsers go
	provider     e2e.Object
	registration e2e.Object
	account      e2e.Object
}

func newSAMLServiceProvider(t *testing.T, nameIDFormat string) samlServiceProvider {
	t.Helper()
	w := samlServiceProvider{T: t, Fixture: newHosted(t)}
	identity := identityProvider(t, w.Application)
	w.login = identity.Link(t, "ssoLoginEndpoint")
	var metadata saml.EntityDescriptor
	if err := xml.Unmarshal(document(t, identity.Link(t, "metadata"), "application/xml").Body, &metadata); err != nil {
		t.Fatal(err)
	}
	acs := url.URL{Scheme: "https", Host: "wiki.example.test", Path: "/acs"}
	own := newSAMLIdentity(t) // has a key pair
	w.ServiceProvider = &saml.ServiceProvider{
		EntityID: e2e.Unique("wiki"), Key: own.Key.(*rsa.PrivateKey), Certificate: own.Certificate, AcsURL: acs, IDPMetadata: &metadata,
		SignatureMethod: "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256",
	}
	registered := e2e.Object{"assertionConsumerServiceUrl": acs.String(), "entityId": w.EntityID, "nameIdFormat": nameIDFormat,
		"encodedX509Certificate": own.certificate}
	w.provider = client.Create(t, "/registeredSamlServiceProviders", registered)
	client.DeleteAtEnd(t, w.provider.Href())
	w.registration = client.Create(t, identity.Link(t, "samlServiceProviderRegistrations"), e2e.Object{"serviceProvider": e2e.Object{"href": w.provider.Href()}})
	client.Update(t, identity.Link(t, "attributeStatementMappingRules"), e2e.Object{"items": []e2e.Object{
		{"name": "mail", "accountAttributes": []string{"email"}}, {"name": "sn", "accountAttributes": []string{"surname"}},
	}})
	w.account = client.Register(t, w.Application.Link(t, "accounts"))
	return w
}

// request makes a request and the address that a browser opens with it.
func (w samlServiceProvider) request(change func(*saml.AuthnRequest)) (*saml.AuthnRequest, string) {
	w.Helper()
	request, err := w.MakeAuthenticationRequest(w.login, saml.HTTPRedirectBinding, saml.HTTPPostBinding)
	if err != nil {
		w.Fatal(err)
	}
	if change != nil {
		change(request)
	}
	address, err := request.Redirect("ab", w.ServiceProvider)
	if err != nil {
		w.Fatal(err)
	}
	return request, address.String()
}

// open follows a browser to the hosted page, or to where it is sent instead.
func (w samlServiceProvider) open(browser *e2e.Client, address string) string {
	w.Helper()
	signOn := browser.Want(w.T, http.StatusFound, get(address)).Header.Get("Location")
	if !strings.HasPrefix(signOn, client.Key.HostURL()+"/sso?signOn=") {
		w.Fatalf("the browser is sent to %s", signOn)
	}
	return browser.Want(w.T, http.StatusFound, get(signOn)).Header.Get("Location")
}

func (w samlServiceProvider) page(browser *e2e.Client, location string) *hostedPage {
	w.Helper()
	token, found := strings.CutPrefix(location, pageOrigin(w.T)+"/#/?jwt=")
	if !found {
		w.Fatalf("the browser is sent to %s", location)
	}
	return &hostedPage{T: w.T, browser: browser, app: w.Application, token: token}
}

// returnAddress is where the browser goes when a page has ended.
func (w samlServiceProvider) returnAddress(page *hostedPage) string {
	w.Helper()
	_, assertion, _ := strings.Cut(page.back, "jwtResponse=")
	return page.browser.Want(w.T, http.StatusFound, get(client.Key.HostURL()+"/sso/?jwtResponse="+assertion)).Header.Get("Location")
}

// loginResponse is the form that the browser posts to the service provider.
func (w samlServiceProvider) loginResponse(browser *e2e.Client, address string) url.Values {
	w.Helper()
	answer := browser.Want(w.T, http.StatusOK, get(address))
	if policy := answer.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "script-src 'sha256-") || strings.Contains(policy, "unsafe") {
		w.Errorf("the page has the policy %s", policy)
	}
	if !strings.Contains(string(answer.Body), `action="https://wiki.example.test/acs"`) {
		w.Errorf("the page is %s", answer.Body)
	}
	return formOf(w.T, string(answer.Body))
}

// verifiedAssertion is the assertion as the service provider verifies it.
func (w samlServiceProvider) verifiedAssertion(form url.Values, requestID string) (*saml.Assertion, error) {
	w.Helper()
	r := httptest.NewRequest(http.MethodPost, w.AcsURL.String(), strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if err := r.ParseForm(); err != nil {
		w.Fatal(err)
	}
	return w.ParseResponse(r, []string{requestID})
}

func (w samlServiceProvider) assertion(form url.Values, requestID string) *saml.Assertion {
	w.Helper()
	assertion, err := w.verifiedAssertion(form, requestID)
	if err != nil {
		var invalid *saml.InvalidResponseError
		if errors.As(err, &invalid) {
			err = invalid.PrivateErr
		}
		w.Fatal(err)
	}
	return assertion
}

// errorStatus is the status of a response that logs nobody in.
func (w samlServiceProvider) errorStatus(form url.Values) string {
	w.Helper()
	text, err := base64.StdEncoding.DecodeString(form.Get("SAMLResponse"))
	if err != nil {
		w.Fatal(err)
	}
	var response saml.Response
	if err := xml.Unmarshal(text, &response); err != nil || response.Status.StatusCode.StatusCode == nil || response.Assertion != nil {
		w.Fatalf("the response is %s, %v", text, err)
	}
	return response.Status.StatusCode.StatusCode.Value
}

func TestALoginForASAMLServiceProvider(t *testing.T) {
	w := newSAMLServiceProvider(t, "EMAIL")
	browser := client.Browser()
	request, address := w.request(nil)
	page := w.page(browser, w.open(browser, address))
	page.logIn(w.account.Text("email"))
	back := w.returnAddress(page)
	form := w.loginResponse(browser, back)
	assertion := w.assertion(form, request.ID)
	if form.Get("RelayState") != "ab" || assertion.Subject.NameID.Value != w.account.Text("email") ||
		assertion.Subject.NameID.Format != string(saml.EmailAddressNameIDFormat) {
		t.Errorf("the response is for %+v with %v", assertion.Subject.NameID, form)
	}
	attributes := map[string]string{}
	for _, statement := range assertion.AttributeStatements {
		for _, a := range statement.Attributes {
			attributes[a.Name] = a.Values[0].Value
		}
	}
	if attributes["mail"] != w.account.Text("email") || attributes["sn"] != w.account.Text("surname") {
		t.Errorf("the attributes are %v", attributes)
	}

	t.Run("the answer is there once, and for the browser that began", func(t *testing.T) {
		checkClientError(t, browser.Want(t, http.StatusBadRequest, get(back)), http.StatusBadRequest)
		_, address := w.request(nil)
		fresh, other := client.Browser(), client.Browser()
		page := w.page(fresh, w.open(fresh, address))
		page.logIn(w.account.Text("email"))
		checkClientError(t, other.Want(t, http.StatusBadRequest, get(w.returnAddress(page))), http.StatusBadRequest)
	})
	t.Run("a browser with a session sees no page, unless the service provider wants one", func(t *testing.T) {
		request, address := w.request(nil)
		again := w.assertion(w.loginResponse(browser, w.open(browser, address)), request.ID).AuthnStatements[0]
		first := assertion.AuthnStatements[0]
		if !again.AuthnInstant.Equal(first.AuthnInstant) || again.SessionIndex != first.SessionIndex {
			t.Errorf("the user proved himself at %s in the session %s, and by the session at %s in %s",
				first.AuthnInstant, first.SessionIndex, again.AuthnInstant, again.SessionIndex)
		}
		force := true
		_, address = w.request(func(r *saml.AuthnRequest) { r.ForceAuthn = &force })
		w.page(browser, w.open(browser, address))
	})
	t.Run("a request that may show nothing is refused without a session", func(t *testing.T) {
		passive := true
		stranger := client.Browser()
		_, address := w.request(func(r *saml.AuthnRequest) { r.IsPassive = &passive })
		if status := w.errorStatus(w.loginResponse(stranger, w.open(stranger, address))); status != saml.StatusNoPassive {
			t.Errorf("the status is %s", status)
		}
	})
	t.Run("a login that has not ended is refused", func(t *testing.T) {
		stranger := client.Browser()
		_, address := w.request(nil)
		page := w.page(stranger, w.open(stranger, address))
		to := page.claims().Text("cb_uri")
		if status := w.errorStatus(w.loginResponse(stranger, to)); status != saml.StatusAuthnFailed {
			t.Errorf("the status is %s", status)
		}
	})
	t.Run("an account that may not log in any more is refused", func(t *testing.T) {
		stranger := client.Browser()
		_, address := w.request(nil)
		page := w.page(stranger, w.open(stranger, address))
		page.logIn(w.account.Text("email"))
		client.Update(t, w.account.Href(), e2e.Object{"status": "DISABLED"})
		if status := w.errorStatus(w.loginResponse(stranger, w.returnAddress(page))); status != saml.StatusRequestDenied {
			t.Errorf("the status is %s", status)
		}
		client.Update(t, w.account.Href(), e2e.Object{"status": "ENABLED"})
	})
	t.Run("requests that cannot be answered", func(t *testing.T) {
		refused := func(what, address string) {
			t.Helper()
			checkClientError(t, browser.Want(t, http.StatusBadRequest, get(address)), http.StatusBadRequest)
			if t.Failed() {
				t.Log(what)
			}
		}
		_, address := w.request(nil)
		refused("no request", w.login)
		refused("another relay state than was signed", strings.Replace(address, "RelayState=ab", "RelayState=ba", 1))
		refused("a bomb", w.login+"?SAMLRequest="+url.QueryEscape(decompressionBomb(t)))
		_, elsewhere := w.request(func(r *saml.AuthnRequest) { r.AssertionConsumerServiceURL = "https://evil.example.test/" })
		refused("another consumer", elsewhere)
		_, other := w.request(func(r *saml.AuthnRequest) { r.Issuer.Value = rand.Text() })
		refused("an unknown service provider", other)
		client.Update(t, w.registration.Href(), e2e.Object{"status": "DISABLED"})
		refused("a disabled registration", address)
		client.Update(t, w.registration.Href(), e2e.Object{"status": "ENABLED"})
	})
}

// checkClientError checks an error of the Client API, which has two members.
func checkClientError(t *testing.T, answer e2e.Answer, status int) {
	t.Helper()
	body, err := answer.Object()
	if err != nil || len(body) != 2 || body.Number(t, "status") != status || body.Text("message") == "" {
		t.Errorf("the error is %s, %v, want status and message", answer, err)
	}
}

// decompressionBomb is a small message that is large when it is decompressed.
func decompressionBomb(t *testing.T) string {
	t.Helper()
	var compressed bytes.Buffer
	writer, err := flate.NewWriter(&compressed, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = writer.Write(bytes.Repeat([]byte(" "), 4<<20))
	_ = writer.Close()
	return base64.StdEncoding.EncodeToString(compressed.Bytes())
}

// A persistent name is of one service provider, and the same each time; a transient
// one is another each time. A request can come by a form too.
func TestASAMLServiceProviderThatPosts(t *testing.T) {
	for format, want := range map[string]int{"PERSISTENT": 1, "TRANSIENT": 2} {
		t.Run(format, func(t *testing.T) {
			w := newSAMLServiceProvider(t, format)
			if names := w.postedNames(t, "urn:oasis:names:tc:SAML:2.0:nameid-format:"+strings.ToLower(format)); len(names) != want {
				t.Errorf("the names of two logins are %v", names)
			}
		})
	}
}

// postedNames logs the account in twice by HTTP-POST and returns its names.
func (w samlServiceProvider) postedNames(t *testing.T, format string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for range 2 {
		browser := client.Browser()
		request, err := w.MakeAuthenticationRequest(w.login, saml.HTTPPostBinding, saml.HTTPPostBinding)
		if err != nil {
			t.Fatal(err)
		}
		form := formOf(t, strings.ReplaceAll(string(request.Post("x")), "SAMLRequest", "SAMLResponse"))
		body := url.Values{"SAMLRequest": {form.Get("SAMLResponse")}, "RelayState": {form.Get("RelayState")}}
		posted := e2e.Request{Method: http.MethodPost, URL: w.login, Body: body, Header: http.Header{"Origin": {"https://wiki.example.test"}}}
		signOn := browser.Want(t, http.StatusFound, posted).Header.Get("Location")
		page := w.page(browser, browser.Want(t, http.StatusFound, get(signOn)).Header.Get("Location"))
		page.logIn(w.account.Text("email"))
		assertion := w.assertion(w.loginResponse(browser, w.returnAddress(page)), request.ID)
		names[assertion.Subject.NameID.Value] = true
		if assertion.Subject.NameID.Format != format || assertion.Subject.NameID.Value == w.account.Text("email") {
			t.Errorf("the name is %+v", assertion.Subject.NameID)
		}
	}
	return names
}

package e2e_test

import (
	"fmt"
	"html"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/crewjam/saml"

	"github.com/doorward/doorward/deploy/e2e"
)

// From a hosted page to the provider's own pages and back, signed in, with a session
// that ends at the provider too.
func TestABrowserSignsInAtASAMLIdentityProvider(t *testing.T) {
	s := newSAMLFixture(t)
	shop := shop{Fixture: s.Fixture, callback: callbackPage(t)}
	shop.Application = authorize(t, s.Application, shop.callback)
	b := openBrowser(t)
	shop.openLogin(b, nil)
	b.awaitHeading("Sign in")
	b.follow("Continue with " + s.mirror.Text("name"))
	shop.awaitCallback(b, "AUTHENTICATED", "")

	shop.openLogin(b, nil)
	shop.awaitCallback(b, "AUTHENTICATED", "")
	b.open(client.Key.HostURL() + "/sso/logout?jwtRequest=" + hostedRequest(t, shop.Application, e2e.Object{"cb_uri": shop.callback}))
	shop.awaitCallback(b, "LOGOUT", "")
	<-s.at.logouts
	shop.openLogin(b, nil)
	b.awaitHeading("Sign in")
}

// From a service provider to the hosted page and back, signed in; the next service
// provider's user sees no page.
func TestABrowserSignsInForASAMLServiceProvider(t *testing.T) {
	w := newSAMLServiceProvider(t, "EMAIL")
	var request string
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		name := "nobody"
		if err := r.ParseForm(); err == nil && r.Method == http.MethodPost {
			if assertion, err := w.ParseResponse(r, []string{request}); err == nil {
				name = assertion.Subject.NameID.Value
			}
		}
		_, _ = fmt.Fprintf(rw, "<!doctype html><link rel=icon href='data:,'><title>wiki</title><h1>Hello %s</h1>", html.EscapeString(name))
	}))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	w.AcsURL.Host = "wiki.localhost:" + port
	client.Update(t, w.provider.Href(), e2e.Object{"assertionConsumerServiceUrl": w.AcsURL.String()})
	b := openBrowser(t)
	for first := range 2 {
		made, address := w.request(func(r *saml.AuthnRequest) { r.AssertionConsumerServiceURL = w.AcsURL.String() })
		request = made.ID
		b.open(address)
		if first == 0 {
			b.signIn(w.account.Text("email"), e2e.Password)
		}
		b.awaitHeading("Hello " + w.account.Text("email"))
	}
}

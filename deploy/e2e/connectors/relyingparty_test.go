package connectors_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/connectors"
	"github.com/doorward/doorward/deploy/e2e/harness"
)

// openIDIssuer is the application as an OpenID provider.
func openIDIssuer(t *testing.T, application e2e.Object) string {
	t.Helper()
	return client.Get(t, application.Link(t, "openIdProvider")).Text("issuer")
}

// newOpenIDClient registers a client of the application, and returns its id and its secret, which a public
// client does not have.
func newOpenIDClient(t *testing.T, application, fields e2e.Object) (id, secret string) {
	t.Helper()
	registered := client.Create(t, application.Link(t, "openIdClients"), fields)
	if registered.Text("tokenEndpointAuthMethod") != "none" {
		secret = client.Create(t, registered.Href()+"/secrets", e2e.Object{}).Text("secret")
	}
	return registered.Text("clientId"), secret
}

// newRelyingParty is a relying party of the application, without a client.
func newRelyingParty(t *testing.T, application e2e.Object) connectors.RelyingParty {
	t.Helper()
	return connectors.RelyingParty{
		Port: harness.FreePort(), Issuer: openIDIssuer(t, application), CAFile: client.Key.CAFile,
	}
}

// join makes an account a member of a group.
func join(t *testing.T, account, group e2e.Object) {
	t.Helper()
	client.Create(t, "/groupMemberships", e2e.Object{
		"account": e2e.Object{"href": account.Href()}, "group": e2e.Object{"href": group.Href()},
	})
}

// overTLS is the address of a server with a certificate of the authority, which passes requests on.
func overTLS(t *testing.T, address string) string {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := authority.Issue(t.TempDir(), "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.SetXForwarded()
	}})
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

// logIn fills in the hosted login page.
func (b *browser) logIn(account e2e.Object) {
	b.Helper()
	b.fill("login", account.Text("email"))
	b.fill("password", e2e.Password)
	b.do(chromedp.Click(chromedp.CSS("button[type=submit]")))
}

// awaitText waits until the page has a text.
func (b *browser) awaitText(text string) {
	b.Helper()
	b.awaitTrue(fmt.Sprintf("document.body?.innerText.includes(%q)", text))
}

// The code of the pages in docs/connect signs a user in and out, and ends its own session when Doorward
// ends its one (back-channel logout).
func TestTheCodeOfThePagesSignsUsersIn(t *testing.T) {
	type program struct {
		start                 func(connectors.RelyingParty, testing.TB)
		callback, backChannel string
	}
	for name, party := range map[string]program{
		"go-oidc":       {connectors.RelyingParty.StartGo, "/callback", "/backchannel"},
		"openid-client": {connectors.RelyingParty.StartNode, "/callback", "/backchannel"},
		"Authlib":       {connectors.RelyingParty.StartPython, "/callback", "/backchannel"},
		"Spring Security": {connectors.RelyingParty.StartJava, "/login/oauth2/code/doorward",
			"/logout/connect/back-channel/doorward"},
	} {
		t.Run(name, func(t *testing.T) {
			fixture := client.NewFixture(t)
			account := client.Register(t, fixture.Directory.Link(t, "accounts"))
			p := newRelyingParty(t, fixture.Application)
			p.ClientID, p.Secret = newOpenIDClient(t, fixture.Application, e2e.Object{
				"name": name, "redirectUris": []string{p.URL() + party.callback}, "postLogoutRedirectUris": []string{p.URL() + "/"},
				"backchannelLogoutUri": overTLS(t, p.URL()) + party.backChannel,
			})
			party.start(p, t)

			b := openBrowser(t)
			b.do(chromedp.Navigate(p.URL()))
			b.follow("Sign in")
			b.logIn(account)
			b.awaitText("Signed in as " + account.Text("email"))

			b.follow("Sign out")
			b.awaitTrue("location.href === '" + p.URL() + "/'")
			b.follow("Sign in")
			b.logIn(account) // the session has ended at Doorward too
			b.awaitText("Signed in as " + account.Text("email"))

			forged := e2e.SignJWT(e2e.Object{"alg": "HS256", "typ": "logout+jwt"}, e2e.Object{
				"iss": p.Issuer, "aud": p.ClientID, "sub": account.ID(), "exp": time.Now().Add(time.Minute).Unix(),
			}, p.Secret)
			answer, err := http.PostForm(p.URL()+party.backChannel, url.Values{"logout_token": {forged}})
			if err != nil {
				t.Fatal(err)
			}
			if _ = answer.Body.Close(); answer.StatusCode != http.StatusBadRequest {
				t.Errorf("a forged logout token is answered %d", answer.StatusCode)
			}
			b.do(chromedp.Navigate(p.URL()))
			b.awaitText("Signed in as " + account.Text("email"))

			client.Delete(t, account.Href()+"/sessions")
			err = e2e.Await(t.Context(), "the end of the session", func(context.Context) error {
				b.do(chromedp.Navigate(p.URL()))
				if text := b.text("document.body.innerText"); text != "Sign in" {
					return fmt.Errorf("the page says %q", text)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// The page of docs/connect/single-page.md calls the endpoints from its own origin.
func TestASinglePageApplicationSignsItsUserIn(t *testing.T) {
	fixture := client.NewFixture(t)
	account := client.Register(t, fixture.Directory.Link(t, "accounts"))
	library, err := harness.Fetched("openid-client")
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	home := strings.Replace(server.URL, "127.0.0.1", "localhost", 1) + "/"
	clientID, _ := newOpenIDClient(t, fixture.Application, e2e.Object{
		"name": "page", "applicationType": "browser",
		"redirectUris": []string{home}, "postLogoutRedirectUris": []string{home},
	})
	page := strings.NewReplacer("ISSUER", openIDIssuer(t, fixture.Application), "CLIENT_ID", clientID).
		Replace(connectors.PageBlock(t, "single-page.md", "html"))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, page) })
	mux.HandleFunc("GET /oidc-client-ts.min.js", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, filepath.Join(library, "node_modules/oidc-client-ts/dist/browser/oidc-client-ts.min.js"))
	})

	b := openBrowser(t)
	b.do(chromedp.Navigate(home))
	b.follow("Sign in")
	b.logIn(account)
	b.awaitText("Signed in as " + account.Text("email"))
	b.follow("Sign out")
	b.follow("Sign in")
	b.logIn(account)
	b.awaitText("Signed in as " + account.Text("email"))
}

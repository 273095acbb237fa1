package connectors_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

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

// newOpenIDClient registers a client of the application, and returns it with a secret.
func newOpenIDClient(t *testing.T, application, fields e2e.Object) (registered e2e.Object, secret string) {
	t.Helper()
	registered = client.Create(t, application.Link(t, "openIdClients"), fields)
	return registered, client.Create(t, registered.Href()+"/secrets", e2e.Object{}).Text("secret")
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
	for name, party := range map[string]struct {
		start       func(connectors.RelyingParty, testing.TB)
		callback    string
		backChannel string
	}{
		"go-oidc":         {connectors.RelyingParty.StartGo, "/callback", "/backchannel"},
		"openid-client":   {connectors.RelyingParty.StartNode, "/callback", "/backchannel"},
		"Authlib":         {connectors.RelyingParty.StartPython, "/callback", "/backchannel"},
		"Spring Security": {connectors.RelyingParty.StartJava, "/login/oauth2/code/doorward", "/logout/connect/back-channel/doorward"},
	} {
		t.Run(name, func(t *testing.T) {
			fixture := client.NewFixture(t)
			account := client.Register(t, fixture.Directory.Link(t, "accounts"))
			p := connectors.RelyingParty{
				Port: harness.FreePort(), Issuer: openIDIssuer(t, fixture.Application), CAFile: client.Key.CAFile,
			}
			var registered e2e.Object
			registered, p.Secret = newOpenIDClient(t, fixture.Application, e2e.Object{
				"name": name, "redirectUris": []string{p.URL() + party.callback}, "postLogoutRedirectUris": []string{p.URL() + "/"},
				"backchannelLogoutUri": overTLS(t, p.URL()) + party.backChannel,
			})
			p.ClientID = registered.Text("clientId")
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

			client.Delete(t, account.Href()+"/sessions")
			err := e2e.Await(t.Context(), "the end of the session", func(context.Context) error {
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
	registered := client.Create(t, fixture.Application.Link(t, "openIdClients"), e2e.Object{
		"name": "page", "applicationType": "browser", "redirectUris": []string{home}, "postLogoutRedirectUris": []string{home},
	})
	page := strings.NewReplacer("ISSUER", openIDIssuer(t, fixture.Application), "CLIENT_ID", registered.Text("clientId")).
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

// oauth2-proxy shows a page to the members of one group alone.
func TestOAuth2ProxyProtectsAPage(t *testing.T) {
	program := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, "<p>The wiki of %s</p>", r.Header.Get("X-Forwarded-Email"))
	}))
	t.Cleanup(program.Close)
	fixture := client.NewFixture(t)
	staff := client.Create(t, fixture.Directory.Link(t, "groups"), e2e.Object{"name": "staff"})
	p := connectors.RelyingParty{
		Port: harness.FreePort(), Issuer: openIDIssuer(t, fixture.Application), CAFile: client.Key.CAFile,
	}
	outside := overTLS(t, "http://127.0.0.1:"+strconv.Itoa(p.Port))
	var registered e2e.Object
	registered, p.Secret = newOpenIDClient(t, fixture.Application, e2e.Object{
		"name": "wiki", "redirectUris": []string{outside + "/oauth2/callback"}, "postLogoutRedirectUris": []string{outside + "/"},
	})
	p.ClientID = registered.Text("clientId")
	p.StartProxy(t, outside, program.URL+"/")
	newAccount := func(t *testing.T, status string) e2e.Object {
		account := client.Register(t, fixture.Directory.Link(t, "accounts"))
		return client.Update(t, account.Href(), e2e.Object{"emailVerificationStatus": status})
	}

	t.Run("a member sees the page until the logout", func(t *testing.T) {
		member := newAccount(t, "VERIFIED")
		client.Create(t, "/groupMemberships", e2e.Object{"account": e2e.Object{"href": member.Href()}, "group": e2e.Object{"href": staff.Href()}})
		b := openBrowser(t)
		b.do(chromedp.Navigate(outside + "/page"))
		b.logIn(member)
		b.awaitText("The wiki of " + member.Text("email"))
		end := p.Issuer + "/logout?" + url.Values{"client_id": {p.ClientID}, "post_logout_redirect_uri": {outside + "/"}}.Encode()
		b.do(chromedp.Navigate(outside + "/oauth2/sign_out?" + url.Values{"rd": {end}}.Encode()))
		b.do(chromedp.Click(chromedp.CSS("button[name=logout]")))
		b.logIn(member) // the page at which the logout ends is protected too
		b.awaitText("The wiki of " + member.Text("email"))
	})
	for name, status := range map[string]string{"no member": "VERIFIED", "an address that is not verified": "UNVERIFIED"} {
		t.Run(name+" is refused", func(t *testing.T) {
			b := openBrowser(t)
			b.do(chromedp.Navigate(outside + "/page"))
			b.logIn(newAccount(t, status))
			b.awaitText("403")
		})
	}
}

// The script of docs/connect/device.md gets tokens while its user logs in elsewhere.
func TestAScriptSignsItsUserInByACode(t *testing.T) {
	fixture := client.NewFixture(t)
	account := client.Register(t, fixture.Directory.Link(t, "accounts"))
	registered := client.Create(t, fixture.Application.Link(t, "openIdClients"), e2e.Object{
		"name": "script", "applicationType": "native", "responseTypes": []string{},
		"grantTypes": []string{"urn:ietf:params:oauth:grant-type:device_code", "refresh_token"},
	})
	script := exec.CommandContext(t.Context(), "bash", "-c", connectors.PageBlock(t, "device.md", "sh"))
	script.Env = append(os.Environ(), "ISSUER="+openIDIssuer(t, fixture.Application), "CLIENT_ID="+registered.Text("clientId"),
		"CA_FILE="+client.Key.CAFile)
	var userInfo bytes.Buffer
	script.Stdout = &userInfo
	said, err := script.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := script.Start(); err != nil {
		t.Fatal(err)
	}
	var page, code string
	if _, err := fmt.Fscanf(said, "Open %s and type %s\n", &page, &code); err != nil {
		t.Fatal(err)
	}
	b := openBrowser(t)
	b.do(chromedp.Navigate(page))
	b.fill("user_code", strings.TrimSuffix(code, "."))
	b.do(chromedp.Click(chromedp.CSS("button[type=submit]")))
	b.logIn(account)
	b.awaitTrue("document.querySelector('button[name=allow]') !== null")
	b.do(chromedp.Click(chromedp.CSS("button[name=allow]")))
	rest, err := io.ReadAll(said)
	if err := errors.Join(err, script.Wait()); err != nil {
		t.Fatalf("%v: %s", err, rest)
	}
	if !strings.Contains(userInfo.String(), account.Text("email")) {
		t.Errorf("the script printed %s", &userInfo)
	}
}

// Keycloak knows Doorward by the address of its discovery document, and ends its own session with that
// of Doorward.
func TestKeycloakBrokersAnOpenIDProvider(t *testing.T) {
	k, callback, fixture := keycloak(t), callbackPage(t), client.NewFixture(t)
	account := client.Register(t, fixture.Directory.Link(t, "accounts"))
	issuer, alias := openIDIssuer(t, fixture.Application), strings.ToLower(e2e.Unique("doorward"))
	registered, secret := newOpenIDClient(t, fixture.Application, e2e.Object{
		"name": "Keycloak", "redirectUris": []string{k.Issuer() + "/broker/" + alias + "/endpoint"},
		"backchannelLogoutUri": k.OpenID("logout/backchannel-logout"),
	})
	said, _ := k.Admin(t, http.MethodPost, "/identity-provider/import-config", e2e.Object{
		"providerId": "oidc", "fromUrl": issuer + "/.well-known/openid-configuration",
	}).(map[string]any)
	maps.Copy(said, e2e.Object{
		"clientId": registered.Text("clientId"), "clientSecret": secret, "clientAuthMethod": "client_secret_basic",
		"defaultScope": "openid profile email", "pkceEnabled": "true", "pkceMethod": "S256", "backchannelSupported": "true",
	})
	k.Admin(t, http.MethodPost, "/identity-provider/instances", e2e.Object{
		"alias": alias, "providerId": "oidc", "enabled": true, "trustEmail": true, "config": said,
	})
	id, _ := k.NewClient(t, callback)

	b := openBrowser(t)
	b.do(chromedp.Navigate(k.OpenID("auth") + "?" + url.Values{
		"client_id": {id}, "response_type": {"code"}, "redirect_uri": {callback}, "scope": {"openid"}, "state": {"x"}, "kc_idp_hint": {alias},
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

// A client of the Model Context Protocol finds Doorward by the metadata of the server of docs/connect/mcp.md
// (RFC 9728, RFC 8414), and its token is for that server alone.
func TestAnMCPServerTakesTokensForItself(t *testing.T) {
	fixture := client.NewFixture(t)
	account := client.Register(t, fixture.Directory.Link(t, "accounts"))
	p := connectors.RelyingParty{Port: harness.FreePort(), Issuer: openIDIssuer(t, fixture.Application), CAFile: client.Key.CAFile}
	api, other := p.URL()+"/mcp", "https://other.example.test/mcp"
	client.Update(t, fixture.Application.Link(t, "openIdProvider"), e2e.Object{"scopes": []e2e.Object{
		{"name": "notes", "description": "Read your notes", "consent": true, "resources": []string{api, other}},
	}})
	p.StartMCP(t)

	t.Run("of a user", func(t *testing.T) {
		p := p
		p.ClientID = client.Create(t, fixture.Application.Link(t, "openIdClients"), e2e.Object{
			"name": "assistant", "applicationType": "native", "redirectUris": []string{"http://127.0.0.1/callback"},
		}).Text("clientId")
		command := p.MCPClient(t, "owner")
		out, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		var failure bytes.Buffer
		command.Stderr = &failure
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		said := bufio.NewReader(out)
		page, err := said.ReadString('\n')
		if err != nil {
			t.Fatalf("%v: %s", err, &failure)
		}
		b := openBrowser(t)
		b.do(chromedp.Navigate(strings.TrimSpace(page)))
		b.logIn(account)
		b.awaitTrue("document.querySelector('button[name=allow]') !== null")
		b.do(chromedp.Click(chromedp.CSS("button[name=allow]")))
		rest, err := io.ReadAll(said)
		if err := errors.Join(err, command.Wait()); err != nil {
			t.Fatalf("%v: %s", err, &failure)
		}
		owner, token, _ := strings.Cut(string(rest), "\n")
		claims := e2e.Claims(t, strings.TrimSpace(token))
		if owner != "The notes of "+account.ID() || claims.Text("aud") != api {
			t.Errorf("the client printed %q, and its token has %v", owner, claims)
		}
	})
	t.Run("of no other audience, and none without the scope", func(t *testing.T) {
		service, secret := newOpenIDClient(t, fixture.Application, e2e.Object{"name": "nightly", "applicationType": "service"})
		for name, wanted := range map[string]struct {
			form   url.Values
			status int
		}{
			"for it":            {url.Values{"scope": {"notes"}, "resource": {api}}, http.StatusOK},
			"for another":       {url.Values{"scope": {"notes"}, "resource": {other}}, http.StatusUnauthorized},
			"without the scope": {url.Values{"scope": {"profile"}, "resource": {api}}, http.StatusForbidden},
			"for none":          {url.Values{"scope": {"profile"}}, http.StatusUnauthorized},
		} {
			wanted.form.Set("grant_type", "client_credentials")
			request := e2e.Post(p.Issuer+"/token", wanted.form)
			request.Anonymous, request.Header = true, http.Header{"Authorization": {"Basic " +
				base64.StdEncoding.EncodeToString([]byte(service.Text("clientId")+":"+secret))}}
			token := client.WantObject(t, http.StatusOK, request).Text("access_token")
			call, err := http.NewRequestWithContext(t.Context(), http.MethodPost, api,
				strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
			if err != nil {
				t.Fatal(err)
			}
			call.Header = http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"},
				"Accept": {"application/json, text/event-stream"}}
			answer, err := http.DefaultClient.Do(call)
			if err != nil {
				t.Fatal(err)
			}
			if _ = answer.Body.Close(); answer.StatusCode != wanted.status {
				t.Errorf("a token %s is answered %d, want %d", name, answer.StatusCode, wanted.status)
			}
		}
	})
}

// The API server of Kubernetes knows a user and the user's groups by the ID token of its client.
func TestKubernetesTakesIDTokens(t *testing.T) {
	fixture, callback := client.NewFixture(t), callbackPage(t)
	account := client.Register(t, fixture.Directory.Link(t, "accounts"))
	staff := client.Create(t, fixture.Directory.Link(t, "groups"), e2e.Object{"name": "staff"})
	client.Create(t, "/groupMemberships", e2e.Object{"account": e2e.Object{"href": account.Href()}, "group": e2e.Object{"href": staff.Href()}})
	client.Update(t, fixture.Application.Link(t, "openIdProvider"), e2e.Object{"claims": []e2e.Object{
		{"claim": "email", "source": "email", "scopes": []string{"email"}, "in": []string{"ID_TOKEN", "USERINFO"}},
		{"claim": "groups", "source": "groups.name", "scopes": []string{"groups"}, "in": []string{"ID_TOKEN", "USERINFO"}},
	}})
	p := connectors.RelyingParty{Issuer: openIDIssuer(t, fixture.Application), CAFile: client.Key.CAFile}
	newClient := func() string {
		return client.Create(t, fixture.Application.Link(t, "openIdClients"), e2e.Object{
			"name": e2e.Unique("kubectl"), "applicationType": "native", "redirectUris": []string{callback},
		}).Text("clientId")
	}
	idToken := func(clientID string) string {
		verifier := rand.Text() + rand.Text()
		sum := sha256.Sum256([]byte(verifier))
		b := openBrowser(t)
		b.do(chromedp.Navigate(p.Issuer + "/authorize?" + url.Values{
			"client_id": {clientID}, "redirect_uri": {callback}, "response_type": {"code"}, "scope": {"openid email groups"}, "state": {"x"},
			"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
		}.Encode()))
		b.logIn(account)
		request := e2e.Post(p.Issuer+"/token", url.Values{
			"grant_type": {"authorization_code"}, "code": {b.awaitCallback().Get("code")}, "redirect_uri": {callback},
			"client_id": {clientID}, "code_verifier": {verifier},
		})
		request.Anonymous = true
		return client.WantObject(t, http.StatusOK, request).Text("id_token")
	}

	p.ClientID = newClient()
	user, err := p.Kubernetes(t, idToken(p.ClientID))
	if want := "doorward:" + account.Text("email") + " doorward:staff\n"; err != nil || user != want {
		t.Errorf("Kubernetes has the user %q, %v, want %q", user, err, want)
	}
	if user, err := p.Kubernetes(t, idToken(newClient())); err == nil {
		t.Errorf("Kubernetes takes a token of another client, of %s", user)
	}
}

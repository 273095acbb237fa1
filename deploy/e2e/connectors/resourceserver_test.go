package connectors_test

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/doorward/doorward/deploy/e2e"
)

// A client of the Model Context Protocol finds Doorward by the metadata of the server of docs/connect/mcp.md
// (RFC 9728, RFC 8414), and its token is for that server alone.
func TestAnMCPServerTakesTokensForItself(t *testing.T) {
	fixture := client.NewFixture(t)
	account := client.Register(t, fixture.Directory.Link(t, "accounts"))
	p := newRelyingParty(t, fixture.Application)
	api, other := p.URL()+"/mcp", "https://other.example.test/mcp"
	client.Update(t, fixture.Application.Link(t, "openIdProvider"), e2e.Object{"scopes": []e2e.Object{
		{"name": "notes", "description": "Read your notes", "consent": true, "resources": []string{api, other}},
	}})
	p.StartMCP(t)

	registered, _ := newOpenIDClient(t, fixture.Application, e2e.Object{
		"name": "assistant", "applicationType": "native", "redirectUris": []string{"http://127.0.0.1/callback"},
	})
	user := func(t *testing.T, clientID string) {
		t.Helper()
		p := p
		p.ClientID = clientID
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
	}
	t.Run("of a user", func(t *testing.T) { user(t, registered) })
	t.Run("of a user, by a client that registers itself", func(t *testing.T) {
		client.Update(t, fixture.Application.Link(t, "openIdProvider"), e2e.Object{"clientRegistration": "OPEN"})
		user(t, "")
	})
	t.Run("of no other audience, and none without the scope", func(t *testing.T) {
		service, secret := newOpenIDClient(t, fixture.Application, e2e.Object{
			"name": "nightly", "applicationType": "service",
		})
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
				base64.StdEncoding.EncodeToString([]byte(service+":"+secret))}}
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
	join(t, account, staff)
	client.Update(t, fixture.Application.Link(t, "openIdProvider"), e2e.Object{"claims": []e2e.Object{
		{"claim": "email", "source": "email", "scopes": []string{"email"}, "in": []string{"ID_TOKEN", "USERINFO"}},
		{"claim": "groups", "source": "groups.name", "scopes": []string{"groups"}, "in": []string{"ID_TOKEN", "USERINFO"}},
	}})
	p := newRelyingParty(t, fixture.Application)
	newClient := func() string {
		id, _ := newOpenIDClient(t, fixture.Application, e2e.Object{
			"name": e2e.Unique("kubectl"), "applicationType": "native", "redirectUris": []string{callback},
		})
		return id
	}
	idToken := func(clientID string) string {
		verifier := rand.Text() + rand.Text()
		sum := sha256.Sum256([]byte(verifier))
		b := openBrowser(t)
		b.do(chromedp.Navigate(p.Issuer + "/authorize?" + url.Values{
			"client_id": {clientID}, "redirect_uri": {callback}, "response_type": {"code"},
			"scope": {"openid email groups"}, "state": {"x"},
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

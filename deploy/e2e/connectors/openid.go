package connectors

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	_ "embed"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
)

//go:embed openid.mjs
var openidScript []byte

// OpenID is node-oidc-provider. It asks every client for PKCE, signs id tokens
// that hold nothing but the subject, and returns the rest at its userinfo endpoint.
type OpenID struct {
	*harness.Daemon

	// Issuer is its address.
	Issuer string

	client *e2e.Client
}

// StartOpenID runs the provider for one test.
func StartOpenID(t testing.TB, authority *harness.Authority) *OpenID {
	t.Helper()
	node, err := harness.Program("node", "connectors")
	must(t, err)
	modules, err := harness.Fetched("oidc-provider")
	must(t, err)
	dir := t.TempDir()
	cert, key, err := authority.Issue(dir, "localhost", "127.0.0.1")
	must(t, err)
	script := filepath.Join(dir, "openid.mjs")
	must(t, os.WriteFile(script, openidScript, 0o644))
	port := strconv.Itoa(harness.FreePort())
	o := &OpenID{Issuer: "https://localhost:" + port}
	o.client, err = clientTrusting(authority)
	must(t, err)
	o.Daemon = harness.NewDaemon("openid", filepath.Join(dir, "openid.log"),
		answersOK(o.client, o.Issuer+"/.well-known/openid-configuration"), node, script)
	o.Setenv("MODULES="+modules, "PORT="+port, "ISSUER="+o.Issuer, "CERT="+cert, "KEY="+key)
	serve(t, o.Daemon)
	return o
}

// NewClient registers a confidential client with these addresses of return. Its id
// tokens are signed with ES256.
func (o *OpenID) NewClient(t testing.TB, redirects ...string) (id, secret string) {
	t.Helper()
	answer := o.client.Call(t, e2e.Request{Method: http.MethodPost, URL: o.Issuer + "/reg", Anonymous: true, Body: e2e.Object{
		"redirect_uris": redirects, "grant_types": []string{"authorization_code"}, "response_types": []string{"code"},
		"id_token_signed_response_alg": "ES256",
	}})
	client, err := answer.Object()
	if err != nil || client.Text("client_id") == "" {
		t.Fatalf("register a client: %s, %v", answer, err)
	}
	return client.Text("client_id"), client.Text("client_secret")
}

package connectors

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
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

	client *http.Client
}

// StartOpenID runs the provider for one test.
func StartOpenID(t testing.TB, authority *harness.Authority) *OpenID {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatalf("%v; run deploy/setup/setup.sh connectors", err)
	}
	modules, err := fetched("oidc-provider")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key, err := authority.Issue(dir, "localhost", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "openid.mjs")
	if err := os.WriteFile(script, openidScript, 0o644); err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(freePort(t))
	o := &OpenID{Issuer: "https://localhost:" + port}
	if o.client, err = trusting(authority); err != nil {
		t.Fatal(err)
	}
	discovery := func(ctx context.Context) error {
		return answersOK(ctx, o.client, o.Issuer+"/.well-known/openid-configuration")
	}
	o.Daemon = harness.NewDaemon("openid", filepath.Join(dir, "openid.log"), discovery, node, script)
	o.Setenv("MODULES="+modules, "PORT="+port, "ISSUER="+o.Issuer, "CERT="+cert, "KEY="+key)
	serve(t, o.Daemon)
	return o
}

// NewClient registers a confidential client with these addresses of return. Its id
// tokens are signed with ES256.
func (o *OpenID) NewClient(t testing.TB, redirects ...string) (id, secret string) {
	t.Helper()
	body, err := json.Marshal(e2e.Object{
		"redirect_uris": redirects, "grant_types": []string{"authorization_code"}, "response_types": []string{"code"},
		"id_token_signed_response_alg": "ES256",
	})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, o.Issuer+"/reg", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := o.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var client struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	if err := json.NewDecoder(response.Body).Decode(&client); err != nil || client.ID == "" {
		t.Fatal(fmt.Errorf("register a client: status %d: %w", response.StatusCode, err))
	}
	return client.ID, client.Secret
}

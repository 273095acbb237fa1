package openid_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/outbound"
	"github.com/doorward/doorward/services/oauth/oauthtest"
	"github.com/doorward/doorward/services/oauth/openid"
	"github.com/doorward/doorward/services/oauth/relyingparty"
)

// documentServer serves client ID metadata documents.
type documentServer struct {
	*httptest.Server
	served  atomic.Int64
	control atomic.Value // Cache-Control
}

func openDocuments(t *testing.T, d *oauthtest.Deployment, documents map[string]map[string]any) *documentServer {
	t.Helper()
	s := &documentServer{}
	s.control.Store("max-age=3600")
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.served.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", s.control.Load().(string))
		document := documents[r.URL.Path]
		if document == nil {
			w.WriteHeader(http.StatusNotFound)
		}
		if document["client_id"] == nil && document != nil {
			document["client_id"] = s.URL + r.URL.Path
		}
		if err := json.NewEncoder(w).Encode(document); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	reach(t, d, s.Server)
	return s
}

// reach makes the service reach a server of the test.
func reach(t *testing.T, d *oauthtest.Deployment, s *httptest.Server) {
	t.Helper()
	guard, err := outbound.ParseGuard([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if d.Outbound, err = guard.Trusting(string(authority)); err != nil {
		t.Fatal(err)
	}
	d.Service = d.WithMasterKey(t, d.Master)
}

func allowDocuments(t *testing.T, d *oauthtest.Deployment, allowed bool) {
	t.Helper()
	_, err := d.Service.UpdateProvider(t.Context(), id.Ref{Tenant: d.Tenant, ID: d.Site.Application},
		openid.ProviderChange{ClientIDMetadataDocuments: field.Some(allowed)})
	if err != nil {
		t.Fatal(err)
	}
}

// A program whose client_id is the address of its metadata logs a user in, after he was asked.
func TestAClientIDMetadataDocument(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	s := openDocuments(t, d, map[string]map[string]any{"/agent.json": {
		"client_name": "Agent", "redirect_uris": []string{callback}, "grant_types": []string{"authorization_code",
			"refresh_token"}, "token_endpoint_auth_method": "none",
	}})
	address := s.URL + "/agent.json"
	ask := func() (oauthapi.Authorization, error) {
		return d.Service.Authorization(t.Context(), oauthapi.AskAuthorization{Application: d.Site.Application,
			Parameters: map[string][]string{"client_id": {address}, "redirect_uri": {callback}, "response_type": {"code"},
				"scope": {"openid profile"}, "code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"},
				"code_challenge_method": {"S256"}}})
	}
	if _, err := ask(); !apierr.IsRefusal(err) || s.served.Load() != 0 {
		t.Fatalf("where it is not allowed a document returns %v after %d fetches", err, s.served.Load())
	}
	allowDocuments(t, d, true)
	asked, err := ask()
	if err != nil {
		t.Fatal(err)
	}
	if name := asked.Client.Name; name != "Agent ("+strings.TrimPrefix(address, "https://")+")" || len(asked.Consent) != 2 {
		t.Errorf("the user is asked for %v by %q", asked.Consent, name)
	}
	p := &party{t: t, Deployment: d, Site: d.Site}
	p.ClientID = address
	code := func() string {
		return p.code(func(in *oauthapi.IssueCode) { in.Scopes = []string{"openid", "profile"} })
	}
	tokens := p.token(p.redeem(code()))
	if _, claims := p.claims(tokens.IDToken); claims["aud"] != address {
		t.Errorf("aud is %v, want %s", claims["aud"], address)
	}
	refreshed := p.token(p.refresh(tokens.RefreshToken))
	userInfo := func() error {
		_, err := d.Service.UserInfo(t.Context(), p.bearer(refreshed.AccessToken))
		return err
	}
	if err := userInfo(); err != nil {
		t.Errorf("UserInfo returns %v", err)
	}
	if s.served.Load() != 1 {
		t.Errorf("the document was fetched %d times within its max-age", s.served.Load())
	}
	d.Clock.Move(2 * time.Hour)
	if _, err := ask(); err != nil || s.served.Load() != 2 {
		t.Errorf("after its max-age the document was fetched %d times: %v", s.served.Load(), err)
	}
	// The administrator can disable a client that came by itself.
	ref := id.Ref{Tenant: d.Tenant, ID: asked.Client.ID}
	if _, err := d.Service.UpdateClient(t.Context(), ref, relyingparty.Change{Status: field.Some("DISABLED")}); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(); !apierr.IsRefusal(err) {
		t.Errorf("a disabled client returns %v, want a refusal", err)
	}
	p.refuse("a code of a disabled client", "invalid_client", p.redeem("x"))
	if _, err := d.Service.UpdateClient(t.Context(), ref, relyingparty.Change{Status: field.Some("ENABLED")}); err != nil {
		t.Fatal(err)
	}
	allowDocuments(t, d, false)
	wantError(t, "UserInfo where documents are not allowed any more", "invalid_token", userInfo())
}

func TestClientIDMetadataDocumentsThatAreRefused(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	redirects := []string{callback}
	s := openDocuments(t, d, map[string]map[string]any{
		"/other":   {"client_id": "https://other.test/x", "redirect_uris": redirects},
		"/secret":  {"client_secret": "x", "redirect_uris": redirects},
		"/basic":   {"token_endpoint_auth_method": "client_secret_basic", "redirect_uris": redirects},
		"/grant":   {"grant_types": []string{"client_credentials"}, "redirect_uris": redirects},
		"/device":  {"grant_types": []string{"urn:ietf:params:oauth:grant-type:device_code"}},
		"/none":    {},
		"/script":  {"redirect_uris": []string{"javascript:alert(1)"}},
		"/large":   {"client_name": strings.Repeat("x", 70_000), "redirect_uris": redirects},
		"/longest": {"client_name": strings.Repeat("x", 300), "redirect_uris": redirects},
	})
	allowDocuments(t, d, true)
	ask := func(address string) error {
		_, err := d.Service.Authorization(t.Context(), oauthapi.AskAuthorization{Application: d.Site.Application,
			Parameters: map[string][]string{"client_id": {address}}})
		return err
	}
	for _, path := range []string{"/other", "/secret", "/basic", "/grant", "/device", "/none", "/script", "/large", "/longest", "/gone"} {
		before := s.served.Load()
		err := ask(s.URL + path)
		if apierr.From(err).Fields["error"] != "invalid_request" || !strings.Contains(apierr.From(err).Reason, path) {
			t.Errorf("%s returns %v, want invalid_request with the reason", path, err)
		}
		if again := ask(s.URL + path); again == nil || s.served.Load() != before+1 {
			t.Errorf("%s was fetched %d times within a minute", path, s.served.Load()-before)
		}
	}
	before := s.served.Load()
	for _, address := range []string{s.URL, s.URL + "/", s.URL + "/a/../agent.json", s.URL + "/a#b",
		strings.Replace(s.URL, "https://", "http://", 1) + "/agent.json",
		strings.Replace(s.URL, "https://", "https://user@", 1) + "/agent.json"} {
		if err := ask(address); !apierr.IsRefusal(err) || s.served.Load() != before {
			t.Errorf("the client_id %s returns %v, and was fetched %d times", address, err, s.served.Load()-before)
		}
	}
}

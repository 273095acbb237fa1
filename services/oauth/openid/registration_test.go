package openid_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/oauthtest"
	"github.com/doorward/doorward/services/oauth/openid"
	"github.com/doorward/doorward/services/oauth/relyingparty"
)

func openRegistration(t *testing.T, d *oauthtest.Deployment) {
	t.Helper()
	_, err := d.Service.UpdateProvider(t.Context(), id.Ref{Tenant: d.Tenant, ID: d.Application},
		openid.ProviderChange{ClientRegistration: field.Some(relyingparty.RegistrationOpen)})
	if err != nil {
		t.Fatal(err)
	}
}

func TestARegisteredClientWithoutALoginEnds(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	openRegistration(t, d)
	register := func() (client id.ID, in openid.Registration) {
		t.Helper()
		made, err := d.Service.RegisterClient(t.Context(), openid.Registration{Application: d.Application,
			Body: []byte(`{"redirect_uris":["` + callback + `"]}`)})
		if err != nil {
			t.Fatal(err)
		}
		if client, err = id.Parse(made["client_id"].(string)); err != nil {
			t.Fatal(err)
		}
		return client, openid.Registration{Application: d.Application, Client: client,
			Token: secure.Secret(made["registration_access_token"].(string))}
	}
	login := func(client id.ID) error {
		sum := sha256.Sum256([]byte(verifier))
		_, err := d.Service.IssueCode(t.Context(), oauthapi.IssueCode{Tenant: d.Tenant, Application: d.Application,
			ClientID: client.String(), RedirectURI: callback, Scopes: []string{"openid"},
			CodeChallenge: base64.RawURLEncoding.EncodeToString(sum[:]),
			Login:         oauthapi.Login{Account: d.Account, AuthenticatedAt: d.Clock.Now()}})
		return err
	}
	used, ofUsed := register()
	unused, ofUnused := register()
	if err := login(used); err != nil {
		t.Fatal(err)
	}
	made := newParty(t, d, d.Site, relyingparty.Change{})
	d.Clock.Move(30*24*time.Hour - time.Second)
	if _, err := d.Service.RegisteredClient(t.Context(), ofUnused); err != nil {
		t.Errorf("before the end it is answered with %v", err)
	}
	d.Clock.Move(time.Second)
	if err := login(unused); !errors.Is(err, apierr.NotFound) {
		t.Errorf("a login after 30 days is answered with %v", err)
	}
	if _, err := d.Service.RegisteredClient(t.Context(), ofUnused); !errors.Is(err, apierr.Unauthorized) {
		t.Errorf("its metadata is answered with %v", err)
	}
	d.Clock.Move(2 * time.Minute)
	if _, err := d.Service.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	for client, secrets := range map[id.ID]int{used: 1, unused: 0, made.OpenIDClient.ID: 1} {
		found, err := d.Store.ClientSecrets(t.Context(), id.Ref{Tenant: d.Tenant, ID: client})
		if err != nil || len(found) != secrets {
			t.Errorf("of %s %d secrets are left, %v; want %d", client, len(found), err, secrets)
		}
		_, err = d.Store.OpenIDClient(t.Context(), id.Ref{Tenant: d.Tenant, ID: client})
		if errors.Is(err, apierr.NotFound) != (secrets == 0) {
			t.Errorf("the client %s is answered with %v", client, err)
		}
	}
	if err := login(used); err != nil {
		t.Error(err)
	}
	if _, err := d.Service.RegisteredClient(t.Context(), ofUsed); err != nil {
		t.Error(err)
	}
}

// The document of a sector lists the redirect URIs of its clients, else a client could have the subjects of another's.
func TestASectorListsTheRedirectURIs(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		document := map[string]any{"/sector": []string{callback, callback + "2"}, "/other": []string{callback + "2"},
			"/object": map[string]any{"redirect_uris": []string{callback}}}[r.URL.Path]
		if document == nil {
			w.WriteHeader(http.StatusNotFound)
		}
		if err := json.NewEncoder(w).Encode(document); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	reach(t, d, server)
	openRegistration(t, d)
	change := func(path string) relyingparty.Change {
		return relyingparty.Change{Name: field.Some("Client " + path), RedirectURIs: field.Some([]string{callback}),
			SectorIdentifierURI: field.Some(server.URL + path), SubjectType: field.Some("pairwise")}
	}
	application := id.Ref{Tenant: d.Tenant, ID: d.Application}
	good, err := d.Service.CreateClient(t.Context(), application, change("/sector"))
	if err != nil {
		t.Fatal(err)
	}
	at := id.Ref{Tenant: d.Tenant, ID: good.ID}
	body := func(path string) []byte {
		return []byte(`{"redirect_uris":["` + callback + `"],"sector_identifier_uri":"` + server.URL + path + `"}`)
	}
	if _, err := d.Service.RegisterClient(t.Context(), openid.Registration{Application: d.Application,
		Body: body("/sector")}); err != nil {
		t.Error(err)
	}
	for _, path := range []string{"/other", "/object", "/missing"} {
		if _, err := d.Service.CreateClient(t.Context(), application, change(path)); apierr.From(err).Code != 2006 {
			t.Errorf("a new client of %s is answered with %v", path, err)
		}
		_, err := d.Service.UpdateClient(t.Context(), at, relyingparty.Change{
			SectorIdentifierURI: field.Some(server.URL + path)})
		if apierr.From(err).Code != 2006 {
			t.Errorf("a client that changes to %s is answered with %v", path, err)
		}
		_, err = d.Service.RegisterClient(t.Context(), openid.Registration{Application: d.Application, Body: body(path)})
		wantError(t, "a registration of "+path, "invalid_client_metadata", err)
	}
	_, err = d.Service.UpdateClient(t.Context(), at, relyingparty.Change{
		RedirectURIs: field.Some([]string{strings.TrimSuffix(callback, "/cb")})})
	if apierr.From(err).Code != 2006 {
		t.Errorf("a redirect URI that the sector does not have is answered with %v", err)
	}
	if _, err := d.Service.UpdateClient(t.Context(), at, relyingparty.Change{
		RedirectURIs: field.Some([]string{callback + "2"})}); err != nil {
		t.Error(err)
	}
}

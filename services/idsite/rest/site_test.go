package rest_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/clocktest"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/openapi/openapitest"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/rest/resttest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite"
	"github.com/doorward/doorward/services/idsite/idsitetest"
	idsiterest "github.com/doorward/doorward/services/idsite/rest"
	"github.com/doorward/doorward/services/idsite/store"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const base = href.Base("https://localhost:8443/v1")

// client asks the service as the gateway does.
type client struct {
	app    *fiber.App
	signer *caller.Signer
	svc    *idsite.Service
	data   *store.Store
	peers  *idsitetest.Deployment
}

// newClient opens the service; wrap changes what it calls.
func newClient(t testing.TB, wrap ...func(*idsite.Peers)) client {
	t.Helper()
	clock := &clocktest.Clock{}
	clock.Move(time.Date(2026, 11, 21, 6, 30, 0, 0, time.UTC).Sub(clocktest.Start))
	signer := caller.NewSigner("0123456789abcdef0123456789abcdef", clock.Now)
	peers := idsitetest.New(t, clock)
	ring, err := secure.ParseKeyring(secure.NewMasterKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	called := peers.Peers()
	for _, change := range wrap {
		change(&called)
	}
	data := store.New(peers.DB, clock.Now)
	svc := idsite.New(data, called, ring, clock.Now, idsite.Config{
		Base: base, AliasTitle: "Service", Product: "Doorward", Suffix: "localhost", ClientSuffix: "apps.localhost",
		SignUp: !strings.Contains(t.Name(), "SignUpIsOff"), LookupTXT: peers.DNS.LookupTXT,
	})
	app := rest.New(rest.Config{Service: "idsite", Base: base, Signer: signer})
	if err := idsiterest.Mount(app, svc, base); err != nil {
		t.Fatal(err)
	}
	return client{app, signer, svc, data, peers}
}

// tenant signs a tenant up and returns its id and that of its site.
func (c client) tenant(t testing.TB, key string) (tenant, site id.ID) {
	t.Helper()
	made, err := c.svc.SignUpFirstTenant(t.Context(), idsite.Bootstrap{KeyID: key, KeySecret: "secret", OwnerEmail: "owner@example.test"})
	if err != nil {
		t.Fatal(err)
	}
	page, err := c.svc.ListSites(t.Context(), id.Ref{Tenant: made.ID, ID: made.ID}, list.First())
	if err != nil || len(page.Items) != 1 {
		t.Fatalf("the sites are %+v, %v", page, err)
	}
	return made.ID, page.Items[0].ID
}

func (c client) do(t *testing.T, tenant id.ID, method, path string) (status int, body []byte) {
	t.Helper()
	request := httptest.NewRequest(method, path, nil)
	request.Header.Set(caller.Header, c.signer.Sign(caller.Caller{Tenant: tenant}))
	answer, err := openapitest.Do(t, c.app, request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err = io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, body
}

// The ids come from the API key's id, so that the answers are the same on every
// run.
func TestAnswers(t *testing.T) {
	c := newClient(t)
	tenant, site := c.tenant(t, "2EXAMPLE0KEY0ID00000000000")
	for _, answer := range []struct{ name, path string }{
		{"idsite", "/v1/idSites/" + site.String()},
		{"idsites", "/v1/tenants/" + tenant.String() + "/idSites?offset=0&limit=1"},
	} {
		t.Run(answer.name, func(t *testing.T) {
			status, body := c.do(t, tenant, http.MethodGet, answer.path)
			if status != http.StatusOK {
				t.Errorf("the status is %d", status)
			}
			resttest.CompareJSON(t, answer.name, body)
		})
	}
	_, upper := c.do(t, tenant, http.MethodGet, "/v1/tenants/"+tenant.String()+"/idSites")
	if _, lower := c.do(t, tenant, http.MethodGet, "/v1/tenants/"+tenant.String()+"/idsites"); !bytes.Equal(upper, lower) {
		t.Errorf("the spellings differ:\n%s\n%s", upper, lower)
	}
}

func TestASiteIsIsolatedByTenant(t *testing.T) {
	c := newClient(t)
	mine, site := c.tenant(t, "mine")
	theirs, foreign := c.tenant(t, "theirs")
	for path, want := range map[string]int{
		"/v1/idSites/" + site.String():                   http.StatusOK,
		"/v1/idSites/" + foreign.String():                http.StatusNotFound,
		"/v1/idSites/nothing":                            http.StatusNotFound,
		"/v1/tenants/" + mine.String() + "/idSites":      http.StatusOK,
		"/v1/tenants/" + theirs.String() + "/idSites":    http.StatusNotFound,
		"/v1/tenants/" + mine.String() + "/idSites?a=b":  http.StatusBadRequest,
		"/v1/tenants/" + mine.String() + "/idSites?q=id": http.StatusOK,
		"/v1/tenants/nothing/idSites":                    http.StatusNotFound,
		"/v1/idSites":                                    http.StatusNotFound,
	} {
		if status, body := c.do(t, mine, http.MethodGet, path); status != want {
			t.Errorf("GET %s answers %d, want %d: %s", path, status, want, body)
		}
	}
	if status, _ := c.do(t, mine, http.MethodDelete, "/v1/idSites/"+site.String()); status != http.StatusMethodNotAllowed {
		t.Errorf("DELETE answers %d", status)
	}
}

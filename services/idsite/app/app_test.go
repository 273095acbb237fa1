package app_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/clocktest"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/service"
	"github.com/doorward/doorward/services/idsite/app"
	"github.com/doorward/doorward/services/idsite/idsitetest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const secret = "0123456789abcdef0123456789abcdef"

// open starts the service in this process with further variables.
func open(t *testing.T, d *idsitetest.Deployment, variables ...string) (*run.Process, *service.App[app.Bootstrapped], error) {
	t.Helper()
	source := env.New(append([]string{
		"DATABASE_URL=" + pgtest.New(t, nil), "DOORWARD_BASE_URL=https://localhost:8443/v1", "DOORWARD_INTERNAL_SECRET=" + secret,
		"DOORWARD_OPS_LISTEN=127.0.0.1:0", "DOORWARD_LOG_LEVEL=error", "DOORWARD_MASTER_KEY=" + secure.NewMasterKey("k1").Reveal(),
	}, variables...))
	var cfg run.Config
	source.Load(&cfg)
	own := env.Load[app.Config](source)
	if err := source.Err(); err != nil {
		t.Fatal(err)
	}
	p, err := run.New(t.Context(), "idsite", cfg, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	a, err := app.Open(t.Context(), p, own, d.Peers())
	return p, a, err
}

// outcome waits for the first tenant.
func outcome(t *testing.T, a *service.App[app.Bootstrapped]) error {
	t.Helper()
	select {
	case err := <-a.API:
		return err
	case <-time.After(30 * time.Second):
		t.Fatal("timeout: waited for the first tenant")
		return nil
	}
}

const keyID, keySecret = "DOORWARD_BOOTSTRAP_KEY_ID=2EXAMPLE0KEY0ID00000000000", "DOORWARD_BOOTSTRAP_KEY_SECRET=" + secret

func TestTheFirstTenantIsCreatedAtTheStart(t *testing.T) {
	d := idsitetest.New(t, &clocktest.Clock{})
	_, a, err := open(t, d, keyID, keySecret, "DOORWARD_ALIAS=acme")
	if err != nil {
		t.Fatal(err)
	}
	if err := outcome(t, a); err != nil {
		t.Fatal(err)
	}
	tenants := d.Directories.Tenants(t)
	if len(tenants) != 1 || len(d.OAuth.Keys()) != 1 || tenants[0].Owner.Email != "owner@doorward.localhost" || tenants[0].Directory.Name != "Acme Administrators" {
		t.Errorf("the tenants are %+v", tenants)
	}
	request := httptest.NewRequest(http.MethodGet, "/v1/tenants/"+tenants[0].Tenant.ID.String()+"/idSites", nil)
	signer := caller.NewSigner(secret, func() time.Time { return time.Now().UTC() })
	request.Header.Set(caller.Header, signer.Sign(caller.Caller{Tenant: tenants[0].Tenant.ID}))
	answer, err := a.HTTP.Test(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("the site answers %d", answer.StatusCode)
	}
}

func TestWithoutAKeyThereIsNoFirstTenant(t *testing.T) {
	d := idsitetest.New(t, &clocktest.Clock{})
	_, a, err := open(t, d)
	if err != nil {
		t.Fatal(err)
	}
	if err := outcome(t, a); err != nil || len(d.Directories.Tenants(t)) != 0 {
		t.Errorf("there are %d tenants, %v", len(d.Directories.Tenants(t)), err)
	}
}

func TestAConfigurationThatIsRefusedStopsTheProcess(t *testing.T) {
	d := idsitetest.New(t, &clocktest.Clock{})
	d.FailSignUp(func(call int) error {
		if call == 3 { // that for the key
			return apierr.Exists.Because("the key exists with another secret")
		}
		return nil
	})
	p, a, err := open(t, d, keyID, keySecret)
	if err != nil {
		t.Fatal(err)
	}
	if err := outcome(t, a); err == nil || !strings.Contains(err.Error(), "DOORWARD_BOOTSTRAP_KEY_SECRET") {
		t.Errorf("the first tenant ends with %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := p.Wait(ctx); err == nil || !strings.Contains(err.Error(), "first tenant") {
		t.Errorf("the process ends with %v", err)
	}
}

func TestAHalfConfigurationIsRefused(t *testing.T) {
	for _, c := range []struct {
		variables []string
		says      string
	}{
		{[]string{keyID}, "go together"},
		{[]string{keySecret}, "go together"},
		{[]string{keyID, "DOORWARD_BOOTSTRAP_KEY_SECRET=short"}, "at least 32 characters"},
		{[]string{keyID, keySecret, "DOORWARD_BOOTSTRAP_OWNER_EMAIL=nobody"}, "DOORWARD_BOOTSTRAP_OWNER_EMAIL must be an email address"},
		{[]string{"DOORWARD_IDSITE_SUFFIX=https://id.example.com"}, "DOORWARD_IDSITE_SUFFIX must be a host name"},
		{[]string{"DOORWARD_BASE_URL=https://login.example.com/v1", "DOORWARD_IDSITE_SUFFIX=login.example.com"}, "the same site"},
		{[]string{"DOORWARD_BASE_URL=https://login.example.com/v1", "DOORWARD_IDSITE_SUFFIX=example.com"}, "the same site"},
		{[]string{"DOORWARD_BASE_URL=https://login.example.co.uk/v1", "DOORWARD_IDSITE_SUFFIX=pages.example.co.uk"}, "the same site"},
		{[]string{"DOORWARD_BASE_URL=https://login.localhost.test/v1", "DOORWARD_IDSITE_SUFFIX=localhost.test"}, "the same site"},
	} {
		if _, _, err := open(t, idsitetest.New(t, &clocktest.Clock{}), c.variables...); err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), secret) {
			t.Errorf("with %v the start says %v", c.variables, err)
		}
	}
}

package app_test

import (
	"context"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/clocktest"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/service"
	"github.com/doorward/doorward/services/idsite/app"
	"github.com/doorward/doorward/services/idsite/idsitetest"
	"github.com/doorward/doorward/services/idsite/store"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const secret = "0123456789abcdef0123456789abcdef"

// open starts the service in this process with further variables.
func open(t *testing.T, d *idsitetest.Deployment, variables ...string) (*run.Process, *service.App[app.Bootstrapped], error) {
	t.Helper()
	broker, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	return openWith(t, d, pgtest.New(t, nil), broker.ListenAddrs(), variables...)
}

// openWith is open with a database and brokers of the test.
func openWith(t *testing.T, d *idsitetest.Deployment, database string, brokers []string,
	variables ...string) (*run.Process, *service.App[app.Bootstrapped], error) {
	t.Helper()
	source := env.New(append([]string{
		"DATABASE_URL=" + database, "KAFKA_BROKERS=" + strings.Join(brokers, ","), "DOORWARD_BASE_URL=https://localhost:8443/v1", "DOORWARD_INTERNAL_SECRET=" + secret,
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

// The event of a deleted account comes by Kafka, and the end of its session goes there.
func TestAnEventOfTheDirectoryServiceEndsSessions(t *testing.T) {
	d := idsitetest.New(t, &clocktest.Clock{})
	broker, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	database := pgtest.New(t, nil)
	p, _, err := openWith(t, d, database, broker.ListenAddrs())
	if err != nil {
		t.Fatal(err)
	}
	cfg, now := outbox.Config{Brokers: broker.ListenAddrs(), Partitions: 2, Secret: secret}, time.Now()
	event := events.SessionEnded{Tenant: id.New(now), Account: id.New(now), Session: id.New(now), Clients: []id.ID{id.New(now)}}
	session := store.Session{TenantID: event.Tenant, ID: []byte("digest"), SessionID: event.Session, AccountID: event.Account,
		CreatedAt: now, IdleExpiresAt: now.Add(time.Hour), ExpiresAt: now.Add(time.Hour)}
	data := store.New(opened(t, store.Config(secure.Secret(database))), time.Now)
	if err := data.Tx(t.Context(), func(tx *store.Tx) error {
		if err := tx.InsertSession(t.Context(), session); err != nil {
			return err
		}
		tx.InsertSessionClient(store.SessionClient{TenantID: event.Tenant, SessionID: event.Session, ClientID: event.Clients[0]})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	directory := outbox.New(opened(t, pg.Config{URL: secure.Secret(database), Schema: "directory",
		Migrations: []fs.FS{outbox.Migrations()}}), "directory", time.Now)
	told := make(chan events.SessionEnded, 1)
	p.Go("directory relay", directory.Relay(cfg))
	p.Go("directory consumer", directory.Consume(cfg, []string{"idsite"}, events.On(
		func(_ context.Context, _ events.Envelope, event events.SessionEnded) error {
			told <- event
			return nil
		})))
	if err := directory.InTx(t.Context(), func(tx *outbox.Tx) error {
		return tx.Emit(t.Context(), events.AccountDeleted{Tenant: event.Tenant, Account: event.Account})
	}); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-told:
		if !reflect.DeepEqual(got, event) {
			t.Errorf("the event is %+v, want %+v", got, event)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("timeout: waited for the end of the session")
	}
}

// opened opens a database of a service.
func opened(t *testing.T, cfg pg.Config) *pg.DB {
	t.Helper()
	db, err := pg.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
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

package app_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/service"
	"github.com/doorward/doorward/pkg/telemetry"
	"github.com/doorward/doorward/services/oauth/app"
	"github.com/doorward/doorward/services/oauth/oauthtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// environment is a complete one.
func environment(database string, brokers []string) []string {
	return []string{
		"OAUTH_DATABASE_URL=" + database, "KAFKA_BROKERS=" + strings.Join(brokers, ","),
		"DOORWARD_BASE_URL=" + string(oauthtest.Base), "DOORWARD_INTERNAL_SECRET=" + strings.Repeat("s", 32),
		"DOORWARD_MASTER_KEY=" + secure.NewMasterKey("k1").Reveal(),
		"DOORWARD_DIRECTORY_URL=http://127.0.0.1:1", "DOORWARD_APPLICATION_URL=http://127.0.0.1:1",
		"DOORWARD_MFA_URL=http://127.0.0.1:1",
	}
}

func TestTheConfigurationTellsWhatIsMissing(t *testing.T) {
	source := env.New([]string{"DOORWARD_LISTEN=:1", "DOORWARD_LISTEM=:1"})
	env.Load[app.Config](source)
	err := source.Err()
	for _, name := range []string{
		"DATABASE_URL", "KAFKA_BROKERS", "DOORWARD_BASE_URL", "DOORWARD_INTERNAL_SECRET", "DOORWARD_MASTER_KEY",
		"DOORWARD_LISTEM",
	} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not reported: %v", name, err)
		}
	}
	source = env.New(environment("postgres://localhost/x", []string{"localhost:9092"}))
	env.Load[app.Config](source)
	if err := source.Err(); err != nil {
		t.Error(err)
	}
}

// process begins a process of the test's own.
func process(t *testing.T) *run.Process {
	t.Helper()
	p, err := run.New(t.Context(), "oauth", run.Config{OpsListen: "127.0.0.1:0", Stop: 20 * time.Second, Telemetry: telemetry.Config{LogLevel: "error"}}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestStartRefusesABadConfiguration(t *testing.T) {
	url := pgtest.New(t, nil)
	for name, c := range map[string]struct{ from, to, reported string }{
		"a master key":               {"DOORWARD_MASTER_KEY=k1:", "DOORWARD_MASTER_KEY=k1", "DOORWARD_MASTER_KEY"},
		"a base URL":                 {string(oauthtest.Base), "http://id.example.test", "DOORWARD_BASE_URL"},
		"a secret that is short":     {strings.Repeat("s", 32), "s", "DOORWARD_INTERNAL_SECRET"},
		"a directory's URL":          {"DIRECTORY_URL=http", "DIRECTORY_URL=ftp", "DOORWARD_DIRECTORY_URL"},
		"an application's URL":       {"APPLICATION_URL=http", "APPLICATION_URL=ftp", "DOORWARD_APPLICATION_URL"},
		"no directory":               {"DOORWARD_DIRECTORY_URL=http://127.0.0.1:1", "DOORWARD_DIRECTORY_URL=", "DOORWARD_DIRECTORY_URL"},
		"an mfa's URL":               {"MFA_URL=http", "MFA_URL=ftp", "DOORWARD_MFA_URL"},
		"no mfa":                     {"DOORWARD_MFA_URL=http://127.0.0.1:1", "DOORWARD_MFA_URL=", "DOORWARD_MFA_URL"},
		"no application":             {"DOORWARD_APPLICATION_URL=http://127.0.0.1:1", "DOORWARD_APPLICATION_URL=", "DOORWARD_APPLICATION_URL"},
		"a database's URL":           {url, "nonsense", "DATABASE_URL"},
		"a database that is unknown": {url, strings.Replace(url, "/doorward_test_", "/unknown_", 1), "does not exist"},
		"an address to listen on":    {"DOORWARD_LISTEN=127.0.0.1:0", "DOORWARD_LISTEN=127.0.0.1:none", "DOORWARD_LISTEN"},
	} {
		t.Run(name, func(t *testing.T) {
			p := process(t)
			variables := append(environment(url, []string{"127.0.0.1:1"}), "DOORWARD_LISTEN=127.0.0.1:0")
			for i := range variables {
				variables[i] = strings.ReplaceAll(variables[i], c.from, c.to)
			}
			err := service.Run(t.Context(), p, env.Load[app.Config](env.New(variables)), app.Open)
			if err == nil || !strings.Contains(err.Error(), c.reported) {
				t.Errorf("the start returns %v, which does not mention %s", err, c.reported)
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// The service as it is wired: an account that the directory deletes loses its
// key, by way of the outbox and Kafka.
func TestWiredService(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	url := pgtest.New(t, nil)
	world := oauthtest.OpenWorld(t)
	made, _ := world.NewTenant()
	tenant := made.Tenant.ID
	account := world.NewAccount(tenant, made.Directory.ID, oauthtest.Login, oauthtest.Password)

	p := process(t)
	ctx, stop := context.WithCancel(t.Context())
	cfg := env.Load[app.Config](env.New(environment(url, cluster.ListenAddrs())))
	wired, err := app.Open(ctx, p, cfg, world.Peers())
	if err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- p.Wait(ctx) }()

	key := oauthapi.Authenticate{ID: secure.KeyID(), Secret: secure.Token(43)}
	if _, err := wired.API.EnsureKey(ctx, oauthapi.EnsureKey{Tenant: tenant, Account: account, ID: key.ID, Secret: key.Secret}); err != nil {
		t.Fatal(err)
	}
	if _, err := wired.API.Authenticate(ctx, key); err != nil {
		t.Fatal(err)
	}

	directory, err := pg.Open(ctx, pg.Config{URL: secure.Secret(url), Schema: "directory", Migrations: []fs.FS{outbox.Migrations()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(directory.Close)
	sender := outbox.New(directory, "directory", time.Now)
	p.Go("directory relay", sender.Relay(cfg.Events))
	err = sender.InTx(ctx, func(tx *outbox.Tx) error {
		return tx.Emit(ctx, events.AccountDeleted{Tenant: tenant, Account: account})
	})
	if err != nil {
		t.Fatal(err)
	}
	// The account is there still, as far as the directory answers: only the
	// event can have taken the key away.
	deadline := time.Now().Add(30 * time.Second)
	for err = nil; !errors.Is(err, apierr.Unauthorized); _, err = wired.API.Authenticate(ctx, key) {
		if time.Now().After(deadline) {
			t.Fatal("the key stays")
		}
	}

	t.Run("it refuses requests that do not come through the gateway", func(t *testing.T) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- wired.HTTP.Listener(listener) }()
		for _, path := range []string{"/v1/apiKeys/" + key.ID, "/internal/oauth.Authenticate"} {
			if status := get(t, "http://"+listener.Addr().String()+path); status != 403 {
				t.Errorf("%s answers %d", path, status)
			}
		}
		if err := errors.Join(wired.HTTP.Shutdown(), <-served); err != nil {
			t.Error(err)
		}
	})
	stop()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func get(t *testing.T, address string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode
}

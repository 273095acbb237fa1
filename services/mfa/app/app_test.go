package app_test

import (
	"context"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/rest/resttest"
	"github.com/doorward/doorward/pkg/rpc"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/service"
	"github.com/doorward/doorward/pkg/telemetry"
	"github.com/doorward/doorward/services/mfa/app"
	"github.com/doorward/doorward/services/mfa/mfatest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const secret = "a secret of the tests, 32 characters"

// environment is a complete one.
func environment(database string, brokers []string) []string {
	return []string{
		"MFA_DATABASE_URL=" + database, "KAFKA_BROKERS=" + strings.Join(brokers, ","),
		"DOORWARD_BASE_URL=" + string(mfatest.Base), "DOORWARD_INTERNAL_SECRET=" + secret,
		"DOORWARD_MASTER_KEY=" + secure.NewMasterKey("k1").Reveal(), "DOORWARD_DIRECTORY_URL=http://127.0.0.1:1",
	}
}

func TestTheConfigurationTellsWhatIsMissing(t *testing.T) {
	source := env.New([]string{"DOORWARD_LISTEN=:1", "DOORWARD_SMS_PER_NUMBER=0"})
	env.Load[app.Config](source)
	err := source.Err()
	for _, name := range []string{
		"DATABASE_URL", "KAFKA_BROKERS", "DOORWARD_BASE_URL", "DOORWARD_INTERNAL_SECRET", "DOORWARD_MASTER_KEY",
		"DOORWARD_SMS_PER_NUMBER",
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
	p, err := run.New(t.Context(), "mfa",
		run.Config{OpsListen: "127.0.0.1:0", Stop: 20 * time.Second, Telemetry: telemetry.Config{LogLevel: "error"}},
		io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestStartRefusesABadConfiguration(t *testing.T) {
	url := pgtest.New(t, nil)
	for name, c := range map[string]struct{ from, to, reported string }{
		"a master key": {"DOORWARD_MASTER_KEY=k1:", "DOORWARD_MASTER_KEY=k1", "DOORWARD_MASTER_KEY"},
		"a base URL":   {string(mfatest.Base), "http://id.example.test", "DOORWARD_BASE_URL"},
		"no directory": {"DOORWARD_DIRECTORY_URL=http://127.0.0.1:1", "DOORWARD_DIRECTORY_URL=",
			"DOORWARD_DIRECTORY_URL"},
		"a database that is unknown": {url, strings.Replace(url, "/doorward_test_", "/unknown_", 1), "does not exist"},
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

// The service as it is wired: what it emits reaches Kafka, and an account that
// the directory deletes loses its factor, by way of the outbox and Kafka.
func TestWiredService(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	url := pgtest.New(t, nil)
	world := mfatest.Open(t)

	p := process(t)
	ctx, stop := context.WithCancel(t.Context())
	cfg := env.Load[app.Config](env.New(environment(url, cluster.ListenAddrs())))
	wired, err := app.Open(ctx, p, cfg, app.Peers{Directory: world.Directory})
	if err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- p.Wait(ctx) }()

	client := resttest.New(t, wired.HTTP, caller.NewSigner(secret, time.Now), caller.Caller{Tenant: world.Tenant})
	factor := client.Post(mfatest.Of(world.Jo)+"/factors?challenge=true",
		`{"type":"SMS","phone":{"number":"+18883915282"}}`).Want(201).Href()

	directory, err := pg.Open(ctx,
		pg.Config{URL: secure.Secret(url), Schema: "directory", Migrations: []fs.FS{outbox.Migrations()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(directory.Close)
	sender := outbox.New(directory, "directory", time.Now)
	sent := make(chan events.ChallengeCreated, 1)
	p.Go("directory consumer", sender.Consume(cfg.Events, []string{"mfa"}, events.On(
		func(_ context.Context, _ events.Envelope, event events.ChallengeCreated) error {
			sent <- event
			return nil
		})))
	select {
	case event := <-sent:
		if event.Number != "+18883915282" || event.Account != world.Jo.ID {
			t.Errorf("the event is %+v", event)
		}
	case <-time.After(30 * time.Second):
		t.Error("the event did not arrive")
	}

	p.Go("directory relay", sender.Relay(cfg.Events))
	err = sender.InTx(ctx, func(tx *outbox.Tx) error {
		return tx.Emit(ctx, events.AccountDeleted{Tenant: world.Tenant, Account: world.Jo.ID})
	})
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); client.Get(factor).Status != http.StatusNotFound; {
		if time.Now().After(deadline) {
			t.Fatal("the factor stays")
		}
	}

	t.Run("it answers its peers", func(t *testing.T) {
		remote := mfaapi.Client(rpc.Peer{Upstream: rpc.LocalUpstream("mfa", wired.HTTP.Handler()),
			Signer: caller.NewSigner(secret, time.Now)})
		out, err := remote.BeginSecondStep(t.Context(),
			mfaapi.BeginSecondStep{Tenant: world.Tenant, Application: world.Tenant, Account: world.Jo.ID})
		if err != nil || out.Action != mfaapi.Enroll || out.State == "" {
			t.Errorf("the demand is %+v, %v", out, err)
		}
	})
	t.Run("it refuses requests that do not come through the gateway", func(t *testing.T) {
		response, err := wired.HTTP.Test(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/factors/x", nil),
			-1)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil || response.StatusCode != fiber.StatusForbidden {
			t.Errorf("it answers %d, %v", response.StatusCode, err)
		}
	})
	stop()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

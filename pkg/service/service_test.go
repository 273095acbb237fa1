package service_test

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/service"
	"github.com/doorward/doorward/pkg/telemetry"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var migrations = fstest.MapFS{"20260101000001_vault.sql": {Data: []byte(`-- +goose Up
CREATE TABLE secrets (tenant_id uuid PRIMARY KEY, value_sealed bytea);`)}}

var sealed = []secure.SealedColumn[string]{{Table: "secrets", Key: "tenant_id::text", Column: "value_sealed",
	Purpose: func(string) string { return "vault" }}}

// process is a process with one service, vault, which is opened in the background.
type process struct {
	*testing.T
	*run.Process
	opened  chan error
	service *service.Service // when opened had nil
}

// poolSize is the pool size of its configuration.
const poolSize = 5

func start(t *testing.T, url string, key secure.Secret) *process {
	t.Helper()
	p, err := run.New(t.Context(), "vault", run.Config{OpsListen: "127.0.0.1:0", Stop: 10 * time.Second,
		Telemetry: telemetry.Config{LogLevel: "info"}}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	started := &process{T: t, Process: p, opened: make(chan error, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	cfg := service.Config{Config: deployment.Config{BaseURL: "https://id.example.test/v1", Alias: "service",
		InternalSecret: secure.Secret(strings.Repeat("s", 32))}, MasterKey: key, PoolSize: poolSize}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		opened, err := service.Open(ctx, p, cfg, pg.Config{URL: secure.Secret(url), Schema: "vault", Migrations: []fs.FS{migrations}}, sealed)
		started.service = opened
		started.opened <- err
		if err == nil {
			_ = p.Wait(ctx)
			return
		}
		_ = p.Close()
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return started
}

type readiness struct {
	Ready    bool
	Status   string
	Reason   *string
	Problems map[string]string
}

// await reads /readyz until ok accepts the answer.
func (p *process) await(what string, ok func(status int, answer readiness) bool) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), time.Minute)
	defer cancel()
	var body []byte
	for ctx.Err() == nil {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.Ops+"/readyz", nil)
		if err != nil {
			p.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			continue
		}
		body, _ = io.ReadAll(response.Body)
		_ = response.Body.Close()
		var answer readiness
		if err := json.Unmarshal(body, &answer); err != nil {
			p.Fatal(err)
		}
		if ok(response.StatusCode, answer) {
			return
		}
	}
	p.Fatalf("timeout: waited for %s, /readyz is %s", what, body)
}

func (p *process) awaitReady() {
	p.Helper()
	p.await("a process that is ready", func(status int, answer readiness) bool {
		return status == http.StatusOK && answer.Ready && answer.Status == "READY" && answer.Reason == nil && answer.Problems != nil &&
			len(answer.Problems) == 0
	})
}

func (p *process) awaitProblem(name, text string) {
	p.Helper()
	p.await("the problem "+name, func(status int, answer readiness) bool {
		return status == http.StatusServiceUnavailable && !answer.Ready && answer.Status == "NOT_READY" && answer.Reason == nil &&
			strings.Contains(answer.Problems[name], text)
	})
}

func execute(t *testing.T, url, statement string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	statement = strings.ReplaceAll(statement, "DATABASE own", "DATABASE "+conn.Config().Database)
	if _, err := conn.Exec(t.Context(), `BEGIN READ WRITE; `+statement+`; COMMIT`); err != nil {
		t.Fatal(err)
	}
}

// Not beside the others, because the meter provider is one for the test binary.
func TestAProcessWaitsForItsDatabase(t *testing.T) {
	url := pgtest.New(t, nil)
	end := pgtest.Outage(t, url)
	p := start(t, url, secure.NewMasterKey("k1"))
	p.awaitProblem("database vault", "not currently accepting connections")
	end()
	p.awaitReady()
	if err := <-p.opened; err != nil {
		t.Fatal(err)
	}

	execute(t, url, `ALTER DATABASE own SET default_transaction_read_only = on`)
	p.await("a degraded process", func(status int, answer readiness) bool {
		return status == http.StatusOK && answer.Ready && answer.Status == "DEGRADED" && answer.Reason != nil &&
			strings.HasPrefix(*answer.Reason, "vault: ") && strings.HasSuffix(*answer.Reason, "(25006)") && len(answer.Problems) == 0
	})
	p.scrape(`doorward_database_writable{schema="vault",shard="0"} 0`)
	execute(t, url, `ALTER DATABASE own RESET default_transaction_read_only`)
	p.awaitReady()
	p.scrape(`doorward_database_writable{schema="vault",shard="0"} 1`)
	end = pgtest.Outage(t, url)
	p.awaitProblem("database vault", "")
	end()
	p.awaitReady()
}

func (p *process) scrape(want string) {
	p.Helper()
	request, err := http.NewRequestWithContext(p.Context(), http.MethodGet, "http://"+p.Ops+"/metrics", nil)
	if err != nil {
		p.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		p.Fatal(err)
	}
	body, _ := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if !strings.Contains(string(body), want+"\n") {
		p.Errorf("the metrics lack %s", want)
	}
}

func TestThePoolOfAServiceHasTheConfiguredSize(t *testing.T) {
	t.Parallel()
	p := start(t, pgtest.New(t, nil), secure.NewMasterKey("k1"))
	if err := <-p.opened; err != nil {
		t.Fatal(err)
	}
	if size := p.service.DB.Stat().MaxConns(); size != poolSize {
		t.Errorf("the pool has %d connections at most, want %d", size, poolSize)
	}
}

func TestAProcessIsNotReadyBeforeItHasWritten(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t, nil)
	key := secure.NewMasterKey("k1")
	first := start(t, url, key)
	first.awaitReady()
	execute(t, url, `ALTER DATABASE own SET default_transaction_read_only = on`)
	second := start(t, url, key)
	second.awaitProblem("database vault", "(25006)")
	execute(t, url, `ALTER DATABASE own RESET default_transaction_read_only`)
	second.awaitReady()
}

func TestWhatWaitingDoesNotMendEndsTheProcess(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t, nil)
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	missing := start(t, strings.Replace(url, config.Database, "nothing", 1), secure.NewMasterKey("k1"))
	if err := <-missing.opened; err == nil || !strings.Contains(err.Error(), "3D000") {
		t.Errorf("with a database that is not there: %v", err)
	}
	start(t, url, secure.NewMasterKey("k1")).awaitReady()
	execute(t, url, `INSERT INTO vault.migrations (version_id, is_applied, oldest_release) VALUES (20990101000001, true, NULL)`)
	if err := <-start(t, url, secure.NewMasterKey("k1")).opened; err == nil || !strings.Contains(err.Error(), "20990101000001") {
		t.Errorf("with a schema that is newer: %v", err)
	}
}

func TestAMasterKeyThatOpensNothingIsRefused(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t, nil)
	former, next := secure.NewMasterKey("k1"), secure.NewMasterKey("k2")
	start(t, url, former).awaitReady()
	start(t, url, next).awaitProblem("master key vault", `ids "k1"`)
	start(t, url, secure.NewMasterKey("k1")).awaitProblem("master key vault", `the key "k1" is another`)
	start(t, url, next+","+former).awaitReady()
	start(t, url, next).awaitReady()
	start(t, url, secure.Secret(next.Reveal()+","+secure.NewMasterKey("k1").Reveal())).awaitProblem("master key vault", `the key "k1" is another`)

	// Of a release without canaries.
	ring, err := secure.ParseKeyring(former)
	if err != nil {
		t.Fatal(err)
	}
	execute(t, url, `TRUNCATE vault.master_key_canaries`)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if _, err := conn.Exec(t.Context(), `INSERT INTO vault.secrets VALUES (gen_random_uuid(), $1)`, ring.Seal("secret", "vault")); err != nil {
		t.Fatal(err)
	}
	start(t, url, next).awaitProblem("master key vault", "secrets.value_sealed")
	start(t, url, next+","+former).awaitReady()
}

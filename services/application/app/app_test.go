package app_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/service"
	"github.com/doorward/doorward/services/application/app"
	"github.com/doorward/doorward/services/application/applicationtest"
	"github.com/doorward/doorward/services/directory/directorytest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var secret = secure.Secret(strings.Repeat("s", 32))

// process is the service as a process of its own, configured by its
// environment, with a broker and a directory service over the network.
type process struct {
	*testing.T
	address     string
	signer      *caller.Signer
	tenant      id.ID
	directories *directorytest.Service
	outbox      *outbox.Outbox // of the directory service
	cfg         outbox.Config
	metrics     http.Handler
}

func start(t *testing.T) *process {
	t.Helper()
	directories := directorytest.New(t, pgtest.Open(t, directorytest.Config), applicationtest.Base, time.Now)
	p := &process{T: t, signer: caller.NewSigner(secret, time.Now), tenant: directories.NewTenant().Tenant.ID,
		directories: directories}
	broker, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	p.cfg = outbox.Config{Brokers: broker.ListenAddrs(), Partitions: 2, Secret: secret}
	url := pgtest.New(t, nil)
	p.address = free(t)
	environment := source(t, map[string]string{
		"DATABASE_URL": url, "KAFKA_BROKERS": strings.Join(p.cfg.Brokers, ","), "DOORWARD_LISTEN": p.address,
		"DOORWARD_BASE_URL": string(applicationtest.Base), "DOORWARD_INTERNAL_SECRET": secret.Reveal(),
		"DOORWARD_MASTER_KEY": secure.NewMasterKey("k1").Reveal(), "DOORWARD_DIRECTORY_URL": "http://" + p.directoryService(),
		"DOORWARD_OPS_LISTEN": "127.0.0.1:0",
	})
	process := begin(t, environment)
	if err := service.Run(t.Context(), process, env.Load[app.Config](environment), app.Open); err != nil {
		t.Fatal(err)
	}
	p.metrics = process.Telemetry.Metrics
	p.outbox = p.directoryOutbox(url)
	return p
}

// source is an environment that is complete: what is missing would be reported.
func source(t *testing.T, values map[string]string) *env.Source {
	t.Helper()
	var environ []string
	for name, value := range values {
		environ = append(environ, name+"="+value)
	}
	s := env.New(environ)
	t.Cleanup(func() {
		if err := s.Err(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// begin begins a process, which ends with the test.
func begin(t *testing.T, environment *env.Source) *run.Process {
	t.Helper()
	var cfg run.Config
	environment.Load(&cfg)
	p, err := run.New(t.Context(), "application", cfg, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// free returns an address that nobody listens on.
func free(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// directoryService serves the directory's contract and returns its address.
func (p *process) directoryService() string {
	p.Helper()
	server := rest.New(rest.Config{Service: "directory", Base: applicationtest.Base, Signer: p.signer})
	directoryapi.Serve(rest.Contract(server), p.directories)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Listener(listener) }()
	p.Cleanup(func() {
		_ = server.Shutdown()
		<-served
	})
	return listener.Addr().String()
}

// directoryOutbox relays what the directory service tells.
func (p *process) directoryOutbox(url string) *outbox.Outbox {
	p.Helper()
	db, err := pg.Open(p.Context(),
		pg.Config{URL: secure.Secret(url), Schema: "directory", Migrations: []fs.FS{outbox.Migrations()}})
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(db.Close)
	sender := outbox.New(db, "directory", time.Now)
	p.work(sender.Relay(p.cfg))
	return sender
}

// work runs a worker until the test ends.
func (p *process) work(work func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- work(ctx) }()
	p.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			p.Error(err)
		}
	})
}

func (p *process) send(method, path string, body map[string]any) (status int, answer map[string]any) {
	p.Helper()
	encoded, err := json.Marshal(body)
	if err != nil {
		p.Fatal(err)
	}
	request, err := http.NewRequestWithContext(p.Context(), method, "http://"+p.address+
		strings.TrimPrefix(path, applicationtest.Base.Host()), bytes.NewReader(encoded))
	if err != nil {
		p.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(caller.Header, p.signer.Sign(caller.Caller{Tenant: p.tenant}))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		p.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusNoContent {
		if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
			p.Fatal(err)
		}
	}
	return response.StatusCode, answer
}

// eventually waits until ok returns true.
func (p *process) eventually(what string, ok func() bool) {
	p.Helper()
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline.C:
			p.Fatalf("timeout: waited for %s", what)
		case <-tick.C:
		}
	}
}

func TestTheProcess(t *testing.T) {
	t.Parallel()
	p := start(t)
	status, made := p.send("POST", "/v1/applications?createDirectory=true", map[string]any{"name": "Shop"})
	if status != http.StatusCreated {
		t.Fatalf("creating the application answers %d %v", status, made)
	}
	shop := made["href"].(string)
	_, mapping := p.send("GET", made["defaultAccountStoreMapping"].(map[string]any)["href"].(string), nil)
	ref, ok := applicationtest.Base.Parse(mapping["accountStore"].(map[string]any)["href"].(string))
	if !ok {
		t.Fatalf("the mapping is %v", mapping)
	}

	t.Run("learns that a group is gone", func(t *testing.T) {
		group := directoryapi.CreateGroup{Tenant: p.tenant, ID: id.New(time.Now()), Directory: ref.ID,
			Group: directoryapi.NewGroup{Name: field.Some("Staff")}}
		if _, err := p.directories.CreateGroup(t.Context(), group); err != nil {
			t.Fatal(err)
		}
		status, mapped := p.send("POST", "/v1/accountStoreMappings", map[string]any{
			"application": map[string]any{"href": shop}, "accountStore": applicationtest.Base.Link("groups", group.ID),
		})
		if status != http.StatusCreated {
			t.Fatalf("creating the mapping answers %d %v", status, mapped)
		}
		err := p.outbox.InTx(t.Context(), func(tx *outbox.Tx) error {
			return tx.Emit(t.Context(), events.GroupDeleted{Tenant: p.tenant, Group: group.ID, Directory: ref.ID})
		})
		if err != nil {
			t.Fatal(err)
		}
		p.eventually("the mapping to go", func() bool {
			status, _ := p.send("GET", mapped["href"].(string), nil)
			return status == http.StatusNotFound
		})
	})
	t.Run("counts logins by their result", func(t *testing.T) {
		account := directoryapi.CreateAccount{Tenant: p.tenant, ID: id.New(time.Now()), Directory: ref.ID,
			Account: directoryapi.NewAccount{Email: field.Some("jo@example.test"),
				Password: field.Some(applicationtest.Password)}}
		if _, err := p.directories.CreateAccount(t.Context(), account); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			password string
			status   int
			tries    int
		}{{applicationtest.Password, 200, 2}, {"Wrong1234", 400, 20}, {"Wrong1234", 429, 3}} {
			for range c.tries {
				value := base64.StdEncoding.EncodeToString([]byte("jo@example.test:" + c.password))
				if status, a := p.send("POST", shop+"/loginAttempts",
					map[string]any{"type": "basic", "value": value}); status != c.status {
					t.Fatalf("the login attempt answers %d %v", status, a)
				}
			}
		}
		answer := httptest.NewRecorder()
		p.metrics.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		for result, n := range map[string]int{"success": 2, "failure": 20, "pair_limit": 3} {
			if metric := fmt.Sprintf(`doorward_application_logins_total{result=%q} %d`, result, n); !strings.Contains(
				answer.Body.String(), metric+"\n") {
				t.Errorf("the metrics lack %s", metric)
			}
		}
	})
	t.Run("learns that a directory is gone", func(t *testing.T) {
		err := p.outbox.InTx(t.Context(), func(tx *outbox.Tx) error {
			return tx.Emit(t.Context(), events.DirectoryDeleted{Tenant: p.tenant, Directory: ref.ID})
		})
		if err != nil {
			t.Fatal(err)
		}
		p.eventually("the mapping to go", func() bool {
			_, a := p.send("GET", shop, nil)
			return a["defaultAccountStoreMapping"] == nil && a["defaultGroupStoreMapping"] == nil
		})
	})
	t.Run("tells that an application is gone", func(t *testing.T) {
		received := make(chan events.ApplicationDeleted, 8)
		p.work(p.outbox.Consume(p.cfg, []string{"application"},
			events.On(func(_ context.Context, _ events.Envelope, event events.ApplicationDeleted) error {
				received <- event
				return nil
			})))
		if status, _ := p.send("DELETE", shop, nil); status != http.StatusNoContent {
			t.Fatalf("deleting the application answers %d", status)
		}
		select {
		case event := <-received:
			if event.Tenant != p.tenant || applicationtest.Base.To("applications", event.Application) != shop {
				t.Errorf("the event tells of %+v", event)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("timeout: waited for the event")
		}
	})
}

func TestAProcessThatIsNotConfigured(t *testing.T) {
	t.Parallel()
	s := env.New(nil)
	env.Load[app.Config](s)
	err := s.Err()
	for _, name := range []string{"DATABASE_URL", "KAFKA_BROKERS", "DOORWARD_BASE_URL", "DOORWARD_INTERNAL_SECRET",
		"DOORWARD_MASTER_KEY"} {
		if err == nil || !strings.Contains(err.Error(), name+" is missing") {
			t.Errorf("the error of the configuration does not ask for %s: %v", name, err)
		}
	}
	for what, c := range map[string]struct{ variable, value string }{
		"without the address of a peer":  {"DOORWARD_DIRECTORY_URL", ""},
		"with an address of no form":     {"DOORWARD_DIRECTORY_URL", "directory:8080"},
		"with a master key that is none": {"DOORWARD_MASTER_KEY", "k1:short"},
	} {
		t.Run(what, func(t *testing.T) {
			values := map[string]string{
				"DOORWARD_BASE_URL": string(applicationtest.Base), "DOORWARD_INTERNAL_SECRET": secret.Reveal(),
				"DOORWARD_OPS_LISTEN": "127.0.0.1:0",
				"DOORWARD_MASTER_KEY": secure.NewMasterKey("k1").Reveal(), "DOORWARD_DIRECTORY_URL": "http://127.0.0.1:1",
			}
			values[c.variable] = c.value
			var environ []string
			for name, value := range values {
				environ = append(environ, name+"="+value)
			}
			environment := env.New(environ)
			if err := service.Run(t.Context(), begin(t, environment), env.Load[app.Config](environment), app.Open); err == nil ||
				!strings.Contains(err.Error(), c.variable) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/telemetry"
)

type config struct {
	Name string `env:"DOORWARD_NAME" required:"true" help:"a name"`
}

func TestAConfigurationThatIsNotCompleteStopsTheStart(t *testing.T) {
	var out, log bytes.Buffer
	opened := false
	open := func(context.Context, *Process, config) error { opened = true; return errors.New("enough") }
	if code := start("test", "tests", nil, env.New([]string{"DOORWARD_NMAE=x"}), &out, &log, env.Load[config], open); code != 2 || opened {
		t.Fatalf("exit code %d, opened %v", code, opened)
	}
	for _, want := range []string{"DOORWARD_NAME is missing", "DOORWARD_NMAE is not a variable"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the message does not say %q: %s", want, log.String())
		}
	}
}

func TestHelpNeedsNoConfiguration(t *testing.T) {
	var out, log bytes.Buffer
	open := func(context.Context, *Process, config) error { return errors.New("opened") }
	if code := start("test", "tests", []string{"--help"}, env.New(nil), &out, &log, env.Load[config], open); code != 0 {
		t.Fatalf("--help ended with the exit code %d", code)
	}
	for _, want := range []string{"DOORWARD_NAME", "DOORWARD_OPS_LISTEN", "(required)"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the help does not show %q", want)
		}
	}
}

func TestTheVersionNeedsNoConfiguration(t *testing.T) {
	var out, log bytes.Buffer
	open := func(context.Context, *Process, config) error { return errors.New("opened") }
	code := start("test", "tests", []string{"--version"}, env.New(nil), &out, &log, env.Load[config], open)
	if want := "test " + telemetry.Version() + ", go"; code != 0 || !strings.HasPrefix(out.String(), want) {
		t.Fatalf("exit code %d, it says %q, want %q", code, out.String(), want)
	}
}

func TestTheProbeEndsAsReadyzAnswers(t *testing.T) {
	status := http.StatusOK
	ops := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			t.Errorf("the probe asks %s", r.URL)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "the database is away")
	}))
	probed := func() (code int, said string) {
		var out, log bytes.Buffer
		open := func(context.Context, *Process, config) error { return errors.New("opened") }
		address := strings.TrimPrefix(ops.URL, "http://")
		code = start("test", "tests", []string{"--probe"}, env.New([]string{"DOORWARD_OPS_LISTEN=" + address}), &out, &log, env.Load[config], open)
		return code, log.String()
	}
	if code, said := probed(); code != 0 {
		t.Errorf("of a process that is ready it is %d, %s", code, said)
	}
	status = http.StatusServiceUnavailable
	if code, said := probed(); code != 1 || !strings.Contains(said, "the database is away") {
		t.Errorf("of a process that is not ready it is %d, %s", code, said)
	}
	ops.Close()
	if code, _ := probed(); code != 1 {
		t.Errorf("without a process it is %d", code)
	}
}

func TestAStartThatFailsClosesWhatItOpened(t *testing.T) {
	var out, log bytes.Buffer
	closed := false
	open := func(_ context.Context, p *Process, _ config) error {
		p.OnClose("part", func(context.Context) error { closed = true; return nil })
		return errors.New("the database is away")
	}
	environment := env.New([]string{"DOORWARD_NAME=x", "DOORWARD_OPS_LISTEN=127.0.0.1:0"})
	if code := start("test", "tests", nil, environment, &out, &log, env.Load[config], open); code != 1 || !closed || !strings.Contains(log.String(), "the database is away") {
		t.Fatalf("exit code %d, closed %v: %s", code, closed, log.String())
	}
}

func newProcess(t *testing.T) (*Process, string) {
	t.Helper()
	var log lockedBuffer
	p, err := New(t.Context(), "test", Config{OpsListen: "127.0.0.1:0", Stop: 10 * time.Second, Telemetry: telemetry.Config{LogLevel: "info"}}, &log)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(log.String()) {
		var record struct{ Address string }
		if json.Unmarshal([]byte(line), &record) == nil && record.Address != "" {
			return p, "http://" + record.Address
		}
	}
	t.Fatalf("the log does not name the private port: %s", log.String())
	return nil, ""
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestTheLifeOfAProcess(t *testing.T) {
	p, ops := newProcess(t)
	var mu sync.Mutex
	var order []string
	note := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, what)
	}
	away := errors.New("the peer is away")
	var problem error
	p.Check("peer", func(context.Context) error { mu.Lock(); defer mu.Unlock(); return problem })
	p.OnClose("first", func(context.Context) error { note("first closed"); return nil })
	p.Go("worker", func(ctx context.Context) error { <-ctx.Done(); note("worker ended"); return nil })
	p.OnClose("last", func(context.Context) error {
		note("last closed")
		if status, _ := get(t, ops+"/readyz"); status != 503 {
			t.Errorf("/readyz while closing is %d", status)
		}
		return nil
	})
	if status, body := get(t, ops+"/readyz"); status != 503 || !strings.Contains(body, "starting") {
		t.Errorf("/readyz before the start is %d %s", status, body)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Wait(ctx) }()
	for status := 0; status != 200; status, _ = get(t, ops+"/readyz") { // until Wait has turned it ready
	}
	mu.Lock()
	problem = away
	mu.Unlock()
	if status, body := get(t, ops+"/readyz"); status != 503 || !strings.Contains(body, away.Error()) {
		t.Errorf("/readyz with a problem is %d %s", status, body)
	}
	if status, _ := get(t, ops+"/healthz"); status != 200 {
		t.Errorf("/healthz is %d", status)
	}
	if status, body := get(t, ops+"/metrics"); status != 200 || !strings.Contains(body, "go_goroutines") {
		t.Errorf("/metrics is %d", status)
	}
	if status, body := get(t, ops+"/debug/pprof/goroutine?debug=1"); status != 200 || !strings.Contains(body, "goroutine profile") {
		t.Errorf("/debug/pprof/goroutine is %d", status)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if want := []string{"last closed", "worker ended", "first closed"}; !slices.Equal(order, want) {
		t.Errorf("closed in the order %v, want %v", order, want)
	}
}

func TestAWorkerThatFailsStopsTheProcess(t *testing.T) {
	p, _ := newProcess(t)
	broken := errors.New("the listener broke")
	p.Go("http", func(context.Context) error { return broken })
	if err := p.Wait(t.Context()); !errors.Is(err, broken) {
		t.Fatalf("Wait = %v", err)
	}
}

func TestAnUnknownArgumentIsNamed(t *testing.T) {
	var out, log bytes.Buffer
	open := func(context.Context, *Process, config) error { return errors.New("opened") }
	code := start("test", "tests", []string{"--foo"}, env.New(nil), &out, &log, env.Load[config], open)
	if code != 2 || !strings.Contains(log.String(), `the argument "--foo" is unknown; --help`) {
		t.Fatalf("an unknown argument ended with the exit code %d: %s", code, log.String())
	}
}

// The log is JSON; its last line says to a person why the process has ended.
func TestWhatStoppedAProcessIsTheLastLine(t *testing.T) {
	var out, log bytes.Buffer
	open := func(_ context.Context, p *Process, _ config) error {
		p.OnClose("part", func(context.Context) error { return errors.New("it is gone too") })
		p.Go("database", func(context.Context) error { return errors.New("it was killed") })
		return nil
	}
	code := start("test", "tests", nil, env.New([]string{"DOORWARD_NAME=x", "DOORWARD_OPS_LISTEN=localhost:0"}), &out, &log, env.Load[config], open)
	if code != 1 || !strings.HasSuffix(log.String(), "}\ntest stopped: database: it was killed\n") {
		t.Fatalf("the process ended with the exit code %d: %s", code, log.String())
	}
}

package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// Check adds a readiness check of /readyz.
func (p *Process) Check(name string, fn func(context.Context) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.checks[name] = fn
}

// opsHandler serves the private port: /healthz, the liveness probe, /readyz, the readiness probe,
// /metrics for Prometheus, and the profiles of package pprof.
func (p *Process) opsHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.Handle("GET /metrics", p.Telemetry.Metrics)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		problems := p.failedChecks(ctx)
		w.Header().Set("Content-Type", "application/json")
		if len(problems) > 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"ready": len(problems) == 0, "problems": problems})
	})
	return mux
}

// probe asks the process whose private port has this address whether it is ready. It is the health check of
// the images, which hold no other program.
func probe(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("DOORWARD_OPS_LISTEN: %w", err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	client := http.Client{Timeout: 2 * time.Second}
	answer, err := client.Get("http://" + net.JoinHostPort(host, port) + "/readyz")
	if err != nil {
		return err
	}
	body, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s", body)
	}
	return nil
}

// failedChecks runs the readiness checks, and returns the errors of those that failed, by name.
func (p *Process) failedChecks(ctx context.Context) map[string]string {
	problems := map[string]string{}
	if !p.ready.Load() {
		problems["process"] = "starting or stopping"
	}
	p.mu.Lock()
	checks := make(map[string]func(context.Context) error, len(p.checks))
	maps.Copy(checks, p.checks)
	p.mu.Unlock()
	for name, check := range checks {
		if err := check(ctx); err != nil {
			problems[name] = err.Error()
		}
	}
	return problems
}

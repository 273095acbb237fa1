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
	"slices"
	"strings"
	"time"
)

// Degraded is the error of a readiness check of a process that still serves what it can: /readyz is 200 with the
// status DEGRADED and this reason.
type Degraded string

func (d Degraded) Error() string { return string(d) }

// readiness is the answer of /readyz.
type readiness struct {
	Ready    bool              `json:"ready"`
	Status   string            `json:"status"` // READY, DEGRADED or NOT_READY
	Reason   *string           `json:"reason"` // of DEGRADED
	Problems map[string]string `json:"problems"`
}

// Check adds a readiness check of /readyz, or replaces the one with that name. remove takes it away again.
func (p *Process) Check(name string, fn func(context.Context) error) (remove func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.checks[name] = fn
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.checks, name)
	}
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
		answer := p.readiness(ctx)
		w.Header().Set("Content-Type", "application/json")
		if !answer.Ready {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(answer)
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

// readiness runs the readiness checks.
func (p *Process) readiness(ctx context.Context) readiness {
	answer := readiness{Problems: map[string]string{}}
	if !p.ready.Load() {
		answer.Problems["process"] = "starting or stopping"
	}
	p.mu.Lock()
	checks := make(map[string]func(context.Context) error, len(p.checks))
	maps.Copy(checks, p.checks)
	p.mu.Unlock()
	var reasons []string
	for name, check := range checks {
		err := check(ctx)
		if degraded, ok := errors.AsType[Degraded](err); ok {
			reasons = append(reasons, string(degraded))
		} else if err != nil {
			answer.Problems[name] = err.Error()
		}
	}
	switch {
	case len(answer.Problems) > 0:
		answer.Status = "NOT_READY"
		return answer
	case len(reasons) > 0:
		slices.Sort(reasons)
		reason := strings.Join(reasons, "; ")
		answer.Status, answer.Reason = "DEGRADED", &reason
	default:
		answer.Status = "READY"
	}
	answer.Ready = true
	return answer
}

package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// health is the status of the agent and the problems of its parts.
type health struct {
	mu       sync.Mutex
	problems map[string]Problem
	status   Status
}

// Problem is the current error of a part of the agent.
type Problem struct {
	Since   time.Time `json:"since"`
	Message string    `json:"message"`
}

// Status is what the status page shows.
type Status struct {
	Problems   map[string]Problem `json:"problems"` // by part of the agent: configuration, synchronization, …
	SyncedAt   *time.Time         `json:"syncedAt"` // end of the last successful sync
	FullAt     *time.Time         `json:"fullAt"`   // end of the last full sync
	LagSeconds float64            `json:"lagSeconds"`
	Accounts   int                `json:"accounts"`
	Groups     int                `json:"groups"`
	Sent       int                `json:"sent"`
	Searches   int                `json:"searches"`
	Checks     map[string]int     `json:"checks"` // by result
}

var (
	meter        = otel.Meter("agent")
	checkSeconds = must(meter.Float64Histogram("doorward_agent_check_seconds", metric.WithUnit("s"),
		metric.WithDescription("time that the directory server took for password checks, by result")))
	syncsTotal = must(meter.Int64Counter("doorward_agent_syncs_total",
		metric.WithDescription("synchronizations, by result")))
)

func must[T any](instrument T, err error) T {
	if err != nil {
		otel.Handle(err)
	}
	return instrument
}

// record records the error of a part of the agent, nil where the part works.
func (s *health) record(part string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		delete(s.problems, part)
		return
	}
	if s.problems == nil {
		s.problems = map[string]Problem{}
	}
	p := s.problems[part]
	if p.Since.IsZero() {
		p.Since = time.Now()
	}
	p.Message = err.Error()
	s.problems[part] = p
}

// firstProblem is the problem that is reported to Doorward; nil for none.
func (s *health) firstProblem() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, part := range []string{"configuration", "synchronization"} {
		if p, ok := s.problems[part]; ok {
			return errors.New(part + ": " + p.Message)
		}
	}
	return nil
}

// recordSync records the result of a sync.
func (s *health) recordSync(m *syncState, err error) {
	s.record("synchronization", cmp.Or(err, m.held))
	result := "ok"
	switch {
	case err != nil:
		result = "error"
	case m.held != nil:
		result = "held"
	}
	syncsTotal.Add(context.Background(), 1, metric.WithAttributes(attribute.String("result", result)))
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.status.Accounts, s.status.Groups, s.status.Sent, s.status.Searches = len(m.accounts), len(m.groups), m.sent,
		m.searches
	if err == nil {
		s.status.SyncedAt = &now
	}
	if full := m.fullSyncAt; !full.IsZero() {
		s.status.FullAt = &full
	}
}

// recordCheck records the result of a password check and the time it took.
func (s *health) recordCheck(ctx context.Context, r CheckResult, took time.Duration) {
	result := r.Result
	switch {
	case r.Code != 0:
		result = fmt.Sprint(r.Code)
	case r.Reason != "":
		result = r.Reason
	}
	checkSeconds.Record(ctx, took.Seconds(), metric.WithAttributes(attribute.String("result", result)))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status.Checks == nil {
		s.status.Checks = map[string]int{}
	}
	s.status.Checks[result]++
}

// Status returns the status of the agent.
func (a *Agent) Status() Status {
	a.health.mu.Lock()
	defer a.health.mu.Unlock()
	s := a.health.status
	s.Problems, s.Checks = map[string]Problem{}, map[string]int{}
	maps.Copy(s.Problems, a.health.problems)
	maps.Copy(s.Checks, a.health.status.Checks)
	if s.SyncedAt != nil {
		s.LagSeconds = time.Since(*s.SyncedAt).Seconds()
	}
	return s
}

// Healthy returns the problem of a part of the agent (readiness), nil where all parts work.
func (a *Agent) Healthy(context.Context) error {
	for part, p := range a.Status().Problems {
		return fmt.Errorf("%s: %s", part, p.Message)
	}
	return nil
}

var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Directory agent</title>
<h1>Directory agent</h1>
{{if .Problems}}<h2>Problems</h2><ul>{{range $part, $p := .Problems}}<li>{{$part}},
	since {{$p.Since.Format "2006-01-02 15:04:05 MST"}}: {{$p.Message}}</li>{{end}}</ul>
{{else}}<p>All is well.</p>{{end}}
<dl>
<dt>Last look for changes</dt><dd>{{if .SyncedAt}}{{.SyncedAt.Format "2006-01-02 15:04:05 MST"}},
	{{printf "%.0f" .LagSeconds}} s ago{{else}}none yet{{end}}</dd>
<dt>Last full comparison</dt><dd>{{if .FullAt}}{{.FullAt.Format "2006-01-02 15:04:05 MST"}}{{else}}none yet{{end}}</dd>
<dt>Accounts</dt><dd>{{.Accounts}}</dd><dt>Groups</dt><dd>{{.Groups}}</dd>
<dt>Entries sent since the start</dt><dd>{{.Sent}}</dd>
<dt>Password checks since the start</dt><dd>{{range $result, $n := .Checks}}{{$result}}: {{$n}} {{else}}none{{end}}</dd>
</dl></html>
`))

// Handler serves the status page, and the status as JSON at /status.json.
func (a *Agent) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'none'")
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = page.Execute(w, a.Status())
	})
	mux.HandleFunc("GET /status.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(a.Status())
	})
	return mux
}

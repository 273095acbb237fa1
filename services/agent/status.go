package agent

import (
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

// state is the health of the agent.
type state struct {
	mu       sync.Mutex
	problems map[string]Problem
	status   Status
}

// Problem is what went wrong last in a part of the agent, and goes on.
type Problem struct {
	Since   time.Time `json:"since"`
	Message string    `json:"message"`
}

// Status is what the page of the agent shows.
type Status struct {
	Problems map[string]Problem `json:"problems"` // by part of the agent
	SyncedAt *time.Time         `json:"syncedAt"` // when the agent last found that nothing is missing
	FullAt   *time.Time         `json:"fullAt"`   // when the last full comparison ended
	LagS     float64            `json:"lagSeconds"`
	Accounts int                `json:"accounts"`
	Groups   int                `json:"groups"`
	Sent     int                `json:"sent"`
	Searches int                `json:"searches"`
	Checks   map[string]int     `json:"checks"` // by result
}

var (
	meter        = otel.Meter("agent")
	checkSeconds = must(meter.Float64Histogram("doorward_agent_check_seconds", metric.WithUnit("s"),
		metric.WithDescription("time that the directory server took for password checks, by result")))
	syncsTotal = must(meter.Int64Counter("doorward_agent_syncs_total", metric.WithDescription("synchronizations, by result")))
)

func must[T any](instrument T, err error) T {
	if err != nil {
		otel.Handle(err)
	}
	return instrument
}

// note records whether a part of the agent works.
func (s *state) note(part string, err error) {
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

// problem is what Doorward is to know of; nil for nothing.
func (s *state) problem() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, part := range []string{"configuration", "synchronization"} {
		if p, ok := s.problems[part]; ok {
			return errors.New(part + ": " + p.Message)
		}
	}
	return nil
}

func (s *state) synchronized(m *mirror, err error) {
	s.note("synchronization", err)
	result := "ok"
	if err != nil {
		result = "error"
	}
	syncsTotal.Add(context.Background(), 1, metric.WithAttributes(attribute.String("result", result)))
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.status.Accounts, s.status.Groups, s.status.Sent, s.status.Searches = len(m.accounts), len(m.groups), m.sent, m.searches
	if err == nil {
		s.status.SyncedAt = &now
	}
	if full := m.fullAt; !full.IsZero() {
		s.status.FullAt = &full
	}
}

func (s *state) checked(ctx context.Context, r CheckResult, took time.Duration) {
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

// Status is the state of the agent.
func (a *Agent) Status() Status {
	a.state.mu.Lock()
	defer a.state.mu.Unlock()
	s := a.state.status
	s.Problems, s.Checks = map[string]Problem{}, map[string]int{}
	maps.Copy(s.Problems, a.state.problems)
	maps.Copy(s.Checks, a.state.status.Checks)
	if s.SyncedAt != nil {
		s.LagS = time.Since(*s.SyncedAt).Seconds()
	}
	return s
}

// Healthy is an error while something is wrong.
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
	{{printf "%.0f" .LagS}} s ago{{else}}none yet{{end}}</dd>
<dt>Last full comparison</dt><dd>{{if .FullAt}}{{.FullAt.Format "2006-01-02 15:04:05 MST"}}{{else}}none yet{{end}}</dd>
<dt>Accounts</dt><dd>{{.Accounts}}</dd><dt>Groups</dt><dd>{{.Groups}}</dd>
<dt>Entries sent since the start</dt><dd>{{.Sent}}</dd>
<dt>Password checks since the start</dt><dd>{{range $result, $n := .Checks}}{{$result}}: {{$n}} {{else}}none{{end}}</dd>
</dl></html>
`))

// Handler serves the page of the agent, and the same as JSON at /status.json.
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

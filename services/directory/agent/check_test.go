package agent_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/worktest"
	"github.com/doorward/doorward/services/directory/agent"
)

func page(from, size int) agent.Sync {
	accounts := make([]agent.SyncAccount, size)
	for i := range accounts {
		name := fmt.Sprintf("user%07d", from+i)
		accounts[i] = agent.SyncAccount{ExternalID: field.Some(name), Username: field.Some(name),
			Email:     field.Some(name + "@example.test"),
			GivenName: field.Some("Jo"), Surname: field.Some("Doe " + name)}
	}
	return agent.Sync{SyncID: field.Some("s"), Accounts: field.Some(accounts)}
}

// TestManyDelegatedLogins lets one agent answer many concurrent logins: none is lost, none is
// answered twice, and the rate is logged.
func TestManyDelegatedLogins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	worktest.Start(t, w.db.Listen)
	at := w.agent(t)
	if err := w.Sync(t.Context(), at, page(0, 100)); err != nil {
		t.Fatal(err)
	}
	a, err := w.Agent(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var agents, logins sync.WaitGroup
	var mu sync.Mutex
	handed := map[id.ID]int{}
	for range 2 { // two agents, or one that polls twice
		agents.Go(func() {
			for ctx.Err() == nil {
				found, err := w.AgentChecks(ctx, at, time.Second)
				if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
				for _, check := range found {
					agents.Go(func() {
						mu.Lock()
						handed[check.ID]++
						mu.Unlock()
						if err := w.AnswerCheck(context.WithoutCancel(ctx), at, check.ID,
							agent.CheckAnswer{Result: field.Some("SUCCESS")}); err != nil {
							t.Error(err)
						}
					})
				}
			}
		})
	}
	const workers, each = 20, 50 // no more than may wait for one agent
	began := time.Now()
	var slowest time.Duration
	for i := range workers {
		logins.Go(func() {
			for range each {
				start := time.Now()
				_, err := w.Authenticate(t.Context(),
					directoryapi.Authenticate{Tenant: w.tenant, Login: fmt.Sprintf("user%07d", i), Password: "x",
						Stores: []directoryapi.Store{{Kind: directoryapi.Directories, ID: a.DirectoryID}}})
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				slowest = max(slowest, time.Since(start))
				mu.Unlock()
			}
		})
	}
	logins.Wait()
	took := time.Since(began)
	stop()
	agents.Wait()
	if len(handed) != workers*each {
		t.Errorf("%d checks for %d logins", len(handed), workers*each)
	}
	for check, times := range handed {
		if times != 1 {
			t.Errorf("the check %s was handed out %d times", check, times)
		}
	}
	t.Logf("%.0f logins a second, the slowest %s", workers*each/took.Seconds(), slowest)
}

// The agent continues the trace of the login: the check has the id of the span that waits for the
// result.
func TestTheTraceOfALoginGoesToTheAgent(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(trace.NewTracerProvider(trace.WithSyncer(spans)))
	otel.SetTextMapPropagator(propagation.TraceContext{})
	t.Cleanup(func() { otel.SetTracerProvider(before) })

	w := newWorld(t)
	worktest.Start(t, w.db.Listen)
	at := w.agent(t)
	if err := w.Sync(t.Context(), at, page(0, 1)); err != nil {
		t.Fatal(err)
	}
	a, err := w.Agent(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	var answering sync.WaitGroup
	var carried map[string]string
	answering.Go(func() {
		for len(carried) == 0 && t.Context().Err() == nil {
			found, err := w.AgentChecks(t.Context(), at, time.Second)
			if err != nil {
				t.Error(err)
				return
			}
			for _, check := range found {
				carried = check.Trace
				if err := w.AnswerCheck(t.Context(), at, check.ID, agent.CheckAnswer{Result: field.Some("SUCCESS")}); err != nil {
					t.Error(err)
				}
			}
		}
	})
	ctx, login := otel.Tracer("test").Start(t.Context(), "login")
	_, err = w.Authenticate(ctx, directoryapi.Authenticate{Tenant: w.tenant, Login: "user0000000", Password: "x",
		Stores: []directoryapi.Store{{Kind: directoryapi.Directories, ID: a.DirectoryID}}})
	if err != nil {
		t.Error(err)
	}
	login.End()
	answering.Wait()
	for _, span := range spans.GetSpans() {
		if span.Name != "directory.AgentCheck" {
			continue
		}
		want := "00-" + login.SpanContext().TraceID().String() + "-" + span.SpanContext.SpanID().String() + "-01"
		if carried["traceparent"] != want || span.SpanContext.TraceID() != login.SpanContext().TraceID() {
			t.Errorf("the agent continues %q, want %q", carried["traceparent"], want)
		}
		return
	}
	t.Error("the wait for the agent has no span")
}

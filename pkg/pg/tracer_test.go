package pg_test

import (
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
)

// Not beside other tests, because the tracer provider is one for the test binary.
func TestAWaitForAConnectionIsASpan(t *testing.T) {
	spans, before := tracetest.NewInMemoryExporter(), otel.GetTracerProvider()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)))
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	cfg := config(pgtest.New(t, nil))
	cfg.MaxConns = 1
	db, err := pg.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	waits := func() bool {
		return slices.ContainsFunc(spans.GetSpans(), func(span tracetest.SpanStub) bool { return span.Name == "pool.acquire" })
	}
	held, err := db.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	spans.Reset()
	queried := make(chan error, 1)
	go func() { _, err := pg.Value[int](t.Context(), db, `SELECT 1`); queried <- err }()
	since := db.Stat().EmptyAcquireCount()
	for began := time.Now(); time.Since(began) < 20*time.Millisecond || db.Stat().EmptyAcquireCount() < since; {
	}
	held.Release()
	if err := <-queried; err != nil || !waits() {
		t.Errorf("a query that waited for the connection has no span, %v", err)
	}
	quick := false
	for range 100 { // of which one at least waits for nothing, on however busy a machine
		spans.Reset()
		if _, err := pg.Value[int](t.Context(), db, `SELECT 1`); err != nil {
			t.Fatal(err)
		}
		quick = quick || !waits()
	}
	if !quick {
		t.Error("every query without a wait has the span of one")
	}
}

package pg

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// Not beside other tests, because the tracer provider is one for the test binary.
func TestAWaitForAConnectionIsASpan(t *testing.T) {
	spans, before := tracetest.NewInMemoryExporter(), otel.GetTracerProvider()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)))
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	var _ pgxpool.AcquireTracer = tracer{}
	request, root := otel.Tracer("test").Start(t.Context(), "request")
	defer root.End()
	acquire := func(started time.Time) int {
		spans.Reset()
		ctx := context.WithValue(request, acquireStart{}, started)
		tracer{}.TraceAcquireEnd(ctx, nil, pgxpool.TraceAcquireEndData{})
		return len(spans.GetSpans())
	}
	if n := acquire(time.Now().Add(-time.Second)); n != 1 || spans.GetSpans()[0].Name != "pool.acquire" {
		t.Errorf("a query that has waited has %d spans", n)
	}
	if n := acquire(time.Now().Add(time.Minute)); n != 0 {
		t.Errorf("a query that has not waited has %d spans", n)
	}
	request = t.Context()
	if n := acquire(time.Now().Add(-time.Second)); n != 0 {
		t.Errorf("a query of no trace has %d spans", n)
	}
	ctx := tracer{}.TraceAcquireStart(t.Context(), nil, pgxpool.TraceAcquireStartData{})
	if _, ok := ctx.Value(acquireStart{}).(time.Time); !ok {
		t.Error("the start of a query is not noted")
	}
}

package pg

import (
	"context"
	"time"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/trace"

	"github.com/doorward/doorward/pkg/telemetry"
)

// tracer traces queries as spans. It has a span pool.acquire only where a query has waited for a connection.
type tracer struct{ *otelpgx.Tracer }

// acquireWait is the time from which on a query counts as waiting for a connection.
const acquireWait = time.Millisecond

type acquireStart struct{}

// TraceAcquireStart notes when a query asks the pool for a connection.
func (tracer) TraceAcquireStart(ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireStartData) context.Context {
	return context.WithValue(ctx, acquireStart{}, time.Now())
}

// TraceAcquireEnd writes the span of a query that has waited.
func (tracer) TraceAcquireEnd(ctx context.Context, _ *pgxpool.Pool, data pgxpool.TraceAcquireEndData) {
	started, ok := ctx.Value(acquireStart{}).(time.Time)
	if !ok || time.Since(started) < acquireWait {
		return
	}
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return // of a worker: the wait would be a trace of its own
	}
	_, span := telemetry.Span(ctx, "pool.acquire", trace.WithTimestamp(started))
	if data.Err != nil {
		span.RecordError(data.Err)
	}
	span.End()
}

package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/telemetry"
)

func TestLogLinesAndExemplarsLeadToATrace(t *testing.T) {
	var log bytes.Buffer
	started, err := telemetry.Start(t.Context(), "test", telemetry.Config{LogLevel: "info"}, &log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = started.Close(context.WithoutCancel(t.Context())) }()
	started.SetTracerProvider(sdktrace.NewTracerProvider())
	tenant := id.New(time.Now())
	ctx, span := telemetry.Span(caller.Into(t.Context(), caller.Caller{Tenant: tenant, RequestID: "r1"}), "work")
	trace := span.SpanContext().TraceID().String()
	slog.InfoContext(ctx, "hello")
	var line struct{ Msg, Process, Request, Tenant, Trace string }
	if err := json.Unmarshal(log.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	if line.Process != "test" || line.Request != "r1" || line.Tenant != tenant.String() || line.Trace != trace {
		t.Errorf("the log line is %s", log.String())
	}
	log.Reset()
	slog.InfoContext(telemetry.Untraced(ctx), "hello")
	if strings.Contains(log.String(), `"trace"`) {
		t.Errorf("a line of what is not traced names a trace: %s", log.String())
	}
	duration, err := otel.Meter("test").Float64Histogram("test_duration_seconds")
	if err != nil {
		t.Fatal(err)
	}
	duration.Record(ctx, 0.2)
	span.End()
	request := httptest.NewRequest("GET", "/metrics", nil)
	request.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	answer := httptest.NewRecorder()
	started.Metrics.ServeHTTP(answer, request)
	if !strings.Contains(answer.Body.String(), trace) {
		t.Errorf("no exemplar names the trace:\n%s", answer.Body.String())
	}
	if want := `doorward_build_info{goversion="` + runtime.Version() + `",version="` + telemetry.Version() + `"} 1`; !strings.Contains(answer.Body.String(), want) {
		t.Errorf("the metrics do not have %s", want)
	}
}

func TestQueriesThatHangLeaveTheScrapeItsOtherMetrics(t *testing.T) {
	former := slog.Default()
	t.Cleanup(func() { slog.SetDefault(former) })
	started, err := telemetry.Start(t.Context(), "test", telemetry.Config{LogLevel: "info"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = started.Close(context.WithoutCancel(t.Context())) }()
	for n := range 20 {
		_, err := otel.Meter("test").Int64ObservableGauge(fmt.Sprintf("test_%d", n),
			metric.WithInt64Callback(func(ctx context.Context, o metric.Int64Observer) error {
				ctx, cancel := telemetry.QueryContext(ctx)
				defer cancel()
				if n != 1 {
					<-ctx.Done()
				}
				o.Observe(1)
				return ctx.Err()
			}))
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		answer, began := httptest.NewRecorder(), time.Now()
		started.Metrics.ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("the scrape took %s", took)
		}
		if !strings.Contains(answer.Body.String(), "\ntest_1 1") {
			t.Error("the metric behind one that hangs is missing")
		}
	}
}

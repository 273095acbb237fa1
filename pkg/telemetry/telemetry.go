// Package telemetry sets up what an operator sees: JSON logs that carry the
// request and trace ids, OpenTelemetry traces, and Prometheus metrics. The metrics of a
// service or package are registered by otel.Meter in its metrics.go.
package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	prometheusexporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/doorward/doorward/pkg/caller"
)

// Config is what every process reads.
type Config struct {
	LogLevel string `env:"DOORWARD_LOG_LEVEL" default:"info" help:"lowest level that is logged: debug, info, warn or error"`
	Endpoint string `env:"OTEL_EXPORTER_OTLP_ENDPOINT" help:"address of an OTLP/HTTP collector; traces are recorded when it is set"`
}

// Telemetry is the observation of one process.
type Telemetry struct {
	Metrics http.Handler // what /metrics serves
	close   []func(context.Context) error
}

// Start sets the log, the tracer and the meter of the process, which the other
// packages find through slog and otel.
func Start(ctx context.Context, process string, cfg Config, log io.Writer) (*Telemetry, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.LogLevel)); err != nil {
		return nil, fmt.Errorf("DOORWARD_LOG_LEVEL is %q: use debug, info, warn or error", cfg.LogLevel)
	}
	slog.SetDefault(slog.New(Handler(log, level)).With("process", process))
	otel.SetTextMapPropagator(propagation.TraceContext{})
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { slog.Warn("OpenTelemetry error", "error", err.Error()) }))

	t := &Telemetry{}
	about := resource.NewSchemaless(attribute.String("service.name", serviceName(process)), attribute.String("service.version", Version()))
	if cfg.Endpoint != "" {
		exporter, err := otlptracehttp.New(ctx)
		if err != nil {
			return nil, fmt.Errorf("connect to the collector at %s: %w", cfg.Endpoint, err)
		}
		t.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about)))
	}

	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "doorward_build_info", Help: "always 1; the labels say which version of the process runs",
			ConstLabels: prometheus.Labels{"version": Version(), "goversion": runtime.Version()},
		}, func() float64 { return 1 }))
	exporter, err := prometheusexporter.New(prometheusexporter.WithRegisterer(registry), prometheusexporter.WithoutScopeInfo(),
		prometheusexporter.WithoutTargetInfo())
	if err != nil {
		return nil, fmt.Errorf("make the metrics exporter: %w", err)
	}
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter), sdkmetric.WithResource(about))
	otel.SetMeterProvider(meters)
	t.close = append(t.close, meters.Shutdown)
	// Exemplars need OpenMetrics.
	t.Metrics = withScrapeTimeout(promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	return t, nil
}

// Trace makes provider the process's recorder of spans. Tests hand one in that
// keeps them in memory.
func (t *Telemetry) SetTracerProvider(provider *sdktrace.TracerProvider) {
	otel.SetTracerProvider(provider)
	t.close = append(t.close, provider.Shutdown)
}

// Close sends what is still held back.
func (t *Telemetry) Close(ctx context.Context) error {
	var first error
	for _, closer := range t.close {
		if err := closer(ctx); err != nil && first == nil {
			first = err
		}
	}
	return first
}

func serviceName(process string) string {
	if name := os.Getenv("OTEL_SERVICE_NAME"); name != "" {
		return name
	}
	return "doorward-" + strings.TrimPrefix(process, "doorward-")
}

// Recording reports whether spans are recorded at all, so that the hot path
// pays nothing for tracing that nobody reads.
func Recording() bool {
	_, ok := otel.GetTracerProvider().(*sdktrace.TracerProvider)
	return ok
}

// Quiet returns a context whose work is in no trace: a worker that polls would
// otherwise start a trace each time.
func Untraced(ctx context.Context) context.Context {
	return trace.ContextWithRemoteSpanContext(ctx,
		trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}}))
}

// Span begins a span of the product. While none is recorded, ctx stays as it is.
func Span(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	if !Recording() {
		return ctx, trace.SpanFromContext(ctx)
	}
	return otel.Tracer("github.com/doorward/doorward").Start(ctx, name, options...)
}

// Carry writes the trace of ctx into a carrier; Continue reads it.
func InjectTrace(ctx context.Context, carrier propagation.TextMapCarrier) {
	otel.GetTextMapPropagator().Inject(ctx, carrier)
}

// Continue adds to ctx the trace that a carrier holds.
func ExtractTrace(ctx context.Context, carrier propagation.TextMapCarrier) context.Context {
	return otel.GetTextMapPropagator().Extract(ctx, carrier)
}

// Audit writes a line of the audit log (docs/operations.md#audit-log): what kind of
// action it is, and on whose behalf it was done. No attribute may be a secret or have
// personal data; ids name what was acted on.
func Audit(ctx context.Context, kind string, attrs ...slog.Attr) {
	if !slog.Default().Enabled(ctx, slog.LevelInfo) {
		return
	}
	from := caller.From(ctx)
	attrs = append(attrs, slog.String("kind", kind))
	if from.Key != "" {
		attrs = append(attrs, slog.String("key", from.Key), slog.String("administrator", from.Account.String()))
	}
	if from.Address.IsValid() {
		attrs = append(attrs, slog.String("client", from.Address.String()))
	}
	slog.LogAttrs(ctx, slog.LevelInfo, "audit", attrs...)
}

// Handler writes records as JSON, a line each.
func Handler(log io.Writer, level slog.Leveler) slog.Handler {
	return handler{slog.NewJSONHandler(log, &slog.HandlerOptions{Level: level})}
}

// handler adds the tenant and the ids of request and trace of the context to each record.
type handler struct{ slog.Handler }

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	from := caller.From(ctx)
	if from.RequestID != "" {
		r.AddAttrs(slog.String("request", from.RequestID))
	}
	if !from.Tenant.IsZero() {
		r.AddAttrs(slog.String("tenant", from.Tenant.String()))
	}
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		r.AddAttrs(slog.String("trace", span.TraceID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs)}
}
func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }

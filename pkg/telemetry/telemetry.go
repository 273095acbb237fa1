// Package telemetry sets up what an operator sees: JSON logs with the ids of request and trace,
// OpenTelemetry traces, and Prometheus metrics. A package registers its own metrics by otel.Meter
// in its file metrics.go (the LDAP agent in services/agent/status.go).
package telemetry

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"

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
	LogLevel string `env:"DOORWARD_LOG_LEVEL" default:"info"`
	Endpoint string `env:"OTEL_EXPORTER_OTLP_ENDPOINT"`
}

// Help has the help texts that are longer than a line.
func (Config) Help() map[string]string {
	return map[string]string{
		"DOORWARD_LOG_LEVEL":          "lowest level that is logged: debug, info, warn or error",
		"OTEL_EXPORTER_OTLP_ENDPOINT": "address of an OTLP/HTTP collector; traces are recorded when it is set",
	}
}

// Telemetry has the metrics of one process, and ends its logs, traces and metrics.
type Telemetry struct {
	Metrics http.Handler // serves /metrics
	close   []func(context.Context) error
}

// Start sets the default logger, tracer provider and meter provider of the process, which the
// other packages use by slog and otel.
func Start(ctx context.Context, process string, cfg Config, log io.Writer) (*Telemetry, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.LogLevel)); err != nil {
		return nil, fmt.Errorf("DOORWARD_LOG_LEVEL is %q: use debug, info, warn or error", cfg.LogLevel)
	}
	slog.SetDefault(slog.New(Handler(log, level)).With("process", process))
	otel.SetTextMapPropagator(propagation.TraceContext{})
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		slog.Warn("OpenTelemetry error", "error", err.Error())
	}))

	t := &Telemetry{}
	about := resource.NewSchemaless(attribute.String("service.name", serviceName(process)),
		attribute.String("service.version", Version()), attribute.String("service.instance.id", InstanceID()))
	if cfg.Endpoint != "" {
		exporter, err := otlptracehttp.New(ctx)
		if err != nil {
			return nil, fmt.Errorf("connect to the collector at %s: %w", cfg.Endpoint, err)
		}
		t.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about)))
	}

	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "doorward_build_info", Help: "always 1; the labels say which version of the process runs",
			ConstLabels: prometheus.Labels{"version": Version(), "goversion": runtime.Version()},
		}, func() float64 { return 1 }))
	exporter, err := prometheusexporter.New(prometheusexporter.WithRegisterer(registry),
		prometheusexporter.WithoutScopeInfo(),
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

// SetTracerProvider sets the tracer provider of the process, which records its spans. Tests set a
// provider that keeps the spans in memory.
func (t *Telemetry) SetTracerProvider(provider *sdktrace.TracerProvider) {
	otel.SetTracerProvider(provider)
	t.close = append(t.close, provider.Shutdown)
}

// Close sends the spans that are still buffered, and ends the metrics.
func (t *Telemetry) Close(ctx context.Context) error {
	var first error
	for _, closer := range t.close {
		if err := closer(ctx); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// InstanceID returns the id of this process, which is new at each start: a UUID of version 4.
var InstanceID = sync.OnceValue(func() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	random[6], random[8] = random[6]&0x0f|0x40, random[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", random[:4], random[4:6], random[6:8], random[8:10], random[10:])
})

func serviceName(process string) string {
	if name := os.Getenv("OTEL_SERVICE_NAME"); name != "" {
		return name
	}
	return "doorward-" + strings.TrimPrefix(process, "doorward-")
}

// Recording reports whether spans are recorded at all, so that code can skip the work for
// tracing where it is off.
func Recording() bool {
	_, ok := otel.GetTracerProvider().(*sdktrace.TracerProvider)
	return ok
}

// untraced is the trace of what is not recorded. No log line names it: it leads nowhere.
var untraced = trace.TraceID{1}

// Untraced returns a context whose spans are not recorded: a worker that polls would otherwise
// start a trace each time.
func Untraced(ctx context.Context) context.Context {
	return trace.ContextWithRemoteSpanContext(ctx,
		trace.NewSpanContext(trace.SpanContextConfig{TraceID: untraced, SpanID: trace.SpanID{1}}))
}

// Span begins a span. While no spans are recorded, it returns ctx itself.
func Span(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	if !Recording() {
		return ctx, trace.SpanFromContext(ctx)
	}
	return otel.Tracer("github.com/doorward/doorward").Start(ctx, name, options...)
}

// InjectTrace writes the trace context of ctx (traceparent) into a carrier, such as the headers of a
// request; ExtractTrace reads it.
func InjectTrace(ctx context.Context, carrier propagation.TextMapCarrier) {
	otel.GetTextMapPropagator().Inject(ctx, carrier)
}

// ExtractTrace returns ctx with the trace context (traceparent) of a carrier, so that spans continue
// that trace.
func ExtractTrace(ctx context.Context, carrier propagation.TextMapCarrier) context.Context {
	return otel.GetTextMapPropagator().Extract(ctx, carrier)
}

// Audit writes a line of the audit log (docs/operations.md#audit-log): the kind of the
// action, its attributes, and the caller on whose behalf it was done. No attribute may be a secret
// or personal data; resources are named by their ids.
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

// Handler returns the log handler of the product: it writes each record as a line of JSON.
func Handler(log io.Writer, level slog.Leveler) slog.Handler {
	return handler{slog.NewJSONHandler(log, &slog.HandlerOptions{Level: level})}
}

// handler adds the tenant, the request id and the trace id of the context to each record.
type handler struct{ slog.Handler }

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	from := caller.From(ctx)
	if from.RequestID != "" {
		r.AddAttrs(slog.String("request", from.RequestID))
	}
	if !from.Tenant.IsZero() {
		r.AddAttrs(slog.String("tenant", from.Tenant.String()))
	}
	if span := trace.SpanContextFromContext(ctx); span.IsValid() && span.TraceID() != untraced {
		r.AddAttrs(slog.String("trace", span.TraceID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs)}
}
func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }

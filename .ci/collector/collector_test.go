// Package collector runs the parts of the OpenTelemetry collector that
// deploy/otel/collector.yaml names with that file. It is a module of its own
// outside the workspace, so that nothing else compiles the collector.
package collector

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/tailsamplingprocessor"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/otlpexporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/batchprocessor"
	"go.opentelemetry.io/collector/processor/memorylimiterprocessor"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
)

const file = "../../deploy/otel/collector.yaml"

// waitLimit bounds the wait for the collector, which decides ten seconds after a
// trace has begun.
const waitLimit = 2 * time.Minute

func newCollector(t *testing.T, exports exporter.Factory, more ...string) *otelcol.Collector {
	t.Helper()
	collector, err := otelcol.NewCollector(otelcol.CollectorSettings{
		Factories: func() (f otelcol.Factories, err error) {
			if f.Receivers, err = otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory()); err != nil {
				return f, err
			}
			if f.Exporters, err = otelcol.MakeFactoryMap[exporter.Factory](exports); err != nil {
				return f, err
			}
			f.Processors, err = otelcol.MakeFactoryMap[processor.Factory](
				memorylimiterprocessor.NewFactory(), tailsamplingprocessor.NewFactory(), batchprocessor.NewFactory())
			return f, err
		},
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			URIs:              append([]string{"file:" + file}, more...),
			ProviderFactories: []confmap.ProviderFactory{fileprovider.NewFactory(), yamlprovider.NewFactory()},
		}},
		DisableGracefulShutdown: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return collector
}

func TestTheCollectorAcceptsItsConfiguration(t *testing.T) {
	if err := newCollector(t, otlpexporter.NewFactory()).DryRun(t.Context()); err != nil {
		t.Error(err)
	}
}

// exported are the names of the spans that leave the collector.
type exported struct {
	mu    sync.Mutex
	names []string
}

func (e *exported) add(_ context.Context, traces ptrace.Traces) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, resource := range traces.ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				e.names = append(e.names, span.Name())
			}
		}
	}
	return nil
}

func (e *exported) count(name string) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.names) - len(slices.DeleteFunc(slices.Clone(e.names), func(other string) bool { return other == name }))
}

// factory is an exporter in the place of that of the file.
func (e *exported) factory() exporter.Factory {
	type config struct {
		Endpoint string         `mapstructure:"endpoint"`
		TLS      map[string]any `mapstructure:"tls"`
	}
	create := func(context.Context, exporter.Settings, component.Config) (exporter.Traces, error) {
		traces, err := consumer.NewTraces(e.add)
		return struct {
			component.StartFunc
			component.ShutdownFunc
			consumer.Traces
		}{Traces: traces}, err
	}
	return exporter.NewFactory(component.MustNewType("otlp"), func() component.Config { return new(config) },
		exporter.WithTraces(create, component.StabilityLevelDevelopment))
}

func TestErrorsAndSlowRequestsAreKeptAlways(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	kept := &exported{}
	collector := newCollector(t, kept.factory(), "yaml:receivers::otlp::protocols::http::endpoint: "+address,
		"yaml:service::telemetry::metrics::level: none")
	ended := make(chan error, 1)
	go func() { ended <- collector.Run(context.WithoutCancel(t.Context())) }()
	defer func() {
		collector.Shutdown()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	deadline := time.Now().Add(waitLimit)
	const each = 100
	send := func(id int, name string, took time.Duration, status int) {
		t.Helper()
		end := time.Now()
		body := fmt.Sprintf(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"%032x","spanId":"%016x","name":%q,"kind":2,
			"startTimeUnixNano":"%d","endTimeUnixNano":"%d","status":{"code":%d}}]}]}]}`,
			id*7919, id, name, end.Add(-took).UnixNano(), end.UnixNano(), status)
		for {
			answer, err := http.Post("http://"+address+"/v1/traces", "application/json", bytes.NewReader([]byte(body)))
			if err == nil {
				_ = answer.Body.Close()
				if answer.StatusCode == http.StatusOK {
					return
				}
			}
			if time.Now().After(deadline) {
				t.Fatalf("the collector does not accept a trace: %v", err)
			}
		}
	}
	for n := 1; n <= each; n++ {
		send(n, "failed", time.Millisecond, 2)
		send(1000+n, "slow", time.Second, 0)
		send(2000+n, "ordinary", time.Millisecond, 0)
	}
	for kept.count("failed") < each || kept.count("slow") < each {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d failed and %d slow requests were kept", kept.count("failed"), each, kept.count("slow"))
		}
		time.Sleep(100 * time.Millisecond)
	}
	if n := kept.count("ordinary"); n > each/2 {
		t.Errorf("%d of %d ordinary requests were kept", n, each)
	}
}

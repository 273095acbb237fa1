package notification

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/doorward/doorward/pkg/telemetry"
)

// maxWaiting bounds the count of waiting deliveries that a scrape of the metrics
// costs.
const maxWaiting = 100_000

// instruments are the service's metrics that it counts itself.
type instruments struct {
	mails, texts   metric.Int64Counter
	circuitsOpened metric.Int64Counter
}

func newInstruments() instruments {
	return instruments{
		mails: counter("doorward_notification_mails_total",
			"attempts to send a mail, by workflow and result: sent, unwanted, postponed or failed"),
		texts: counter("doorward_notification_texts_total",
			"attempts to send a text message, by result: sent, lost, unwanted, postponed, failed or broken"),
		circuitsOpened: counter("doorward_notification_smtp_circuits_opened_total", "mail servers of tenants whose circuit breaker opened"),
	}
}

// observe reports how many deliveries wait and how many circuit breakers are
// open: of all replicas together, since they share the tables.
func (s *Service) observe() {
	gauge("doorward_notification_deliveries_waiting", "deliveries that are not done",
		func(ctx context.Context) (int64, error) { return s.store.Waiting(ctx, maxWaiting) })
	gauge("doorward_notification_smtp_circuit_open",
		"mail servers of tenants whose circuit breaker is open: their mails go through the deployment's", s.store.OpenCircuits)
}

func counter(name, description string) metric.Int64Counter {
	c, err := otel.Meter("notification").Int64Counter(name, metric.WithDescription(description))
	if err != nil {
		otel.Handle(err)
	}
	return c
}

func gauge(name, description string, count func(context.Context) (int64, error)) {
	if _, err := otel.Meter("notification").Int64ObservableGauge(name, metric.WithDescription(description),
		metric.WithInt64Callback(func(ctx context.Context, o metric.Int64Observer) error {
			n, err := count(telemetry.Quiet(ctx))
			if err == nil {
				o.Observe(n)
			}
			return err
		})); err != nil {
		otel.Handle(err)
	}
}

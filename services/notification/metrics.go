package notification

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/doorward/doorward/pkg/telemetry"
	"github.com/doorward/doorward/services/notification/store"
)

// maxCountedDeliveries is how many waiting deliveries a scrape of the metrics counts at most in
// each database.
const maxCountedDeliveries = 100_000

// instruments are the counters of the service. Its gauges are in registerGauges.
type instruments struct {
	mail, sms, logouts metric.Int64Counter
	circuitsOpened     metric.Int64Counter
}

func newInstruments() instruments {
	return instruments{
		mail: counter("doorward_notification_mails_total",
			"attempts to send a mail, by workflow and result: sent, unwanted, postponed or failed"),
		sms: counter("doorward_notification_texts_total",
			"attempts to send a text message, by result: sent, lost, unwanted, postponed, failed or broken"),
		logouts: counter("doorward_notification_logouts_total",
			"attempts to tell a client of the end of a session, by result: sent, unwanted, postponed or failed"),
		circuitsOpened: counter("doorward_notification_smtp_circuits_opened_total",
			"mail servers of tenants whose circuit breaker opened"),
	}
}

// registerGauges registers the gauges of waiting deliveries, of the age of the oldest, and of
// open circuit breakers. Logouts have one of their own: a client that does not answer for a day is
// nothing that an operator is called for. Each replica reports the values of all replicas, because they share
// the tables.
func (s *Service) registerGauges() {
	meter := otel.Meter("notification")
	waiting, err := meter.Int64ObservableGauge("doorward_notification_deliveries_waiting",
		metric.WithDescription("mails and text messages that are not done"))
	age, err2 := meter.Float64ObservableGauge("doorward_notification_oldest_delivery_seconds", metric.WithUnit("s"),
		metric.WithDescription("age of the oldest of these that waits for its first attempt or a retry, 0 for none"))
	circuits, err3 := meter.Int64ObservableGauge("doorward_notification_smtp_circuit_open",
		metric.WithDescription("mail servers of tenants whose circuit breaker is open: their mails go through the "+
			"deployment's"))
	logouts, err4 := meter.Int64ObservableGauge("doorward_notification_logouts_waiting",
		metric.WithDescription("back-channel logouts that are not done, also those of clients that do not answer"))
	if err := errors.Join(err, err2, err3, err4); err != nil {
		otel.Handle(err)
		return
	}
	observe := func(fn func(context.Context, metric.Observer) error, instruments ...metric.Observable) {
		_, err := meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
			ctx, cancel := telemetry.QueryContext(ctx)
			defer cancel()
			return fn(ctx, o)
		}, instruments...)
		if err != nil {
			otel.Handle(err)
		}
	}
	observe(func(ctx context.Context, o metric.Observer) error {
		n, oldest, err := s.store.Waiting(ctx, maxCountedDeliveries, store.Mail, store.SMS)
		if err != nil {
			return err
		}
		o.ObserveInt64(waiting, n)
		seconds := 0.0
		if oldest != nil {
			seconds = max(0, s.now().Sub(*oldest).Seconds())
		}
		o.ObserveFloat64(age, seconds)
		return nil
	}, waiting, age)
	observe(func(ctx context.Context, o metric.Observer) error {
		n, _, err := s.store.Waiting(ctx, maxCountedDeliveries, store.Logout)
		if err != nil {
			return err
		}
		o.ObserveInt64(logouts, n)
		return nil
	}, logouts)
	observe(func(ctx context.Context, o metric.Observer) error {
		n, err := s.store.OpenCircuits(ctx)
		if err != nil {
			return err
		}
		o.ObserveInt64(circuits, n)
		return nil
	}, circuits)
}

func counter(name, description string) metric.Int64Counter {
	c, err := otel.Meter("notification").Int64Counter(name, metric.WithDescription(description))
	if err != nil {
		otel.Handle(err)
	}
	return c
}

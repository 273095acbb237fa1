// Package notification sends the mails and text messages that the other
// services' events ask for. An event becomes deliveries (consume.go), one row
// for each; senders hand them over, again until somebody takes them (sender.go).
// What is particular to mails stands in mailchannel.go: a delivery becomes a
// mail in mail.go, by the macros of pkg/macro, and leaves through the courier
// (courier.go). What is particular to texts stands in textchannel.go: they leave
// through a provider (provider.go), whose receipts (receipt.go) tell what became
// of them. The SQL is under store, the wiring under app.
package notification

import (
	"context"
	"net/mail"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/outbound"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/telemetry"
	"github.com/doorward/doorward/services/notification/store"
)

// Peers are the services that this one asks.
type Peers struct {
	Directory   directoryapi.API
	Application applicationapi.API
}

// Config says how mails and texts leave.
type Config struct {
	Server  Server         // takes all mail but that of tenants with a server of their own
	Reach   outbound.Guard // addresses that the servers of tenants may have
	From    mail.Address   // who writes, unless a template says otherwise, and who gets what bounces
	Senders int            // mails handed over at once
	Timeout time.Duration  // bounds the work on one mail

	Provider    Provider // takes all texts
	TextSenders int      // texts handed over at once
}

// Service is the notification service.
type Service struct {
	store *store.Store
	peers Peers
	ring  *secure.Keyring
	base  href.Base
	now   func() time.Time
	cfg   Config
	mails *channel
	texts *channel

	visits    *visits // to the servers of tenants
	fallbacks metric.Int64Counter
}

// New makes the service. Send and Sweep are its workers.
func New(s *store.Store, peers Peers, ring *secure.Keyring, base href.Base, now func() time.Time, cfg Config) *Service {
	svc := &Service{store: s, peers: peers, ring: ring, base: base, now: now, cfg: cfg,
		visits:    &visits{most: max(cfg.Senders-1, 1), at: map[id.ID]bool{}},
		fallbacks: counter("doorward_notification_smtp_fallbacks_total", "mail servers of tenants that were left after repeated failures"),
	}
	svc.mails, svc.texts = svc.mailChannel(), svc.textChannel()
	svc.observe()
	return svc
}

// countMost bounds the count of waiting deliveries that a scrape of the metrics
// costs.
const countMost = 100_000

// counter makes a counter of the service's metrics.
func counter(name, description string) metric.Int64Counter {
	c, err := otel.Meter("notification").Int64Counter(name, metric.WithDescription(description))
	if err != nil {
		otel.Handle(err)
	}
	return c
}

// observe shows how many deliveries wait and how many servers of tenants are
// left: of all replicas together, since they share the tables.
func (s *Service) observe() {
	gauge("doorward_notification_deliveries_waiting", "deliveries that are not done",
		func(ctx context.Context) (int64, error) { return s.store.Waiting(ctx, countMost) })
	gauge("doorward_notification_smtp_servers_left", "mail servers of tenants whose mails go through the deployment's at present", s.store.LeftSMTPServers)
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

// Package notification sends the mails that the other services' events ask
// for. An event becomes deliveries (consume.go), one row per mail; senders hand
// them to the mail server, again until it takes them (sender.go). A delivery
// becomes a mail in mail.go, by the macros of pkg/macro, and leaves through the
// courier (courier.go). The SQL is under store, the wiring under app.
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

// Config says how mail leaves.
type Config struct {
	Server  Server         // takes all mail
	Reach   outbound.Guard // addresses that the servers of tenants may have
	From    mail.Address   // who writes, unless a template says otherwise, and who gets what bounces
	Senders int            // mails handed over at once
	Timeout time.Duration  // bounds the work on one mail
}

// Service is the notification service.
type Service struct {
	store *store.Store
	peers Peers
	ring  *secure.Keyring
	base  href.Base
	now   func() time.Time
	cfg   Config
	wake  chan struct{}
	mails metric.Int64Counter
}

// New makes the service. Send and Sweep are its workers.
func New(s *store.Store, peers Peers, ring *secure.Keyring, base href.Base, now func() time.Time, cfg Config) *Service {
	svc := &Service{store: s, peers: peers, ring: ring, base: base, now: now, cfg: cfg, wake: make(chan struct{}, 1)}
	svc.observe()
	return svc
}

// countMost bounds the count of waiting deliveries that a scrape of the metrics
// costs.
const countMost = 100_000

// observe counts mails, and shows how many deliveries wait: of all replicas
// together, since they share the table.
func (s *Service) observe() {
	meter := otel.Meter("notification")
	var err error
	if s.mails, err = meter.Int64Counter("doorward_notification_mails_total",
		metric.WithDescription("tries to send a mail, by workflow and result: sent, unwanted, postponed or failed")); err != nil {
		otel.Handle(err)
	}
	if _, err = meter.Int64ObservableGauge("doorward_notification_deliveries_waiting",
		metric.WithDescription("deliveries that are not done"),
		metric.WithInt64Callback(func(ctx context.Context, o metric.Int64Observer) error {
			n, err := s.store.Waiting(telemetry.Quiet(ctx), countMost)
			if err == nil {
				o.Observe(n)
			}
			return err
		})); err != nil {
		otel.Handle(err)
	}
}

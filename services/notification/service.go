// Package notification sends the mails and text messages that the events of
// other services ask for. An event becomes deliveries (handlers.go), one row for
// each; workers send them with retries (worker.go). What is particular to mails is
// in mailchannel.go: a delivery becomes a mail in mail.go, by the macros of
// pkg/macro, and leaves through the SMTP client (smtpclient.go), to the tenant's
// own server unless its circuit breaker is open (circuit.go). What is particular
// to texts is in textchannel.go: they leave through a provider (provider.go),
// whose receipts (receipt.go) report their state. The SQL is under store, the
// wiring under app.
package notification

import (
	"cmp"
	"net/mail"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/outbound"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/notification/store"
)

// Peers are the services that this one asks.
type Peers struct {
	Directory   directoryapi.API
	Application applicationapi.API
}

// Config says how mails and texts leave.
type Config struct {
	Server    Server         // for all mail but that of tenants with a server of their own
	Reach     outbound.Guard // addresses that the servers of tenants may have
	From      mail.Address   // author of mails unless a template names one; gets bounces
	FromNamed bool           // From.Name was configured; else mails name the application or the directory
	Senders   int            // mails sent at once
	Timeout   time.Duration  // bounds the work on one mail

	Provider    Provider // of text messages
	TextSenders int      // texts sent at once

	LeaseTime time.Duration // how long a delivery stays with a process that died; 0 means 10 s
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

	inFlight    *inFlight // mails at the servers of tenants
	instruments instruments
}

// New makes the service. Send and Sweep are its workers.
func New(s *store.Store, peers Peers, ring *secure.Keyring, base href.Base, now func() time.Time, cfg Config) *Service {
	cfg.LeaseTime = cmp.Or(cfg.LeaseTime, leaseTime)
	svc := &Service{store: s, peers: peers, ring: ring, base: base, now: now, cfg: cfg, instruments: newInstruments(),
		inFlight: &inFlight{limit: max(cfg.Senders-1, 1), tenants: map[id.ID]bool{}},
	}
	svc.mails, svc.texts = svc.mailChannel(), svc.textChannel()
	svc.observe()
	return svc
}

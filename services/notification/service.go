// Package notification sends the mails, text messages (SMS) and back-channel logouts that the events of
// other services ask for. An event becomes deliveries (handlers.go), one row for each; workers send
// them (worker.go) with retries (retry.go).
//
// Mails: mailcontent.go loads the email template and chooses its language, mail.go renders the mail with the
// macros of pkg/macro, mailchannel.go and smtpclient.go send it by SMTP, through the tenant's own server unless
// its circuit breaker is open (circuit.go).
//
// Text messages: smschannel.go sends each at most once, through the SMS provider
// (smsprovider.go), whose delivery receipts (smsreceipt.go) report the state.
//
// Logouts: logoutchannel.go tells an OpenID client that a session of an account has ended.
//
// The SQL is under store, the wiring under app.
package notification

import (
	"cmp"
	"net/mail"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/outbound"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/notification/store"
)

// Peers are the services that this one asks.
type Peers struct {
	Directory   directoryapi.API
	Application applicationapi.API
	OAuth       oauthapi.OpenID
}

// Config says through what mails and text messages are sent.
type Config struct {
	MailServer MailServer     // of the deployment: for all mails but those of tenants with a server of their own
	Outbound   outbound.Guard // the addresses that mail servers and clients of tenants may have
	From       mail.Address   // author of mails unless a template names one; gets bounces
	FromNamed  bool           // From.Name was configured; else mails name the application or the directory
	Senders    int            // mails sent at once
	Timeout    time.Duration  // of one attempt to send a mail
	HeloName   string         // host name for EHLO; empty: that of the base address

	SMSProvider SMSProvider // of the deployment
	SMSSenders  int         // text messages sent at once

	LeaseTime time.Duration // after which another worker takes over the delivery of a process that died; 0 means 10 s
}

// Service is the notification service.
type Service struct {
	store *store.Store
	peers Peers
	ring  *secure.Keyring
	base  href.Base
	now   func() time.Time
	cfg   Config

	mail, sms, logouts *channel

	// One worker for the mail server of each tenant, and of several workers one is left for that of the deployment.
	tenants           *directoryapi.TenantGate
	held              heldTenants
	tenantServerLimit *tenantLimit
	logoutLimit       *tenantLimit
	instruments       instruments
}

// New makes the service. Send and Purger are its workers.
func New(s *store.Store, peers Peers, ring *secure.Keyring, base href.Base, now func() time.Time, cfg Config) *Service {
	cfg.LeaseTime = cmp.Or(cfg.LeaseTime, leaseTime)
	svc := &Service{store: s, peers: peers, ring: ring, base: base, now: now, cfg: cfg, instruments: newInstruments(),
		tenants:           directoryapi.NewTenantGate("notification.tenants", peers.Directory, now),
		tenantServerLimit: newTenantLimit(1, max(cfg.Senders-1, 1)),
		logoutLimit:       newTenantLimit(logoutShare, 0),
	}
	svc.mail, svc.sms, svc.logouts = svc.mailChannel(), svc.smsChannel(), svc.logoutChannel()
	svc.registerGauges()
	return svc
}

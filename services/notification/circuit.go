package notification

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/notification/store"
)

const (
	// failureThreshold is how many failures in a row open the circuit breaker of a
	// tenant's server (docs/interface/mail.md#smtp-servers), and how many of one
	// mail send it through the deployment's.
	failureThreshold = 5
	// tenantServerTimeout bounds the work on one mail at a tenant's server.
	tenantServerTimeout = 30 * time.Second
)

// probeDelay returns the time until a mail probes a server whose circuit breaker
// is open: a minute, doubled up to an hour.
func probeDelay(probes int) time.Duration { return min(time.Minute<<min(probes, 10), time.Hour) }

// errServerSkipped says that the tenant's server does not know of the mail, which
// can go through the deployment's.
var errServerSkipped = errors.New("the tenant's server is skipped")

// route returns the tenant's server that a mail is to go through; nil stands for
// the deployment's. While a circuit breaker is open one mail now and then probes
// the server.
func (s *Service) route(ctx context.Context, d store.Delivery) (*store.SMTPServer, error) {
	if d.Failures >= failureThreshold || d.Workflow == circuitAlert {
		return nil, nil
	}
	v, err := s.store.EnabledSMTPServer(ctx, d.TenantID)
	if errors.Is(err, apierr.NotFound) {
		return nil, nil
	}
	if err != nil || v.OpenedAt == nil {
		return &v, err
	}
	now, claimed := s.now(), false
	if v.ProbeAt != nil && now.Before(*v.ProbeAt) {
		return nil, nil
	}
	err = s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		claimed, err = tx.ClaimProbe(ctx, v, now, now.Add(probeDelay(v.Probes+1)))
		return err
	})
	if err != nil || !claimed {
		return nil, err
	}
	return &v, nil
}

// sendThrough sends a mail through the tenant's server, and records how that
// works. It returns errServerSkipped for a probe that failed before the server
// knew of the mail.
func (c *mailSender) sendThrough(ctx context.Context, v store.SMTPServer, content mailContent) error {
	if !c.s.inFlight.begin(v.TenantID) {
		return errServerInUse
	}
	defer c.s.inFlight.end(v.TenantID)
	m, err := c.s.compose(content, c.s.customOrigin(content, v.Username), c.s.now())
	if err != nil {
		return permanentError{err}
	}
	if err := c.useServer(v); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, tenantServerTimeout)
	defer cancel()
	err = c.custom.Send(limited, m)
	unavailable := errors.Is(err, errUnavailable)
	if !unavailable && !errors.Is(err, errBroken) {
		c.s.recordSuccess(ctx, v)
		return err
	}
	if unavailable && v.OpenedAt != nil {
		return errServerSkipped
	}
	if ctx.Err() == nil {
		c.s.recordFailure(ctx, v, err)
	}
	// Not errUnavailable: the mails of others do not wait for this server.
	return errors.New("the tenant's mail server: " + err.Error())
}

// useServer makes the client of a tenant's server, unless it is there already.
func (c *mailSender) useServer(v store.SMTPServer) error {
	server, err := c.s.serverOf(v)
	if err != nil {
		return err
	}
	if c.custom != nil && c.custom.server == server {
		return nil
	}
	if c.custom != nil {
		c.custom.Close()
	}
	c.custom, err = newSMTPClient(server, c.s.cfg.Reach.Dialer(), c.s.cfg.Reach, tenantServerTimeout)
	return err
}

// recordSuccess closes the circuit breaker of a tenant's server that answered as
// one that works, and resets its failures.
func (s *Service) recordSuccess(ctx context.Context, v store.SMTPServer) {
	if v.Failures == 0 && v.OpenedAt == nil {
		return
	}
	if err := s.store.Tx(ctx, func(tx *store.Tx) error { return tx.CloseCircuit(ctx, v) }); err != nil {
		slog.WarnContext(ctx, "recording a success of a tenant's mail server failed", "smtpServer", v.ID.String(), "error", err.Error())
		return
	}
	if v.OpenedAt != nil {
		slog.InfoContext(ctx, "circuit breaker of a tenant's mail server closed", "tenant", v.TenantID.String(), "smtpServer", v.ID.String())
	}
}

// recordFailure counts a failure of a tenant's server. The one that reaches the
// threshold opens the circuit breaker and adds the mail to the tenant's owner.
func (s *Service) recordFailure(ctx context.Context, v store.SMTPServer, failure error) {
	now, opened := s.now(), false
	err := s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		if opened, err = tx.CountFailure(ctx, v, failureThreshold, now, now.Add(probeDelay(0))); err != nil || !opened {
			return err
		}
		alert := id.New(now)
		return tx.InsertDelivery(ctx, store.Delivery{
			TenantID: v.TenantID, ID: alert, EventID: alert, Kind: store.Mail, Workflow: circuitAlert, Trace: map[string]string{}, CreatedAt: now,
		})
	})
	if err != nil {
		slog.WarnContext(ctx, "recording a failure of a tenant's mail server failed", "smtpServer", v.ID.String(), "error", err.Error())
		return
	}
	if opened {
		s.instruments.circuitsOpened.Add(ctx, 1)
		slog.WarnContext(ctx, "circuit breaker of a tenant's mail server opened: its mails go through the deployment's",
			"tenant", v.TenantID.String(), "smtpServer", v.ID.String(), "error", failure.Error())
		s.mails.wakeWorker()
	}
}

// circuitAlert is the mail that warns the owner of a tenant that the circuit
// breaker of its server is open. No template of a directory has it, and it always
// goes through the deployment's server.
const circuitAlert directoryapi.Workflow = "smtpAlert"

const alertText = "Hello,\n\n" +
	"your mail server %s, port %d, failed %d times in a row. Until it works again your mails go through the server of this service. " +
	"It is tried again by itself, less often from time to time; a change of its settings makes it be tried at once.\n\n" +
	"Please look whether it is running, accepts its username and password, and allows the senders of your email templates.\n"

// alert gathers the content of that mail, unless the circuit breaker is closed by
// now or the server was deleted.
func (s *Service) alert(ctx context.Context, d store.Delivery) (mailContent, error) {
	l := mailContent{delivery: d}
	v, err := s.store.EnabledSMTPServer(ctx, d.TenantID)
	if errors.Is(err, apierr.NotFound) || (err == nil && v.OpenedAt == nil) {
		return l, errUnwanted
	}
	if err != nil {
		return l, err
	}
	l.Account, err = s.peers.Directory.Owner(ctx, directoryapi.Ref{Tenant: d.TenantID, ID: d.TenantID})
	if errors.Is(err, apierr.NotFound) {
		return l, errUnwanted
	}
	if err != nil {
		return l, fmt.Errorf("load the owner: %w", err)
	}
	l.Template = directoryapi.EmailTemplate{
		Workflow: circuitAlert, Subject: "Your mail server does not work", MimeType: "text/plain",
		TextBody: fmt.Sprintf(alertText, v.Host, v.Port, failureThreshold),
	}
	return l, nil
}

// errServerInUse postpones a mail whose server has as many workers as it may have.
var errServerInUse = errors.New("its server is in use by another worker")

// inFlight keeps the workers of this process from waiting for the servers of
// tenants: each has one worker at most, and one worker stays with the
// deployment's where there are several.
type inFlight struct {
	mu      sync.Mutex
	limit   int
	tenants map[id.ID]bool
}

// begin takes a tenant's server for a worker until end. It is false when the mail
// has to wait.
func (f *inFlight) begin(tenant id.ID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tenants[tenant] || len(f.tenants) >= f.limit {
		return false
	}
	f.tenants[tenant] = true
	return true
}

func (f *inFlight) end(tenant id.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.tenants, tenant)
}

// skip returns what other workers leave for later, so that few mails have to be
// given back.
func (f *inFlight) skip() store.Skip {
	f.mu.Lock()
	defer f.mu.Unlock()
	return store.Skip{Tenants: slices.AppendSeq([]id.ID{}, maps.Keys(f.tenants)), Custom: len(f.tenants) >= f.limit}
}

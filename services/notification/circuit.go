package notification

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/mailtext"
	"github.com/doorward/doorward/services/notification/store"
)

const (
	// failureThreshold is how many failures in a row open the circuit breaker of a
	// tenant's server (docs/interface/mail.md#smtp-servers), and after how many failures
	// of its own a mail goes through the deployment's server.
	failureThreshold = 5
	// tenantServerTimeout bounds the work on one mail at a tenant's server.
	tenantServerTimeout = 30 * time.Second
)

// probeDelay returns the time until the next mail probes a server whose circuit breaker is
// open (half-open): a minute, doubled up to an hour.
func probeDelay(probes int) time.Duration { return min(time.Minute<<min(probes, 10), time.Hour) }

// errServerSkipped means that the tenant's server did not get the mail, so that the mail can go
// through the deployment's server at once.
var errServerSkipped = errors.New("the tenant's server is skipped")

// tenantServerFor returns the mail server of the tenant through which a mail is sent, or nil
// for the deployment's server: the fallback while the circuit breaker is open, except for the
// mails that probe the server.
func (s *Service) tenantServerFor(ctx context.Context, d store.Delivery) (*store.SMTPServer, error) {
	if d.Failures >= failureThreshold || d.Workflow == circuitAlert || d.Workflow == adminKeyAlert {
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

// sendThroughTenantServer sends a mail through the tenant's server and records the success or
// failure for the circuit breaker. It returns errServerSkipped for a probe that failed before
// the server got the mail.
func (c *mailSender) sendThroughTenantServer(ctx context.Context, v store.SMTPServer, content mailContent) error {
	if !c.s.tenantServerLimit.acquire(v.TenantID) {
		return errServerInUse
	}
	defer c.s.tenantServerLimit.release(v.TenantID)
	m, err := c.s.compose(content, c.s.tenantFrom(content, v.Username), c.s.now())
	if err != nil {
		return permanentError{err}
	}
	if err := c.connectTenantServer(v); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, tenantServerTimeout)
	defer cancel()
	err = c.tenant.Send(limited, m)
	unavailable := errors.Is(err, errUnavailable)
	if !unavailable && !errors.Is(err, errConnectionBroken) {
		c.s.recordSuccess(ctx, v)
		return err
	}
	if unavailable && v.OpenedAt != nil {
		return errServerSkipped
	}
	if ctx.Err() == nil {
		c.s.recordFailure(ctx, v, err)
	}
	// The error is not errUnavailable, because other mails need not wait for this server.
	return errors.New("the tenant's mail server: " + err.Error())
}

// connectTenantServer makes the SMTP client of a tenant's server, unless this worker has the
// client already. The connection is made when a mail is sent.
func (c *mailSender) connectTenantServer(v store.SMTPServer) error {
	server, err := c.s.connectionOf(v)
	if err != nil {
		return err
	}
	if c.tenant != nil && c.tenant.server == server {
		return nil
	}
	if c.tenant != nil {
		c.tenant.Close()
	}
	c.tenant, err = newSMTPClient(server, c.s.cfg.Outbound.Dialer(), c.s.cfg.Outbound,
		tenantServerTimeout, c.s.heloName())
	return err
}

// recordSuccess resets the failures of a tenant's server and closes its circuit breaker, after
// the server has answered, even if it refused the recipient or the content of the mail.
func (s *Service) recordSuccess(ctx context.Context, v store.SMTPServer) {
	if v.Failures == 0 && v.OpenedAt == nil {
		return
	}
	if err := s.store.Tx(ctx, func(tx *store.Tx) error { return tx.CloseCircuit(ctx, v) }); err != nil {
		slog.WarnContext(ctx, "recording a success of a tenant's mail server failed", "smtpServer", v.ID.String(),
			"error",
			err.Error())
		return
	}
	if v.OpenedAt != nil {
		slog.InfoContext(ctx, "circuit breaker of a tenant's mail server closed", "tenant", v.TenantID.String(),
			"smtpServer",
			v.ID.String())
	}
}

// recordFailure counts a failure of a tenant's server. The failure that reaches the threshold
// opens the circuit breaker and adds the mail that tells the tenant's owner (circuitAlert).
func (s *Service) recordFailure(ctx context.Context, v store.SMTPServer, failure error) {
	now, opened := s.now(), false
	err := s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		if opened, err = tx.CountFailure(ctx, v, failureThreshold, now, now.Add(probeDelay(0))); err != nil || !opened {
			return err
		}
		alert := id.New(now)
		return tx.InsertDelivery(ctx, store.Delivery{
			TenantID: v.TenantID, ID: alert, EventID: alert, Kind: store.Mail, Workflow: circuitAlert,
			Trace: map[string]string{}, CreatedAt: now,
		})
	})
	if err != nil {
		slog.WarnContext(ctx, "recording a failure of a tenant's mail server failed", "smtpServer", v.ID.String(),
			"error",
			err.Error())
		return
	}
	if opened {
		s.instruments.circuitsOpened.Add(ctx, 1)
		slog.WarnContext(ctx, "circuit breaker of a tenant's mail server opened: its mails go through the deployment's",
			"tenant", v.TenantID.String(), "smtpServer", v.ID.String(), "error", failure.Error())
		s.mail.wakeWorker()
	}
}

// circuitAlert is the workflow of the mail that tells the owner of a tenant that the circuit
// breaker of its server is open. Directories have no email template for it, and the mail
// always goes through the deployment's server.
const circuitAlert directoryapi.Workflow = mailtext.SMTPAlert

// circuitAlertContent returns the content of that mail, or errObsolete if the circuit breaker
// was closed or the server was deleted meanwhile.
func (s *Service) circuitAlertContent(ctx context.Context, d store.Delivery) (mailContent, error) {
	content := mailContent{delivery: d}
	v, err := s.store.EnabledSMTPServer(ctx, d.TenantID)
	if errors.Is(err, apierr.NotFound) || (err == nil && v.OpenedAt == nil) {
		return content, errObsolete
	}
	if err != nil {
		return content, err
	}
	if err := s.addOwner(ctx, &content); err != nil {
		return content, err
	}
	content.Template = directoryapi.EmailTemplate{Workflow: circuitAlert, Unchanged: true}
	content.values = map[string]string{
		"smtpServer.host": v.Host, "smtpServer.port": strconv.Itoa(v.Port),
		"smtpServer.failures": strconv.Itoa(failureThreshold),
	}
	content.chooseTexts()
	return content, nil
}

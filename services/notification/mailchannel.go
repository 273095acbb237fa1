package notification

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/doorward/doorward/services/notification/store"
)

// requestTimeout bounds the requests to other services.
const requestTimeout = 15 * time.Second

// mailChannel is the channel of mails. Mails are sent at least once: if a process dies after the
// mail server has accepted a mail and before that is recorded, the mail is sent again with the
// same Message-ID.
func (s *Service) mailChannel() *channel {
	return &channel{
		kind: store.Mail, name: "mail", workers: s.cfg.Senders, timeout: s.cfg.Timeout, maxAge: maxDeliveryAge,
		wake: make(chan struct{}, 1), skipped: s.tenantServerLimit.skip,
		newSender: func() (sender, error) {
			own, err := newSMTPClient(s.cfg.MailServer, &net.Dialer{}, s.cfg.Outbound, s.cfg.Timeout, s.heloName())
			return &mailSender{s: s, deployment: own}, err
		},
		backoff:    mailBackoff,
		workflow:   func(d store.Delivery) string { return string(d.Workflow) },
		attempts:   s.instruments.mail,
		finalState: finalState,
	}
}

// mailSender composes mails and sends them through the mail server of the deployment or of the
// tenant.
type mailSender struct {
	s          *Service
	deployment *smtpClient // to the deployment's server
	tenant     *smtpClient // to the server of the tenant that was used last; nil: none yet
}

// send sends the mail of a delivery.
func (c *mailSender) send(ctx context.Context, d store.Delivery) error {
	content, err := c.s.loadMailContent(ctx, d)
	if err != nil {
		return err
	}
	server, err := c.s.tenantServerFor(ctx, d)
	if err != nil {
		return err
	}
	if server != nil {
		if err := c.sendThroughTenantServer(ctx, *server, content); !errors.Is(err, errServerSkipped) {
			return err
		}
	}
	m, err := c.s.compose(content, c.s.deploymentFrom(content), c.s.now())
	if err != nil {
		return permanentError{err}
	}
	return c.deployment.Send(ctx, m)
}

func (c *mailSender) close() {
	c.deployment.Close()
	if c.tenant != nil {
		c.tenant.Close()
	}
}

func (c *mailSender) abort() {
	c.deployment.abort()
	if c.tenant != nil {
		c.tenant.abort()
	}
}

package notification

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/macro"
	"github.com/doorward/doorward/services/notification/store"
)

// requestTimeout bounds the requests to other services.
const requestTimeout = 15 * time.Second

// mailChannel is the channel of mails. A process that dies between the mail server's answer
// and its record leaves one mail per worker to be sent again, under the same Message-ID.
func (s *Service) mailChannel() *channel {
	return &channel{
		kind: store.Mail, name: "mail", workers: s.cfg.Senders, timeout: s.cfg.Timeout, wake: make(chan struct{}, 1),
		skip: s.inFlight.skip,
		newSender: func() (sender, error) {
			own, err := newSMTPClient(s.cfg.Server, &net.Dialer{}, s.cfg.Reach, s.cfg.Timeout)
			return &mailSender{s: s, own: own}, err
		},
		backoff:  mailBackoff,
		label:    func(d store.Delivery) string { return string(d.Workflow) },
		attempts: s.instruments.mails,
		final: func(outcome error) (state, result string) {
			switch final := (permanentError{}); {
			case outcome == nil:
				return store.Sent, "sent"
			case errors.Is(outcome, errUnwanted):
				return store.Unwanted, "unwanted"
			case errors.As(outcome, &final):
				return store.Failed, "failed"
			}
			return "", ""
		},
	}
}

// mailSender writes mails and sends them through a mail server: the
// deployment's, or the tenant's.
type mailSender struct {
	s      *Service
	own    *smtpClient // the deployment's
	custom *smtpClient // of the tenant whose server was used last; nil: none yet
}

// send sends the mail of a delivery.
func (c *mailSender) send(ctx context.Context, d store.Delivery) error {
	content, err := c.s.content(ctx, d)
	if err != nil {
		return err
	}
	server, err := c.s.route(ctx, d)
	if err != nil {
		return err
	}
	if server != nil {
		if err := c.sendThrough(ctx, *server, content); !errors.Is(err, errServerSkipped) {
			return err
		}
	}
	m, err := c.s.compose(content, c.s.ownOrigin(content), c.s.now())
	if err != nil {
		return permanentError{err}
	}
	return c.own.Send(ctx, m)
}

func (c *mailSender) close() {
	c.own.Close()
	if c.custom != nil {
		c.custom.Close()
	}
}

func (c *mailSender) abort() {
	c.own.abort()
	if c.custom != nil {
		c.custom.abort()
	}
}

// content gathers what the mail is made of.
func (s *Service) content(ctx context.Context, d store.Delivery) (mailContent, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if d.Workflow == circuitAlert {
		return s.alert(ctx, d)
	}
	l := mailContent{delivery: d}
	var err error
	l.Mail, err = s.peers.Directory.Mail(ctx, directoryapi.MailOf{Tenant: d.TenantID, Account: d.AccountID, Workflow: d.Workflow})
	if errors.Is(err, apierr.NotFound) {
		return l, errUnwanted
	}
	if err != nil {
		return l, fmt.Errorf("ask for the template: %w", err)
	}
	if d.Workflow == directoryapi.Verification && l.Account.EmailVerificationStatus == directoryapi.Verified {
		return l, errUnwanted // verified meanwhile: the token is void
	}
	if d.TokenSealed != nil {
		if l.token, err = s.ring.Open(d.TokenSealed, events.MailTokenPurpose(d.AccountID)); err != nil {
			return l, fmt.Errorf("open the token: %w", err)
		}
	}
	if err := s.addApplication(ctx, &l); err != nil && !errors.Is(err, apierr.NotFound) {
		return l, fmt.Errorf("ask for the application: %w", err)
	}
	return l, nil
}

// addApplication adds what the mail names of the application through which the
// event was caused. Where only the sender's name needs it, the mail does not wait
// for the application service.
func (s *Service) addApplication(ctx context.Context, l *mailContent) error {
	at := directoryapi.Ref{Tenant: l.delivery.TenantID, ID: l.delivery.ApplicationID}
	if at.ID.IsZero() {
		return nil
	}
	bodies := l.Template.TextBody + l.Template.HTMLBody
	isNamed := strings.Contains(bodies, "{application.name}")
	if isNamed || strings.Contains(bodies, "{sender.name}") || l.Template.FromName == nil && !s.cfg.FromNamed {
		application, err := s.peers.Application.Application(ctx, at)
		if err != nil && isNamed {
			return err
		}
		if err == nil {
			l.application = &application.Name
			if application.Builtin {
				l.application = &s.cfg.From.Name
			}
		}
	}
	keys := macro.Keys(bodies, "application.customData.")
	if len(keys) == 0 {
		return nil
	}
	data, err := s.peers.Application.ApplicationData(ctx, applicationapi.DataOf{Ref: at, Keys: keys})
	l.applicationData = data.Values
	return err
}

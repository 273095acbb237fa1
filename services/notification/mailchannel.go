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

// ask bounds the questions to other services.
const ask = 15 * time.Second

// mailBackoff gives the wait after the n-th failure of a mail: 5 s, doubled up
// to an hour; some eighty tries until giveUp.
func mailBackoff(failures int) time.Duration {
	return min(5*time.Second<<min(failures-1, 20), time.Hour)
}

// mailChannel is the way of mails. A process that dies between the mail
// server's answer and the note of it leaves one mail per sender to be sent
// again, under the same Message-ID.
func (s *Service) mailChannel() *channel {
	return &channel{
		kind: store.Mail, name: "mail", senders: s.cfg.Senders, timeout: s.cfg.Timeout, wake: make(chan struct{}, 1),
		skip: s.visits.skip,
		carrier: func() (carrier, error) {
			own, err := newCourier(s.cfg.Server, &net.Dialer{}, s.cfg.Timeout)
			return &mailCarrier{s: s, own: own}, err
		},
		backoff: mailBackoff,
		label:   func(d store.Delivery) string { return string(d.Workflow) },
		tries:   counter("doorward_notification_mails_total", "tries to send a mail, by workflow and result: sent, unwanted, postponed or failed"),
		ending: func(outcome error) (state, result string) {
			switch final := (refusal{}); {
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

// mailCarrier writes mails and hands them to a mail server: the deployment's, or
// the tenant's.
type mailCarrier struct {
	s      *Service
	own    *courier // the deployment's
	custom *courier // of the tenant whose server was used last; nil: none yet
}

// carry sends the mail of a delivery.
func (c *mailCarrier) carry(ctx context.Context, d store.Delivery) error {
	l, err := c.s.letter(ctx, d)
	if err != nil {
		return err
	}
	server, err := c.s.route(ctx, d)
	if err != nil {
		return err
	}
	if server != nil {
		if err := c.through(ctx, *server, l); !errors.Is(err, errPassedBy) {
			return err
		}
	}
	m, err := c.s.compose(l, c.s.ownOrigin(l.Template), c.s.now())
	if err != nil {
		return refusal{err}
	}
	return c.own.carry(ctx, m)
}

func (c *mailCarrier) rest() {
	c.own.hangUp()
	if c.custom != nil {
		c.custom.hangUp()
	}
}

func (c *mailCarrier) drop() {
	c.own.drop()
	if c.custom != nil {
		c.custom.drop()
	}
}

// letter gathers what the mail is made of.
func (s *Service) letter(ctx context.Context, d store.Delivery) (letter, error) {
	ctx, cancel := context.WithTimeout(ctx, ask)
	defer cancel()
	if d.Workflow == smtpAlert {
		return s.alert(ctx, d)
	}
	l := letter{delivery: d}
	var err error
	l.Mail, err = s.peers.Directory.Mail(ctx, directoryapi.MailOf{Tenant: d.TenantID, Account: d.AccountID, Workflow: d.Workflow})
	if errors.Is(err, apierr.NotFound) {
		return l, errUnwanted
	}
	if err != nil {
		return l, fmt.Errorf("ask for the template: %w", err)
	}
	if d.Workflow == directoryapi.Verification && l.Account.EmailVerificationStatus == directoryapi.Verified {
		return l, errUnwanted // proven meanwhile: the token is void
	}
	if d.TokenSealed != nil {
		if l.token, err = s.ring.Open(d.TokenSealed, events.MailTokenPurpose(d.AccountID)); err != nil {
			return l, fmt.Errorf("open the token: %w", err)
		}
	}
	if err := s.speakOfApplication(ctx, &l); err != nil && !errors.Is(err, apierr.NotFound) {
		return l, fmt.Errorf("ask for the application: %w", err)
	}
	return l, nil
}

// speakOfApplication gathers what the template says of the application through
// which the event came about. Where it says nothing, or there is none, the mail
// does not wait for the application service.
func (s *Service) speakOfApplication(ctx context.Context, l *letter) error {
	at := directoryapi.Ref{Tenant: l.delivery.TenantID, ID: l.delivery.ApplicationID}
	if at.ID.IsZero() {
		return nil
	}
	bodies := l.Template.TextBody + l.Template.HTMLBody
	if strings.Contains(bodies, "{application.name}") {
		application, err := s.peers.Application.Application(ctx, at)
		if err != nil {
			return err
		}
		l.application = &application.Name
	}
	keys := macro.Keys(bodies, "application.customData.")
	if len(keys) == 0 {
		return nil
	}
	data, err := s.peers.Application.ApplicationData(ctx, applicationapi.DataOf{Ref: at, Keys: keys})
	l.applicationData = data.Values
	return err
}

package notification

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/macro"
	"github.com/doorward/doorward/pkg/telemetry"
	"github.com/doorward/doorward/services/notification/store"
)

const (
	// poll bounds how long a delivery waits that another replica ordered, or whose
	// next try has come. Those of this process wake a sender at once.
	poll = time.Second
	// giveUp is the age at which a delivery that fails is not tried again.
	giveUp = 72 * time.Hour
	// lease is how long a delivery stays with a sender that died. A sender that
	// lives renews it.
	lease = 10 * time.Second
	// soon is when a delivery is tried again whose try failed for a reason that
	// has nothing to do with it.
	soon = 5 * time.Second
	// ask bounds the questions to other services.
	ask = 15 * time.Second
	// grace is how long a mail that is on its way may take once the process stops,
	// and lastNote how much longer the note of what came of it.
	grace    = 10 * time.Second
	lastNote = 5 * time.Second
)

// backoff gives the wait after the n-th failure of a delivery: 5 s, doubled up
// to an hour; some eighty tries until giveUp.
func backoff(failures int) time.Duration {
	return min(5*time.Second<<min(failures-1, 20), time.Hour)
}

// errUnwanted ends a delivery whose mail is not to be sent.
var errUnwanted = errors.New("the mail is not wanted")

// Send is the worker that hands due deliveries to the mail server until ctx
// ends. Any number of processes may run it: a lease keeps a delivery with one
// sender, and no transaction is open while the mail server is spoken to. A
// process that dies between the mail server's answer and the note of it leaves
// one mail per sender to be sent again, under the same Message-ID.
func (s *Service) Send(ctx context.Context) error {
	couriers := make([]*courier, s.cfg.Senders)
	for i := range couriers {
		var err error
		if couriers[i], err = newCourier(s.cfg.Server, &net.Dialer{}, s.cfg.Timeout); err != nil {
			return err
		}
	}
	var senders sync.WaitGroup
	for _, courier := range couriers {
		senders.Go(func() { s.sender(ctx, courier) })
	}
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for ctx.Err() == nil {
		s.stir()
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	senders.Wait()
	return nil
}

// stir wakes a sender, if one sleeps.
func (s *Service) stir() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// sender sends while deliveries are due, and sleeps otherwise.
func (s *Service) sender(ctx context.Context, courier *courier) {
	defer courier.hangUp()
	for failures := 0; ctx.Err() == nil; {
		found, err := s.sendNext(ctx, courier)
		switch {
		case err != nil:
			if ctx.Err() == nil {
				slog.WarnContext(ctx, "mails wait", "error", err.Error())
			}
			_ = wait(ctx, min(time.Second<<min(failures, 10), soon))
			failures++
		case found:
			failures = 0
		default:
			failures = 0
			courier.hangUp()
			select {
			case <-ctx.Done():
			case <-s.wake:
			}
		}
	}
}

// sendNext works on one due delivery; found is false when there is none. Its
// error says that nothing can be sent at present.
func (s *Service) sendNext(ctx context.Context, courier *courier) (found bool, err error) {
	now := s.now()
	var d store.Delivery
	quiet := telemetry.Quiet(ctx)
	err = s.store.Tx(quiet, func(tx *store.Tx) (err error) {
		d, err = tx.LeaseDelivery(quiet, id.New(now), now, now.Add(lease))
		return err
	})
	if errors.Is(err, apierr.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for a delivery: %w", err)
	}
	s.stir() // more may be due than one sender can do
	defer s.hold(quiet, d)()

	ctx = caller.Into(ctx, caller.Caller{Tenant: d.TenantID, RequestID: d.RequestID})
	ctx, span := telemetry.Span(telemetry.Continue(ctx, propagation.MapCarrier(d.Trace)), "send mail",
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attribute.String("workflow", string(d.Workflow))))
	defer span.End()
	outcome := s.try(ctx, courier, d)
	result := s.settle(ctx, d, outcome)
	span.SetAttributes(attribute.String("result", result))
	if outcome != nil && result != "unwanted" {
		span.SetStatus(codes.Error, outcome.Error())
	}
	s.mails.Add(ctx, 1, metric.WithAttributes(attribute.String("workflow", string(d.Workflow)), attribute.String("result", result)))
	if isAway(outcome) {
		return true, outcome
	}
	return true, nil
}

// hold renews the lease of a delivery until release is called.
func (s *Service) hold(ctx context.Context, d store.Delivery) (release func()) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for wait(ctx, lease/3) == nil {
			err := s.store.Tx(ctx, func(tx *store.Tx) error { return tx.RenewLease(ctx, d, s.now().Add(lease)) })
			if err != nil && ctx.Err() == nil {
				slog.WarnContext(ctx, "the lease of a delivery was not renewed", "delivery", d.ID.String(), "error", err.Error())
			}
		}
	}()
	return func() {
		stop()
		<-ended
	}
}

// try sends the mail of a delivery. A panic is a failure like another.
func (s *Service) try(ctx context.Context, courier *courier, d store.Delivery) (err error) {
	ctx, release := outlive(ctx, grace)
	defer release()
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			courier.drop()
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	l, err := s.letter(ctx, d)
	if err != nil {
		return err
	}
	m, err := s.compose(l, s.now())
	if err != nil {
		return refusal{err}
	}
	return courier.carry(ctx, m)
}

// letter gathers what the mail is made of.
func (s *Service) letter(ctx context.Context, d store.Delivery) (letter, error) {
	ctx, cancel := context.WithTimeout(ctx, ask)
	defer cancel()
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

// isAway reports whether a failure would meet every delivery.
func isAway(err error) bool { return errors.Is(err, errAway) || errors.Is(err, apierr.Unavailable) }

// settle notes what came of a try, and gives it a name. It goes on until the
// database takes the note, so that an outage does not repeat the mail.
func (s *Service) settle(ctx context.Context, d store.Delivery, outcome error) (result string) {
	ctx, release := outlive(ctx, grace+lastNote)
	defer release()
	now := s.now()
	next := now.Add(soon)
	switch final := (refusal{}); {
	case outcome == nil:
		d.State, result = store.Sent, "sent"
	case errors.Is(outcome, errUnwanted):
		d.State, result = store.Unwanted, "unwanted"
	case errors.As(outcome, &final), now.Sub(d.CreatedAt) >= giveUp:
		d.State, result = store.Failed, "failed"
	default:
		result = "postponed"
		if !isAway(outcome) {
			d.Failures++
			next = now.Add(backoff(d.Failures))
		}
	}
	d.LastError = ""
	if outcome != nil {
		d.LastError = outcome.Error()
	}
	for pauses := 0; ; pauses++ {
		err := s.store.Tx(ctx, func(tx *store.Tx) error {
			if result == "postponed" {
				return tx.PostponeDelivery(ctx, d, next)
			}
			return tx.FinishDelivery(ctx, d, now)
		})
		if err == nil {
			break
		}
		slog.WarnContext(ctx, "a delivery was not settled", "delivery", d.ID.String(), "result", result, "error", err.Error())
		if wait(ctx, min(100*time.Millisecond<<min(pauses, 10), 5*time.Second)) != nil {
			break
		}
	}
	s.tell(ctx, d, result)
	return result
}

// tell writes the log of a try: never an address, never a token.
func (s *Service) tell(ctx context.Context, d store.Delivery, result string) {
	level := slog.LevelInfo
	switch result {
	case "postponed":
		level = slog.LevelWarn
	case "failed":
		level = slog.LevelError
	}
	slog.Log(ctx, level, "mail "+result, "delivery", d.ID.String(), "workflow", string(d.Workflow), "account", d.AccountID.String(),
		"failures", d.Failures, "error", d.LastError)
}

// outlive gives a context that outlives ctx by the grace, so that a stop of the
// process does not cut a mail in two.
func outlive(ctx context.Context, grace time.Duration) (longer context.Context, release func()) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		_ = wait(longer, grace)
		cancel()
	})
	return longer, func() {
		stop()
		cancel()
	}
}

// wait waits, or ends early with ctx.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

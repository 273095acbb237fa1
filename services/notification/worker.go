package notification

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/telemetry"
	"github.com/doorward/doorward/services/notification/store"
)

const (
	// leaseTime is how long a delivery is leased to a worker, unless Config.LeaseTime says
	// otherwise. A running worker renews the lease; that of a dead worker runs out.
	leaseTime = 10 * time.Second
	// stopGrace is how long an attempt may go on once the process stops, and recordGrace how
	// much longer its outcome may take to be recorded.
	stopGrace   = 10 * time.Second
	recordGrace = 5 * time.Second
)

// pollInterval is the interval at which workers look for deliveries that another replica added
// or whose retry is due. It doubles up to maxPollInterval while none is due. A delivery that
// this process adds wakes a worker at once.
var pollInterval, maxPollInterval = time.Second, 4 * time.Second

// errObsolete ends a delivery that must not be sent any more (store.Obsolete): the account does not
// exist, the workflow is off, the email address was verified meanwhile, the code of a text message
// has expired, the circuit breaker of an alert was closed, or a client has no address for logouts any
// more.
var errObsolete = errors.New("it is not wanted")

// channel is a delivery channel: mails (mailchannel.go), text messages (smschannel.go) or back-channel
// logouts (logoutchannel.go). All are leased, sent, recorded and purged by the same code; the fields are
// what differs.
type channel struct {
	kind       string        // of its deliveries: store.Mail, store.SMS or store.Logout
	name       string        // in logs and traces
	workers    int           // how many send at once
	timeout    time.Duration // bounds one attempt
	maxAge     time.Duration // ends the retries: a delivery that fails at this age becomes FAILED
	wake       chan struct{}
	skipped    func() store.Skip // returns the deliveries that must not be leased now
	lastTenant atomic.Value      // id.ID of the tenant of the last delivery: the tenants take turns

	newSender func() (sender, error) // makes the sender of one worker
	// returns the delay after the n-th failure of a delivery
	backoff func(failures int) time.Duration
	// returns the workflow of a delivery, for logs and metrics
	workflow   func(store.Delivery) string
	attempts   metric.Int64Counter                   // counts attempts by workflow and result
	finalState func(error) (store.State, sendResult) // of an outcome; "" for a retry
	// runs in the transaction that finishes a delivery; may be nil
	onFinish func(context.Context, *store.Tx, store.Delivery) error
}

// sender sends deliveries, one after the other. It belongs to one worker.
type sender interface {
	// send sends a delivery until ctx ends.
	send(ctx context.Context, d store.Delivery) error
	// close closes connections that are idle.
	close()
	// abort closes connections after a panic.
	abort()
}

// Send runs the workers that send due deliveries, until ctx ends. Any number of processes may
// run it: a lease keeps a delivery with one worker, and no transaction is open during a call
// of a mail server, a provider or a client. The channels do not wait for each other.
func (s *Service) Send(ctx context.Context) error {
	var starts []func()
	var found atomic.Bool
	for _, c := range s.channels() {
		for range c.workers {
			sender, err := c.newSender()
			if err != nil {
				return err
			}
			starts = append(starts, func() { s.sendUntilDone(ctx, c, sender, &found) })
		}
	}
	var workers sync.WaitGroup
	defer workers.Wait()
	for _, start := range starts {
		workers.Go(start)
	}
	for interval := pollInterval; ctx.Err() == nil; {
		for _, c := range s.channels() { // one after the other, so that one database connection is enough
			c.wakeWorker()
			_ = sleep(ctx, interval/time.Duration(len(s.channels())))
		}
		interval = min(2*interval, maxPollInterval)
		if found.Swap(false) {
			interval = pollInterval
		}
	}
	return nil
}

// channels are the delivery channels.
func (s *Service) channels() []*channel { return []*channel{s.mail, s.sms, s.logouts} }

// wakeWorker wakes a worker of the channel, if one sleeps.
func (c *channel) wakeWorker() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// sendUntilDone is one worker: it sends while deliveries are due, and otherwise sleeps until it
// is woken, until ctx ends. It sets found when a delivery was due, or when the query failed.
func (s *Service) sendUntilDone(ctx context.Context, c *channel, sender sender, found *atomic.Bool) {
	defer sender.close()
	for failures := 0; ctx.Err() == nil; {
		due, err := s.sendNext(ctx, c, sender)
		if due || err != nil {
			found.Store(true)
		}
		switch {
		case err != nil:
			if ctx.Err() == nil {
				slog.WarnContext(ctx, "taking the next "+c.name+" failed, retrying", "error", err.Error())
			}
			_ = sleep(ctx, min(time.Second<<min(failures, 10), unavailableRetryDelay))
			failures++
		case due:
			failures = 0
		default:
			failures = 0
			sender.close()
			select {
			case <-ctx.Done():
			case <-c.wake:
			}
		}
	}
}

// sendNext leases one due delivery, sends it and records the outcome. It returns false when no
// delivery is due, and an error when nothing can be sent at present.
func (s *Service) sendNext(ctx context.Context, c *channel, sender sender) (due bool, err error) {
	d, err := s.lease(telemetry.Untraced(ctx), c)
	c.lastTenant.Store(d.TenantID)
	if errors.Is(err, apierr.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("lease a delivery: %w", err)
	}
	c.wakeWorker() // more deliveries may be due than one worker can send
	ctx = caller.Into(ctx, caller.Caller{Tenant: d.TenantID, RequestID: d.RequestID})
	defer s.keepLease(telemetry.Untraced(ctx), d)()

	ctx, span := telemetry.Span(telemetry.ExtractTrace(ctx, propagation.MapCarrier(d.Trace)), "send "+c.name,
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attribute.String("workflow", c.workflow(d))))
	defer span.End()
	outcome := s.attempt(ctx, c, sender, d)
	result := s.recordOutcome(ctx, c, d, outcome)
	span.SetAttributes(attribute.String("result", string(result)))
	if outcome != nil && result != resultUnwanted && result != resultHeld {
		span.SetStatus(codes.Error, outcome.Error())
	}
	c.attempts.Add(ctx, 1, metric.WithAttributes(attribute.String("workflow", c.workflow(d)),
		attribute.String("result", string(result))))
	if isUnavailable(outcome) {
		return true, outcome
	}
	return true, nil
}

// lease leases a due delivery for this worker, or returns apierr.NotFound.
func (s *Service) lease(ctx context.Context, c *channel) (d store.Delivery, err error) {
	now := s.now()
	after, _ := c.lastTenant.Load().(id.ID)
	err = s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		skip := c.skipped()
		skip.Tenants = append(skip.Tenants, s.held.at(now)...)
		d, err = tx.LeaseDelivery(ctx, c.kind, after, id.New(now), now, now.Add(s.cfg.LeaseTime), skip)
		return err
	})
	return d, err
}

// keepLease renews the lease of a delivery (heartbeat) until release is called.
func (s *Service) keepLease(ctx context.Context, d store.Delivery) (release func()) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for sleep(ctx, s.cfg.LeaseTime/3) == nil {
			err := s.store.Tx(ctx, func(tx *store.Tx) error {
				return tx.RenewLease(ctx, d, s.now().Add(s.cfg.LeaseTime))
			})
			if err != nil && ctx.Err() == nil {
				slog.WarnContext(ctx, "renewal of a delivery's lease failed, retrying", "delivery", d.ID.String(),
					"error",
					err.Error())
			}
		}
	}()
	return func() {
		stop()
		<-ended
	}
}

// attempt sends a delivery within the timeout of its channel. A panic counts as a failure.
func (s *Service) attempt(ctx context.Context, c *channel, sender sender, d store.Delivery) (err error) {
	ctx, release := withGrace(ctx, stopGrace)
	defer release()
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			sender.abort()
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	if err := s.tenants.Check(ctx, d.TenantID); err != nil {
		return err
	}
	return sender.send(ctx, d)
}

// withGrace returns a context that ends a grace period after ctx, so that the shutdown of the
// process does not interrupt the sending of a mail.
func withGrace(ctx context.Context, grace time.Duration) (longer context.Context, release func()) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		_ = sleep(longer, grace)
		cancel()
	})
	return longer, func() {
		stop()
		cancel()
	}
}

// sleep waits for a duration, or returns the error of ctx when that ends earlier.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

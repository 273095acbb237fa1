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
	// leaseTime is how long a dead worker keeps a delivery, unless Config.LeaseTime says
	// otherwise; a running worker renews it.
	leaseTime = 10 * time.Second
	// stopGrace is how long an attempt may go on once the process stops, and recordGrace how
	// much longer its outcome may take to be recorded.
	stopGrace   = 10 * time.Second
	recordGrace = 5 * time.Second
)

// pollInterval bounds how long a delivery waits when another replica added it, or when it is
// due again. It doubles up to maxPollInterval while none is due; deliveries that this process
// adds wake a worker at once.
var pollInterval, maxPollInterval = time.Second, 4 * time.Second

// errUnwanted ends a delivery that is not to be sent.
var errUnwanted = errors.New("it is not wanted")

// channel is a delivery channel: mails (mailchannel.go) or texts (textchannel.go). Both are
// leased, sent, recorded and purged alike; this is what differs.
type channel struct {
	kind    string        // of the deliveries: store.Mail or store.Text
	name    string        // in logs and traces
	workers int           // deliveries sent at once
	timeout time.Duration // bounds one attempt
	wake    chan struct{}
	skip    func() store.Skip // the deliveries not to lease now
	last    atomic.Value      // id.ID of the tenant that had its turn
	turn    atomic.Uint32     // of the databases

	newSender func() (sender, error)                                 // of one worker
	backoff   func(failures int) time.Duration                       // returns the delay after the n-th failure of a delivery
	label     func(store.Delivery) string                            // returns the workflow of a delivery, for logs and metrics
	attempts  metric.Int64Counter                                    // counts attempts by workflow and result
	final     func(error) (state, result string)                     // of an outcome; empty for a failure that is retried
	onFinish  func(context.Context, *store.Tx, store.Delivery) error // runs in the transaction that finishes a delivery; may be nil
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
// of a mail server or a provider. Mails and texts do not wait for each other.
func (s *Service) Send(ctx context.Context) error {
	var starts []func()
	var found atomic.Bool
	for _, c := range s.channels() {
		for range c.workers {
			sender, err := c.newSender()
			if err != nil {
				return err
			}
			starts = append(starts, func() { s.work(ctx, c, sender, &found) })
		}
	}
	var workers sync.WaitGroup
	defer workers.Wait()
	for _, start := range starts {
		workers.Go(start)
	}
	for interval := pollInterval; ctx.Err() == nil; {
		for _, c := range s.channels() { // one after the other, so that one connection to the database does
			c.wakeWorker()
			_ = wait(ctx, interval/time.Duration(len(s.channels())))
		}
		interval = min(2*interval, maxPollInterval)
		if found.Swap(false) {
			interval = pollInterval
		}
	}
	return nil
}

// channels are the delivery channels.
func (s *Service) channels() []*channel { return []*channel{s.mails, s.texts} }

// wakeWorker wakes a worker of the channel, if one sleeps.
func (c *channel) wakeWorker() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// work sends while deliveries are due, and sleeps otherwise. It sets found when
// one was, or when the database could not say.
func (s *Service) work(ctx context.Context, c *channel, sender sender, found *atomic.Bool) {
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
			_ = wait(ctx, min(time.Second<<min(failures, 10), retryDelay))
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

// sendNext works on one due delivery; due is false when there is none. Its error
// says that nothing can be sent at present.
func (s *Service) sendNext(ctx context.Context, c *channel, sender sender) (due bool, err error) {
	d, err := s.lease(telemetry.Untraced(ctx), c)
	c.last.Store(d.TenantID)
	if errors.Is(err, apierr.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("lease a delivery: %w", err)
	}
	c.wakeWorker() // more may be due than one worker can do
	ctx = caller.Into(ctx, caller.Caller{Tenant: d.TenantID, RequestID: d.RequestID})
	defer s.keepLease(telemetry.Untraced(ctx), d)()

	ctx, span := telemetry.Span(telemetry.ExtractTrace(ctx, propagation.MapCarrier(d.Trace)), "send "+c.name,
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attribute.String("workflow", c.label(d))))
	defer span.End()
	outcome := s.try(ctx, c, sender, d)
	result := s.record(ctx, c, d, outcome)
	span.SetAttributes(attribute.String("result", result))
	if outcome != nil && result != "unwanted" {
		span.SetStatus(codes.Error, outcome.Error())
	}
	c.attempts.Add(ctx, 1, metric.WithAttributes(attribute.String("workflow", c.label(d)), attribute.String("result", result)))
	if isUnavailable(outcome) {
		return true, outcome
	}
	return true, nil
}

// lease leases a due delivery, or returns apierr.NotFound. The databases take turns; an
// unreachable database does not delay the others.
func (s *Service) lease(ctx context.Context, c *channel) (d store.Delivery, err error) {
	err = apierr.NotFound
	shards := s.store.Shards(ctx)
	first := int(c.turn.Add(1))
	for i := range shards {
		ctx, now := shards[(first+i)%len(shards)], s.now()
		leased := s.store.Tx(ctx, func(tx *store.Tx) (err error) {
			after, _ := c.last.Load().(id.ID)
			if d, err = tx.LeaseDelivery(ctx, c.kind, after, id.New(now), now, now.Add(s.cfg.LeaseTime), c.skip()); err != nil {
				return err
			}
			return tx.PreventMove(ctx, d.TenantID)
		})
		if leased == nil {
			return d, nil
		}
		if !errors.Is(leased, apierr.NotFound) {
			err = leased
		}
	}
	return d, err
}

// keepLease renews the lease of a delivery until release is called.
func (s *Service) keepLease(ctx context.Context, d store.Delivery) (release func()) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for wait(ctx, s.cfg.LeaseTime/3) == nil {
			err := s.store.Tx(ctx, func(tx *store.Tx) error { return tx.RenewLease(ctx, d, s.now().Add(s.cfg.LeaseTime)) })
			if err != nil && ctx.Err() == nil {
				slog.WarnContext(ctx, "renewal of a delivery's lease failed, retrying", "delivery", d.ID.String(), "error", err.Error())
			}
		}
	}()
	return func() {
		stop()
		<-ended
	}
}

// try sends a delivery. A panic counts as a failure.
func (s *Service) try(ctx context.Context, c *channel, sender sender, d store.Delivery) (err error) {
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
	return sender.send(ctx, d)
}

// withGrace returns a context that ends later than ctx by the grace, so that a
// stop of the process does not interrupt a mail.
func withGrace(ctx context.Context, grace time.Duration) (longer context.Context, release func()) {
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
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

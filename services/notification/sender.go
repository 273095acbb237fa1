package notification

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
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
	// grace is how long a delivery that is on its way may take once the process stops,
	// and lastNote how much longer the note of what came of it.
	grace    = 10 * time.Second
	lastNote = 5 * time.Second
)

// errUnwanted ends a delivery that is not to be sent.
var errUnwanted = errors.New("it is not wanted")

// refusal is a failure that will be the same next time.
type refusal struct{ error }

// channel is a way that deliveries leave by. Mails (mailchannel.go) and texts
// (textchannel.go) are leased, tried, settled and purged alike; this is what
// differs.
type channel struct {
	kind    string        // of the deliveries: store.Mail or store.Text
	name    string        // in logs and traces
	senders int           // deliveries handed over at once
	timeout time.Duration // bounds one try
	wake    chan struct{}
	skip    func() store.Skip // what is left for later at present

	carrier func() (carrier, error)                                // makes what one sender works with
	backoff func(failures int) time.Duration                       // gives the wait after the n-th failure of a delivery
	label   func(store.Delivery) string                            // gives the workflow of a delivery, for logs and metrics
	tries   metric.Int64Counter                                    // counts tries by workflow and result
	ending  func(error) (state, result string)                     // names the end that an outcome is for a delivery; empty for a failure that may pass
	settled func(context.Context, *store.Tx, store.Delivery) error // follows in the transaction that ends a delivery; may be nil
}

// carrier hands deliveries over, one after the other. It belongs to one sender.
type carrier interface {
	// carry hands over a delivery until ctx ends.
	carry(ctx context.Context, d store.Delivery) error
	// rest lets go of what is held open between two deliveries that follow on
	// each other closely.
	rest()
	// drop lets go of it after a fault.
	drop()
}

// Send is the worker that hands over due deliveries until ctx ends. Any number
// of processes may run it: a lease keeps a delivery with one sender, and no
// transaction is open while a mail server or a provider is spoken to. Mails and
// texts do not wait for each other.
func (s *Service) Send(ctx context.Context) error {
	var starts []func()
	for _, c := range s.channels() {
		for range c.senders {
			carrier, err := c.carrier()
			if err != nil {
				return err
			}
			starts = append(starts, func() { s.sender(ctx, c, carrier) })
		}
	}
	var senders sync.WaitGroup
	defer senders.Wait()
	for _, start := range starts {
		senders.Go(start)
	}
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for ctx.Err() == nil {
		for _, c := range s.channels() {
			c.stir()
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	return nil
}

// channels are the ways that deliveries leave by.
func (s *Service) channels() []*channel { return []*channel{s.mails, s.texts} }

// stir wakes a sender of the channel, if one sleeps.
func (c *channel) stir() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// sender sends while deliveries are due, and sleeps otherwise.
func (s *Service) sender(ctx context.Context, c *channel, carrier carrier) {
	defer carrier.rest()
	for failures := 0; ctx.Err() == nil; {
		found, err := s.sendNext(ctx, c, carrier)
		switch {
		case err != nil:
			if ctx.Err() == nil {
				slog.WarnContext(ctx, c.name+"s wait", "error", err.Error())
			}
			_ = wait(ctx, min(time.Second<<min(failures, 10), soon))
			failures++
		case found:
			failures = 0
		default:
			failures = 0
			carrier.rest()
			select {
			case <-ctx.Done():
			case <-c.wake:
			}
		}
	}
}

// sendNext works on one due delivery; found is false when there is none. Its
// error says that nothing can be sent at present.
func (s *Service) sendNext(ctx context.Context, c *channel, carrier carrier) (found bool, err error) {
	now := s.now()
	var d store.Delivery
	quiet := telemetry.Quiet(ctx)
	err = s.store.Tx(quiet, func(tx *store.Tx) (err error) {
		d, err = tx.LeaseDelivery(quiet, c.kind, id.New(now), now, now.Add(lease), c.skip())
		return err
	})
	if errors.Is(err, apierr.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for a delivery: %w", err)
	}
	c.stir() // more may be due than one sender can do
	defer s.hold(quiet, d)()

	ctx = caller.Into(ctx, caller.Caller{Tenant: d.TenantID, RequestID: d.RequestID})
	ctx, span := telemetry.Span(telemetry.Continue(ctx, propagation.MapCarrier(d.Trace)), "send "+c.name,
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attribute.String("workflow", c.label(d))))
	defer span.End()
	outcome := s.try(ctx, c, carrier, d)
	result := s.settle(ctx, c, d, outcome)
	span.SetAttributes(attribute.String("result", result))
	if outcome != nil && result != "unwanted" {
		span.SetStatus(codes.Error, outcome.Error())
	}
	c.tries.Add(ctx, 1, metric.WithAttributes(attribute.String("workflow", c.label(d)), attribute.String("result", result)))
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

// try hands over a delivery. A panic is a failure like another.
func (s *Service) try(ctx context.Context, c *channel, carrier carrier, d store.Delivery) (err error) {
	ctx, release := outlive(ctx, grace)
	defer release()
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			carrier.drop()
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return carrier.carry(ctx, d)
}

// isAway reports whether a failure would meet every delivery.
func isAway(err error) bool { return errors.Is(err, errAway) || errors.Is(err, apierr.Unavailable) }

// settle notes what came of a try, and gives it a name. It goes on until the
// database takes the note, so that an outage does not repeat the delivery.
func (s *Service) settle(ctx context.Context, c *channel, d store.Delivery, outcome error) (result string) {
	ctx, release := outlive(ctx, grace+lastNote)
	defer release()
	now := s.now()
	next := now.Add(soon)
	d.State, result = c.ending(outcome)
	if d.State == "" && now.Sub(d.CreatedAt) >= giveUp {
		d.State, result = store.Failed, "failed"
	}
	if d.State == "" {
		result = "postponed"
		switch {
		case errors.Is(outcome, errTurn):
			next = now
		case !isAway(outcome):
			d.Failures++
			next = now.Add(c.backoff(d.Failures))
		}
	}
	d.LastError = ""
	if outcome != nil {
		d.LastError = outcome.Error()
	}
	for pauses := 0; ; pauses++ {
		err := s.note(ctx, c, d, now, next)
		if err == nil {
			break
		}
		slog.WarnContext(ctx, "a delivery was not settled", "delivery", d.ID.String(), "result", result, "error", err.Error())
		if wait(ctx, min(100*time.Millisecond<<min(pauses, 10), 5*time.Second)) != nil {
			break
		}
	}
	c.tell(ctx, d, result, level(result, outcome))
	return result
}

// note writes what came of a try: the delivery has ended, or is tried again at
// next.
func (s *Service) note(ctx context.Context, c *channel, d store.Delivery, now, next time.Time) error {
	return s.store.Tx(ctx, func(tx *store.Tx) error {
		if d.State == "" {
			return tx.PostponeDelivery(ctx, d, next)
		}
		return s.finish(ctx, tx, c, d, now)
	})
}

// finish ends a delivery, unless it has ended already, with what follows.
func (s *Service) finish(ctx context.Context, tx *store.Tx, c *channel, d store.Delivery, now time.Time) error {
	if c.settled == nil {
		tx.FinishDelivery(d, now)
		return nil
	}
	ended, err := tx.FinishDeliveryOnce(ctx, d, now)
	if err != nil || !ended {
		return err
	}
	return c.settled(ctx, tx, d)
}

// tell writes the log of a try: never an address or a number, never a token or
// a code.
func (c *channel) tell(ctx context.Context, d store.Delivery, result string, level slog.Level) {
	slog.Log(ctx, level, c.name+" "+result, "delivery", d.ID.String(), "workflow", c.label(d), "account", d.AccountID.String(),
		"failures", d.Failures, "error", d.LastError)
}

// level is how much the result of a try is an operator's business. That an
// address or a number takes no messages is not: whoever registers chooses it.
func level(result string, outcome error) slog.Level {
	switch {
	case errors.As(outcome, new(refusal)):
		return slog.LevelInfo
	case result == "postponed", result == "lost":
		return slog.LevelWarn
	case result == "failed", result == "broken":
		return slog.LevelError
	}
	return slog.LevelInfo
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

package notification

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/services/notification/store"
)

// The retry of deliveries, with back-off. Each channel decides which failures are retried (finalState
// here, finalSMSState in smschannel.go).
const (
	// maxDeliveryAge ends the retries of mails and text messages, maxLogoutAge those of logouts.
	maxDeliveryAge = 72 * time.Hour
	maxLogoutAge   = 24 * time.Hour
	// unavailableRetryDelay is the delay before a retry when the server or the database was
	// unavailable. Such a failure does not count for the back-off of the delivery.
	unavailableRetryDelay = 5 * time.Second
)

// permanentError is a failure that every retry would repeat, such as an SMTP 5xx for the
// recipient: the delivery becomes FAILED at once.
type permanentError struct{ error }

// sendResult is what an attempt to send a delivery ended as, in logs, metrics and traces.
type sendResult string

const (
	resultSent      sendResult = "sent"
	resultUnwanted  sendResult = "unwanted"  // there is no need any more (errObsolete)
	resultPostponed sendResult = "postponed" // there will be a retry
	resultHeld      sendResult = "held"      // the tenant is suspended
	resultFailed    sendResult = "failed"    // refused permanently, or given up by its age
	resultLost      sendResult = "lost"      // the SMS provider may have accepted the text message
	resultBroken    sendResult = "broken"    // the deployment cannot send it
)

// finalState returns the final state of a mail or a logout by the outcome of an attempt, and "" for a
// retry.
func finalState(outcome error) (store.State, sendResult) {
	switch final := (permanentError{}); {
	case outcome == nil:
		return store.Sent, resultSent
	case errors.Is(outcome, errObsolete):
		return store.Obsolete, resultUnwanted
	case errors.As(outcome, &final):
		return store.Failed, resultFailed
	}
	return "", ""
}

// mailBackoff returns the delay after the n-th failure of a mail or a logout: 5 s, doubled up to an
// hour; of a mail some eighty attempts until maxDeliveryAge.
func mailBackoff(failures int) time.Duration {
	return min(5*time.Second<<min(failures-1, 20), time.Hour)
}

// smsBackoff returns the delay after the n-th failure of a text message: 1 s, doubled up to
// 30 s. A code is valid for five minutes, and its user waits.
func smsBackoff(failures int) time.Duration {
	return min(time.Second<<min(failures-1, 20), 30*time.Second)
}

// isUnavailable reports whether a failure has a cause that makes every delivery fail at
// present.
func isUnavailable(err error) bool {
	return errors.Is(err, errUnavailable) || errors.Is(err, apierr.Unavailable)
}

// recordOutcome writes the outcome of an attempt to the delivery, which is finished or gets the
// time of its retry, and returns the result for logs and metrics. It retries until the
// database accepts the write, so that an outage does not cause a second mail.
func (s *Service) recordOutcome(ctx context.Context, c *channel, d store.Delivery, outcome error) sendResult {
	ctx, release := withGrace(ctx, stopGrace+recordGrace)
	defer release()
	if errors.Is(outcome, apierr.TenantSuspended) {
		return s.hold(ctx, d)
	}
	now := s.now()
	next := now.Add(unavailableRetryDelay)
	state, result := c.finalState(outcome)
	d.State = state
	if d.State == "" && now.Sub(d.CreatedAt) >= c.maxAge {
		d.State, result = store.Failed, resultFailed
	}
	if d.State == "" {
		result = resultPostponed
		switch {
		case errors.Is(outcome, errServerInUse):
			next = now
		case !isUnavailable(outcome):
			d.Failures++
			next = now.Add(c.backoff(d.Failures))
		}
	}
	d.LastError = ""
	if outcome != nil {
		d.LastError = outcome.Error()
	}
	for failures := 0; ; failures++ {
		err := s.store.Tx(ctx, func(tx *store.Tx) error {
			if d.State == "" {
				return tx.PostponeDelivery(ctx, d, next)
			}
			return s.finish(ctx, tx, c, d, now)
		})
		if err == nil {
			s.countUsage(d, result)
			break
		}
		slog.WarnContext(ctx, "recording a delivery failed, retrying", "delivery", d.ID.String(), "result", result,
			"error",
			err.Error())
		if sleep(ctx, min(100*time.Millisecond<<min(failures, 10), 5*time.Second)) != nil {
			break
		}
	}
	// The log line must not have an email address, a telephone number, a token or a code.
	slog.Log(ctx, logLevel(result, outcome), c.name+" "+string(result), "delivery", d.ID.String(), "workflow",
		c.workflow(d), "account", d.AccountID.String(), "failures", d.Failures, "error", d.LastError)
	return result
}

// countUsage counts a mail or a text message that was sent.
func (s *Service) countUsage(d store.Delivery, result sendResult) {
	switch {
	case result != resultSent:
	case d.Kind == store.Mail:
		s.store.Usage.AddMail(d.TenantID)
	case d.Kind == store.SMS:
		s.store.Usage.AddText(d.TenantID)
	}
}

// finish sets the final state of a delivery, unless it has one already, and runs onFinish of
// its channel in the same transaction.
func (s *Service) finish(ctx context.Context, tx *store.Tx, c *channel, d store.Delivery, now time.Time) error {
	finished, err := tx.FinishDelivery(ctx, d, now)
	if err != nil || !finished || c.onFinish == nil {
		return err
	}
	return c.onFinish(ctx, tx, d)
}

// logLevel is the log level of a result. A permanent refusal is a warning and no error: mostly
// the user's own address or number accepts no messages. A mail server that refuses every
// message gives the same answer, so only the number of such warnings shows that.
func logLevel(result sendResult, outcome error) slog.Level {
	switch {
	case errors.As(outcome, new(permanentError)), result == resultPostponed, result == resultLost:
		return slog.LevelWarn
	case result == resultFailed, result == resultBroken:
		return slog.LevelError
	}
	return slog.LevelInfo
}

package notification

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/services/notification/store"
)

// The retry of mails and texts: what a failed attempt leads to.
const (
	// maxAge ends the retries of a delivery: one that fails at this age becomes FAILED.
	// Mails have no dead-letter queue.
	maxAge = 72 * time.Hour
	// retryDelay is the delay before a retry of a delivery whose server or database was
	// unavailable, which does not count as a failure of it.
	retryDelay = 5 * time.Second
)

// permanentError is a failure that a retry would repeat.
type permanentError struct{ error }

// mailBackoff returns the delay after the n-th failure of a mail: 5 s, doubled up to an hour;
// some eighty attempts until maxAge.
func mailBackoff(failures int) time.Duration {
	return min(5*time.Second<<min(failures-1, 20), time.Hour)
}

// textBackoff returns the delay after the n-th failure of a text: 1 s, doubled up
// to 30 s. A code is valid for five minutes, and its user waits.
func textBackoff(failures int) time.Duration {
	return min(time.Second<<min(failures-1, 20), 30*time.Second)
}

// isUnavailable reports whether the cause of a failure would fail every delivery.
func isUnavailable(err error) bool {
	return errors.Is(err, errUnavailable) || errors.Is(err, apierr.Unavailable)
}

// record writes the outcome of an attempt, and returns its name. It retries until the database
// accepts it, so that an outage does not repeat the delivery.
func (s *Service) record(ctx context.Context, c *channel, d store.Delivery, outcome error) (result string) {
	ctx, release := withGrace(ctx, stopGrace+recordGrace)
	defer release()
	now := s.now()
	next := now.Add(retryDelay)
	d.State, result = c.final(outcome)
	if d.State == "" && now.Sub(d.CreatedAt) >= maxAge {
		d.State, result = store.Failed, "failed"
	}
	if d.State == "" {
		result = "postponed"
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
			break
		}
		slog.WarnContext(ctx, "recording a delivery failed, retrying", "delivery", d.ID.String(), "result", result, "error", err.Error())
		if wait(ctx, min(100*time.Millisecond<<min(failures, 10), 5*time.Second)) != nil {
			break
		}
	}
	// Never an address or a number, never a token or a code.
	slog.Log(ctx, level(result, outcome), c.name+" "+result, "delivery", d.ID.String(), "workflow", c.label(d),
		"account", d.AccountID.String(), "failures", d.Failures, "error", d.LastError)
	return result
}

// finish sets the final state of a delivery, unless it has one already, with what
// follows from that.
func (s *Service) finish(ctx context.Context, tx *store.Tx, c *channel, d store.Delivery, now time.Time) error {
	finished, err := tx.FinishDelivery(ctx, d, now)
	if err != nil || !finished || c.onFinish == nil {
		return err
	}
	return c.onFinish(ctx, tx, d)
}

// level is the log level of a result. A permanent refusal is a warning: one is an address or
// a number that accepts no messages, which its account's owner chose, but a mail server that
// refuses every message answers each of them in the same words, so that their number alone
// tells the two apart.
func level(result string, outcome error) slog.Level {
	switch {
	case errors.As(outcome, new(permanentError)), result == "postponed", result == "lost":
		return slog.LevelWarn
	case result == "failed", result == "broken":
		return slog.LevelError
	}
	return slog.LevelInfo
}

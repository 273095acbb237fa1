package changefeed

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"github.com/doorward/doorward/pkg/id"
)

const (
	// After a log that is behind, and after a failure, there is no poll for a while.
	behindRetry  = 20 * time.Millisecond
	failureRetry = 500 * time.Millisecond

	// maxLogs bounds a position. Replicas come and go, and each has a log.
	maxLogs = 64
)

// Source asks a service for the changes after a position.
type Source func(context.Context, Position) (Page, error)

// FollowerConfig says what a follower keeps current.
type FollowerConfig struct {
	Name    string        // in metrics
	MaxAge  time.Duration // from the start of a poll, which ends by then
	Now     func() time.Time
	Sources []Source
	Forget  func(id.Ref) // drops what was read from a resource
	Clear   func()       // drops everything
}

// Follower keeps answers current that depend on resources of other services.
type Follower struct {
	cfg   FollowerConfig
	polls singleflight.Group

	mu        sync.Mutex
	polled    time.Time // when the last poll began that all sources answered
	retry     time.Time // no poll before
	positions []Position
}

// NewFollower makes a follower.
func NewFollower(cfg FollowerConfig) *Follower {
	f := &Follower{cfg: cfg, positions: make([]Position, len(cfg.Sources))}
	f.observe()
	return f
}

// Current reports whether what is kept has been current within MaxAge: everything was
// dropped that the sources knew by then to have changed. It polls them where that is
// necessary. While a source is behind or does not answer it is false, and its caller
// asks the service itself.
func (f *Follower) Current(ctx context.Context) bool {
	now := f.cfg.Now()
	if current, may := f.state(now); current || !may {
		return current
	}
	poll := f.polls.DoChan("", func() (any, error) {
		if current, _ := f.state(now); !current { // another may have ended since
			f.poll(context.WithoutCancel(ctx))
		}
		return nil, nil
	})
	select {
	case <-poll:
	case <-ctx.Done():
	}
	current, _ := f.state(now)
	return current
}

// state reports whether the last poll is recent enough, and whether there may be another.
func (f *Follower) state(now time.Time) (current, may bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return now.Sub(f.polled) < f.cfg.MaxAge, !now.Before(f.retry)
}

func (f *Follower) poll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, f.cfg.MaxAge)
	defer cancel()
	began := f.cfg.Now()
	pages := make([]Page, len(f.cfg.Sources))
	group, ctx := errgroup.WithContext(ctx)
	for i, ask := range f.cfg.Sources {
		group.Go(func() (err error) {
			pages[i], err = ask(ctx, f.positions[i])
			return err
		})
	}
	err := group.Wait()
	behind := false
	for i, page := range pages { // also where another source has failed, whose turn is the next poll
		behind = behind || page.Behind
		if page.Log != "" {
			f.apply(i, page)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err != nil:
		f.retry = f.cfg.Now().Add(failureRetry)
	case behind:
		f.retry = f.cfg.Now().Add(behindRetry)
	default:
		f.polled = began
	}
}

// apply drops what a page says to have changed.
func (f *Follower) apply(source int, page Page) {
	if page.Gap {
		f.cfg.Clear()
	}
	for _, changed := range page.Changed {
		f.cfg.Forget(changed)
	}
	if len(f.positions[source]) >= maxLogs {
		f.positions[source] = nil // the others report a gap
	}
	if f.positions[source] == nil {
		f.positions[source] = Position{}
	}
	f.positions[source][page.Log] = page.Next
}

func (f *Follower) observe() {
	name := attribute.String("follower", f.cfg.Name)
	_, _ = otel.Meter("changefeed").Float64ObservableGauge("doorward_changefeed_age_seconds",
		metric.WithDescription("time since a service last knew all changes of what it keeps of others: it grows while nothing asks, and is 0 before that"),
		metric.WithUnit("s"),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			age := time.Duration(0)
			if !f.polled.IsZero() {
				age = f.cfg.Now().Sub(f.polled)
			}
			o.Observe(age.Seconds(), metric.WithAttributes(name))
			return nil
		}))
}

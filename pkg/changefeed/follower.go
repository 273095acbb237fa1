package changefeed

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"github.com/doorward/doorward/pkg/id"
)

const (
	// pollRetry is how long after a poll that failed, or found a source behind, there is no
	// other one.
	pollRetry = 25 * time.Millisecond

	// maxLogs bounds a position. Replicas come and go, and each has a log.
	maxLogs = 64
)

// Source asks a service for the changes after a position.
type Source func(context.Context, Position) (Page, error)

// FollowerConfig says what a follower keeps current.
type FollowerConfig struct {
	Name          string        // in metrics
	MaxAge        time.Duration // from the start of a poll; its timeout too
	Now           func() time.Time
	Sources       []Source
	Invalidate    func(id.Ref) // drops what was read from a resource
	InvalidateAll func()       // drops everything
}

// Follower keeps answers current that depend on resources of other services.
type Follower struct {
	cfg   FollowerConfig
	polls singleflight.Group

	mu          sync.Mutex
	currentAt   time.Time // when the last poll began that all sources answered
	pollStarted time.Time // when the poll under way began; zero: there is none
	nextPollAt  time.Time // no poll before
	positions   []Position
}

// NewFollower makes a follower.
func NewFollower(cfg FollowerConfig) *Follower {
	f := &Follower{cfg: cfg, positions: make([]Position, len(cfg.Sources))}
	f.registerMetrics()
	return f
}

// Current reports whether what is kept has been current within MaxAge: everything was
// dropped that the sources knew by then to have changed. It polls them where that is
// necessary, and waits for MaxAge at most. While a source is behind or does not answer it
// is false, and its caller asks the service itself.
func (f *Follower) Current(ctx context.Context) bool {
	now := f.cfg.Now()
	if current, pollDue := f.state(now); current || !pollDue {
		return current
	}
	poll := f.polls.DoChan("", func() (any, error) {
		if current, pollDue := f.state(now); !current && pollDue { // another may have ended since
			f.poll(context.WithoutCancel(ctx))
		}
		return nil, nil
	})
	timeout := time.NewTimer(f.cfg.MaxAge)
	defer timeout.Stop()
	select {
	case <-poll:
	case <-timeout.C: // a source that does not heed its context holds up no others
	case <-ctx.Done():
	}
	current, _ := f.state(now)
	return current
}

// state reports whether the last poll is recent enough, and whether another is due or
// under way that may still be in time.
func (f *Follower) state(now time.Time) (current, pollDue bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	hangs := !f.pollStarted.IsZero() && now.Sub(f.pollStarted) >= f.cfg.MaxAge
	return now.Sub(f.currentAt) < f.cfg.MaxAge, !hangs && !now.Before(f.nextPollAt)
}

func (f *Follower) poll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, f.cfg.MaxAge)
	defer cancel()
	began := f.cfg.Now()
	f.mu.Lock()
	f.pollStarted = began
	f.mu.Unlock()
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
	f.pollStarted = time.Time{}
	if err != nil || behind {
		f.nextPollAt = f.cfg.Now().Add(pollRetry)
	} else {
		f.currentAt = began
	}
}

// apply drops what a page says to have changed.
func (f *Follower) apply(source int, page Page) {
	if page.Gap {
		f.cfg.InvalidateAll()
	}
	for _, changed := range page.Changed {
		f.cfg.Invalidate(changed)
	}
	if len(f.positions[source]) >= maxLogs {
		f.positions[source] = nil // the others report a gap
	}
	if f.positions[source] == nil {
		f.positions[source] = Position{}
	}
	f.positions[source][page.Log] = page.Next
}

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
	// pollRetry is the delay after a poll that failed, or whose answer was Behind.
	pollRetry = 25 * time.Millisecond

	// maxLogs bounds the logs of a position. Each replica has a log, and replicas are replaced.
	maxLogs = 64
)

// Source calls a service for the changes after a position.
type Source func(context.Context, Position) (Page, error)

// FollowerConfig describes a follower.
type FollowerConfig struct {
	Name          string        // the label follower of its metrics
	MaxAge        time.Duration // how long a poll is current, from its start; the timeout of a poll too
	Now           func() time.Time
	Sources       []Source
	Invalidate    func(id.Ref) // invalidates the cached answers that depend on a resource
	InvalidateAll func()       // invalidates all cached answers
}

// Follower invalidates cached answers that depend on resources of other services.
type Follower struct {
	cfg   FollowerConfig
	polls singleflight.Group

	mu          sync.Mutex
	currentAt   time.Time // start of the last poll that all sources answered
	pollStarted time.Time // start of the running poll; zero while none runs
	nextPollAt  time.Time // earliest start of the next poll
	positions   []Position
}

// NewFollower makes a follower.
func NewFollower(cfg FollowerConfig) *Follower {
	f := &Follower{cfg: cfg, positions: make([]Position, len(cfg.Sources))}
	f.registerMetrics()
	return f
}

// Current reports whether the cached answers were current within MaxAge: all answers were
// invalidated that depend on changes which the sources knew by then. It polls the sources if
// necessary, and waits for MaxAge at most. It is false while a source is behind or does not answer:
// then the caller must call the service itself.
func (f *Follower) Current(ctx context.Context) bool {
	now := f.cfg.Now()
	if current, pollDue := f.state(now); current || !pollDue {
		return current
	}
	poll := f.polls.DoChan("", func() (any, error) {
		if current, pollDue := f.state(now); !current && pollDue { // another poll may have ended meanwhile
			f.poll(context.WithoutCancel(ctx))
		}
		return nil, nil
	})
	timeout := time.NewTimer(f.cfg.MaxAge)
	defer timeout.Stop()
	select {
	case <-poll:
	case <-timeout.C: // a source may ignore its context
	case <-ctx.Done():
	}
	current, _ := f.state(now)
	return current
}

// state reports whether the last poll is recent enough, and whether another poll is due, or
// runs and may still end in time.
func (f *Follower) state(now time.Time) (current, pollDue bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	hangs := !f.pollStarted.IsZero() && now.Sub(f.pollStarted) >= f.cfg.MaxAge
	return now.Sub(f.currentAt) < f.cfg.MaxAge, !hangs && !now.Before(f.nextPollAt)
}

// poll asks all sources for their changes and applies them.
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
	for i, page := range pages { // also if another source has failed
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

// apply invalidates the answers that depend on the changes of a page.
func (f *Follower) apply(source int, page Page) {
	if page.Gap {
		f.cfg.InvalidateAll()
	}
	for _, changed := range page.Changed {
		f.cfg.Invalidate(changed)
	}
	if len(f.positions[source]) >= maxLogs {
		f.positions[source] = nil // the next polls return a gap
	}
	if f.positions[source] == nil {
		f.positions[source] = Position{}
	}
	f.positions[source][page.Log] = page.Next
}

package cache

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"github.com/doorward/doorward/pkg/id"
)

const (
	// pollInterval is how old a poll may be, from its start, while answers are used. It is the timeout of
	// a poll too. A feed has the changes that were committed 50 ms before (pkg/pg/cache/feed.go), so that
	// a change takes effect within 100 ms.
	pollInterval = 50 * time.Millisecond

	// settleTime is how long after a change was reported a service may still answer from before it: a
	// replica may be notified 50 ms later than the one that has reported the change, and an answer that
	// it has of a third service may be as old again.
	settleTime = 100 * time.Millisecond

	// pollRetry is the delay after a poll that failed, or whose answer was Behind.
	pollRetry = 25 * time.Millisecond

	// maxLogs bounds the logs of a position. Each replica has a log, and replicas are replaced.
	maxLogs = 64
)

// Source calls a service for the changes after a position.
type Source func(context.Context, Position) (Page, error)

// follower polls the logs of other services (feeds), and invalidates what depends on a change.
type follower struct {
	now           func() time.Time
	feeds         []Source
	invalidate    func(id.ID) // invalidates the answers that depend on a resource
	invalidateAll func()

	polls singleflight.Group

	mu          sync.Mutex
	currentAt   time.Time // start of the last poll that all feeds answered
	changedAt   time.Time // when a change was last reported
	pollStarted time.Time // start of the running poll; zero while none runs
	nextPollAt  time.Time // earliest start of the next poll
	positions   []Position
}

// current reports whether the answers were current within pollInterval: all answers were
// invalidated that depend on changes which the feeds knew by then. It polls the feeds if
// necessary, and waits for pollInterval at most. It is false while a feed is behind or does not answer:
// then the service must be asked.
func (f *follower) current(ctx context.Context) bool {
	now := f.now()
	if current, pollDue := f.state(now); current || !pollDue {
		return current
	}
	poll := f.polls.DoChan("", func() (any, error) {
		if current, pollDue := f.state(now); !current && pollDue { // another poll may have ended meanwhile
			f.poll(context.WithoutCancel(ctx))
		}
		return nil, nil
	})
	timeout := time.NewTimer(pollInterval)
	defer timeout.Stop()
	select {
	case <-poll:
	case <-timeout.C: // a feed may ignore its context
	case <-ctx.Done():
	}
	current, _ := f.state(now)
	return current
}

// state reports whether the last poll is recent enough, and whether another poll is due, or
// runs and may still end in time.
func (f *follower) state(now time.Time) (current, pollDue bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	hangs := !f.pollStarted.IsZero() && now.Sub(f.pollStarted) >= pollInterval
	return now.Sub(f.currentAt) < pollInterval, !hangs && !now.Before(f.nextPollAt)
}

// poll asks all feeds for their changes and applies them.
func (f *follower) poll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pollInterval)
	defer cancel()
	began := f.now()
	f.mu.Lock()
	f.pollStarted = began
	f.mu.Unlock()
	pages := make([]Page, len(f.feeds))
	group, ctx := errgroup.WithContext(ctx)
	for i, ask := range f.feeds {
		group.Go(func() (err error) {
			pages[i], err = ask(ctx, f.positions[i])
			return err
		})
	}
	err := group.Wait()
	behind := false
	for i, page := range pages { // also if another feed has failed
		behind = behind || page.Behind
		if page.Log != "" {
			f.apply(i, page)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pollStarted = time.Time{}
	if err != nil || behind {
		f.nextPollAt = f.now().Add(pollRetry)
	} else {
		f.currentAt = began
	}
}

// apply invalidates the answers that depend on the changes of a page.
func (f *follower) apply(feed int, page Page) {
	if page.Gap || len(page.Changed) > 0 {
		f.noteChange()
	}
	if page.Gap {
		f.invalidateAll()
	}
	for _, changed := range page.Changed {
		f.invalidate(changed)
	}
	if len(f.positions[feed]) >= maxLogs {
		f.positions[feed] = nil // the next polls return a gap
	}
	if f.positions[feed] == nil {
		f.positions[feed] = Position{}
	}
	f.positions[feed][page.Log] = page.Next
}

func (f *follower) noteChange() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changedAt = f.now()
}

// unchanged reports whether no change was reported since a time, nor so shortly before it that an answer
// of that time may not show it.
func (f *follower) unchanged(since time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changedAt.Before(since.Add(-settleTime))
}

package cache_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/clocktest"
	"github.com/doorward/doorward/pkg/id"
)

const (
	settle = 100 * time.Millisecond
	poll   = 50 * time.Millisecond
)

// peer is another service with its log of changes.
type peer struct {
	*cache.Answers[string, string]
	clock  clocktest.Clock
	log    *cache.Log
	asked  int
	value  string
	deps   []id.ID
	err    error
	behind bool
	during func() // what happens while it answers
}

var ( // resources
	account, directory, stranger = id.ID{1}, id.ID{2}, id.ID{3}
)

// openPeer returns a peer whose answers are kept, because their feed has been followed for a while.
func openPeer(t *testing.T) *peer {
	t.Helper()
	p := &peer{log: cache.NewLog(), value: "yes", deps: []id.ID{account, directory}}
	p.Answers = cache.NewAnswers[string, string](cache.AnswersConfig{
		Name: "test", Size: 100, Now: p.clock.Now, Feeds: []cache.Source{func(_ context.Context, after cache.Position) (cache.Page, error) {
			if p.behind {
				return cache.Page{Behind: true}, nil
			}
			return p.log.After(after), nil
		}},
	})
	_, _ = p.Peek(t.Context(), "")
	p.clock.Move(settle + 1)
	return p
}

func (p *peer) get(ctx context.Context) (string, error) {
	return p.Get(ctx, "key", func(context.Context) (string, []id.ID, error) {
		p.asked++
		value := p.value
		if p.during != nil {
			p.during()
		}
		return value, p.deps, p.err
	})
}

// want gets the answer, and expects whether the peer is asked.
func (p *peer) want(t *testing.T, what string, asks bool) {
	t.Helper()
	before := p.asked
	got, err := p.get(t.Context())
	if err != nil || got != p.value || (p.asked > before) != asks {
		t.Errorf("%s: the answer is %q, %v, and the peer was asked %d times; asks: %t", what, got, err, p.asked-before, asks)
	}
}

func TestAnAnswerIsKeptWhileNothingThatItDependsOnChanges(t *testing.T) {
	t.Parallel()
	p := openPeer(t)
	p.want(t, "at first", true)
	for range 10 {
		p.clock.Move(poll)
		p.log.Append(stranger)
		p.want(t, "after a change of another resource", false)
	}
	p.clock.Move(time.Minute)
	p.want(t, "after a minute", true)
	p.err = errors.New("refused")
	for changed, name := range map[id.ID]string{account: "account", directory: "directory"} {
		p.log.Append(changed)
		p.clock.Move(poll - 1)
		p.want(t, "shortly after a change of the "+name, false)
		p.clock.Move(1)
		for range 2 { // an error is not kept
			if _, err := p.get(t.Context()); err == nil {
				t.Errorf("after a change of the %s the answer is used", name)
			}
		}
		p.clock.Move(2 * settle)
		refusal := p.err
		p.err = nil
		p.want(t, "after a refusal", true)
		p.err = refusal
	}
}

// Another replica than the one that has reported a change may answer from before the change.
func TestAnAnswerThatWasRequestedShortlyAfterAChangeIsNotKept(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*peer){
		"of a resource":             func(p *peer) { p.log.Append(account) },
		"of a resource, known here": func(p *peer) { p.Invalidate(account) },
		"of unknown resources":      func(p *peer) { p.log.Reset() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := openPeer(t)
			p.clock.Move(poll)
			change(p)
			p.want(t, "after the change", true)
			p.clock.Move(settle)
			p.want(t, "at the end of the time", true)
			p.clock.Move(1)
			p.want(t, "when the change shows everywhere", true)
			p.want(t, "since then", false)
		})
	}
}

// More changes than are remembered count as changes of everything.
func TestAChangeThatIsNoLongerRememberedIsOfEverything(t *testing.T) {
	t.Parallel()
	p := openPeer(t)
	p.Invalidate(account)
	for n := range 5000 {
		p.Invalidate(id.ID{9, byte(n), byte(n >> 8)})
	}
	p.want(t, "after many changes", true)
	p.want(t, "after many changes", true)
	p.clock.Move(settle + 1)
	p.want(t, "when the changes show everywhere", true)
	p.want(t, "since then", false)
}

func TestAnAnswerThatWasOnItsWayWhenItChangedIsNotKept(t *testing.T) {
	t.Parallel()
	p := openPeer(t)
	p.during = func() { p.Invalidate(directory) }
	p.want(t, "at first", true)
	p.during = nil
	p.clock.Move(settle + 1)
	p.want(t, "after the change", true)
	p.want(t, "since then", false)
}

func TestAFeedThatIsBehindMeansToAsk(t *testing.T) {
	t.Parallel()
	p := openPeer(t)
	p.want(t, "at first", true)
	p.behind = true
	p.want(t, "within its time", false)
	for range 3 {
		p.clock.Move(poll)
		p.want(t, "behind", true)
		p.want(t, "behind", true)
	}
	p.log.Append(account)
	p.behind = false
	p.clock.Move(poll)
	p.want(t, "when the change was reported", true)
}

// What a request has ended is not used for the requests of its tenant that follow.
func TestWhatATenantHasEndedIsAskedFor(t *testing.T) {
	t.Parallel()
	p := openPeer(t)
	p.want(t, "at first", true)
	for _, c := range []struct {
		ended caller.IDs
		asks  bool
	}{
		{"", false}, {caller.IDs("").With(stranger), false}, {caller.IDs("").With(stranger).With(directory), true}, {caller.IDs("").With(id.ID{}), true},
	} {
		before := p.asked
		if _, err := p.get(caller.Into(t.Context(), caller.Caller{Ended: c.ended})); err != nil || (p.asked > before) != c.asks {
			t.Errorf("after the end of %x: %v, and the peer was asked: %t", c.ended, err, p.asked > before)
		}
	}
	p.want(t, "for others", false)
}

func TestAnAnswerWithManyDependenciesOrNoneIsNotKept(t *testing.T) {
	t.Parallel()
	p := openPeer(t)
	for n := range 40 {
		p.deps = append(p.deps, id.ID{4, byte(n)})
	}
	p.want(t, "at first", true)
	p.want(t, "again", true)
	p.deps = p.deps[:40]
	p.want(t, "with fewer", true)
	p.want(t, "with fewer", false)
	p.Invalidate(account)
	p.clock.Move(settle + 1)
	p.deps = nil // of a release that does not say what it depends on
	p.want(t, "with none", true)
	p.want(t, "with none", true)
}

func TestUnchangedMeansNoChangeAtAll(t *testing.T) {
	t.Parallel()
	p := openPeer(t)
	asked := p.clock.Now()
	if !p.Unchanged(t.Context(), asked) {
		t.Error("without a change there is one")
	}
	p.clock.Move(poll)
	p.log.Append(stranger)
	if p.Unchanged(t.Context(), asked) || p.Unchanged(t.Context(), asked.Add(poll+settle)) {
		t.Error("after a change there is none")
	}
	if !p.Unchanged(t.Context(), asked.Add(poll+settle+1)) {
		t.Error("when the change shows everywhere there is one")
	}
	p.clock.Move(poll)
	p.behind = true
	if p.Unchanged(t.Context(), p.clock.Now()) {
		t.Error("a feed that is behind knows of no change")
	}
}

// Answers that are not used cost nothing: no feed is polled.
func TestAnIdleProcessDoesNotPoll(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	polls := 0
	answers := cache.NewAnswers[string, string](cache.AnswersConfig{Name: "idle", Size: 10, Now: time.Now,
		Feeds: []cache.Source{func(context.Context, cache.Position) (cache.Page, error) {
			mu.Lock()
			defer mu.Unlock()
			polls++
			return cache.Page{}, nil
		}}})
	_, _ = answers.Peek(t.Context(), "key")
	for began := time.Now(); time.Since(began) < 3*poll; {
		mu.Lock()
		n := polls
		mu.Unlock()
		if n != 1 {
			t.Fatalf("one use polled %d times", n)
		}
	}
}

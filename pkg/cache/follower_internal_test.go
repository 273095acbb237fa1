package cache

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/clocktest"
	"github.com/doorward/doorward/pkg/id"
)

func resource(n byte) id.ID { return id.ID{n} }

func TestALogReportsWhatFollowsAPosition(t *testing.T) {
	t.Parallel()
	log := NewLog()
	first := log.After(nil)
	if !first.Gap || len(first.Changed) != 0 {
		t.Errorf("whoever has read nothing is reported %+v, want a gap", first)
	}
	log.Append(resource(1))
	log.Append(resource(2))
	page := log.After(Position{first.Log: first.Next})
	if page.Gap || !slices.Equal(page.Changed, []id.ID{resource(1), resource(2)}) {
		t.Errorf("after two changes it reports %+v", page)
	}
	if again := log.After(Position{page.Log: page.Next}); again.Gap || len(again.Changed) != 0 {
		t.Errorf("after nothing it reports %+v", again)
	}
	for range 5000 {
		log.Append(resource(3))
	}
	if late := log.After(Position{page.Log: page.Next}); !late.Gap {
		t.Error("more changes than it remembers are no gap")
	}
	now := log.After(nil)
	log.Reset()
	log.Append(resource(4))
	if reset := log.After(Position{now.Log: now.Next}); !reset.Gap || reset.Log == now.Log {
		t.Errorf("after unknown changes it reports %+v, want a gap", reset)
	}
}

// replicas are the logs of two replicas of a service, which are asked in turn.
type replicas struct {
	mu     sync.Mutex
	logs   []*Log
	turn   int
	polls  int
	err    error
	behind bool
	hang   chan struct{} // if any, it answers when that is closed
}

func newReplicas() *replicas {
	return &replicas{logs: []*Log{NewLog(), NewLog()}}
}

func (r *replicas) change(changed id.ID) {
	for _, log := range r.logs {
		log.Append(changed)
	}
}

func (r *replicas) after(_ context.Context, position Position) (Page, error) {
	if r.hang != nil {
		<-r.hang
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.polls++
	switch {
	case r.err != nil:
		return Page{}, r.err
	case r.behind:
		return Page{Behind: true}, nil
	}
	r.turn++
	return r.logs[r.turn%len(r.logs)].After(position), nil
}

// kept is what a follower keeps current.
type kept struct {
	*follower
	clock   clocktest.Clock
	sources []*replicas
	forgot  []id.ID
	clears  int
}

func follow(t *testing.T) *kept {
	t.Helper()
	k := &kept{sources: []*replicas{newReplicas(), newReplicas()}}
	k.follower = &follower{
		now: k.clock.Now, feeds: []Source{k.sources[0].after, k.sources[1].after}, positions: make([]Position, 2),
		invalidate:    func(changed id.ID) { k.forgot = append(k.forgot, changed) },
		invalidateAll: func() { k.clears++ },
	}
	for range 2 { // until it has a position in each log
		k.poll(t)
	}
	return k
}

func (k *kept) poll(t *testing.T) {
	t.Helper()
	k.clock.Move(pollInterval)
	if !k.current(t.Context()) {
		t.Fatal("what is kept is not current")
	}
}

func TestAFollowerForgetsWhatAnyReplicaReports(t *testing.T) {
	t.Parallel()
	k := follow(t)
	clears := k.clears
	for n := byte(1); n <= 20; n++ {
		k.sources[n%2].change(resource(n))
		k.poll(t)
		if !slices.Contains(k.forgot, resource(n)) {
			t.Fatalf("after the change of resource %d it has forgotten %v", n, k.forgot)
		}
	}
	if k.clears != clears {
		t.Errorf("the follower has dropped everything %d times", k.clears-clears)
	}
	k.sources[0].logs[0].Reset()
	k.poll(t)
	k.poll(t)
	if k.clears != clears+1 {
		t.Errorf("after unknown changes it has dropped everything %d times, want once", k.clears-clears)
	}
}

func TestAFollowerPollsAtMostOnceInAWhile(t *testing.T) {
	t.Parallel()
	k := follow(t)
	before := k.sources[0].polls
	k.clock.Move(pollInterval)
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			if !k.current(t.Context()) {
				t.Error("what is kept is not current")
			}
		})
	}
	group.Wait()
	k.clock.Move(pollInterval - 1)
	if !k.current(t.Context()) || k.sources[0].polls != before+1 {
		t.Errorf("51 uses within %s polled %d times", pollInterval, k.sources[0].polls-before)
	}
}

// A source that does not heed its context holds up whoever waits for its poll for MaxAge,
// and nobody after that.
func TestASourceThatHangsIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	k := follow(t)
	k.sources[1].hang = make(chan struct{})
	k.clock.Move(pollInterval)
	if k.current(t.Context()) {
		t.Error("what is kept counts as current")
	}
	k.clock.Move(pollInterval)
	cancelled, cancel := context.WithCancel(t.Context())
	for range 1000 {
		began := time.Now()
		if k.current(cancelled) {
			t.Fatal("what is kept counts as current")
		}
		if time.Since(began) < pollInterval/2 {
			cancel() // one of them has not waited
			break
		}
	}
	if cancelled.Err() == nil {
		t.Error("every use waits for a poll that hangs")
	}
	cancel()
	close(k.sources[1].hang)
	for ended := false; !ended; ended = k.current(t.Context()) { // until the poll has ended
		k.clock.Move(pollInterval)
		runtime.Gosched()
	}
}

// While a source is behind or fails, nothing that is kept may be used; the changes that it did not
// report come with its next answer.
func TestAFollowerIsNotCurrentWhileASourceCannotTell(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(*replicas){
		"it does not answer": func(r *replicas) { r.err = errors.New("the service is unavailable") },
		"it is behind":       func(r *replicas) { r.behind = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := follow(t)
			cut(k.sources[1])
			if !k.current(t.Context()) {
				t.Error("within its age it is not current")
			}
			k.clock.Move(pollInterval)
			for range 3 {
				polls := k.sources[1].polls
				for range 2 {
					if k.current(t.Context()) {
						t.Fatal("what is kept counts as current")
					}
				}
				if k.sources[1].polls != polls+1 {
					t.Errorf("two uses polled %d times", k.sources[1].polls-polls)
				}
				k.clock.Move(25 * time.Millisecond)
			}
			k.sources[0].change(resource(7))
			k.sources[1].change(resource(8))
			k.sources[1].err, k.sources[1].behind = nil, false
			if !k.current(t.Context()) || !slices.Contains(k.forgot, resource(7)) || !slices.Contains(k.forgot, resource(8)) {
				t.Errorf("afterwards it has forgotten %v", k.forgot)
			}
		})
	}
}

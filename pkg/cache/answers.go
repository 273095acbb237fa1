package cache

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
)

const (
	answerMaxAge = time.Minute
	// maxDependencies is the greatest number of resources that a kept answer may depend on.
	maxDependencies = 40
)

// AnswersConfig describes the answers of other services that a service keeps.
type AnswersConfig struct {
	Name string // the label of their metrics
	// Size counts the answers, and the resources that they depend on: some 2 kB for an account that
	// may act through an application.
	Size  int
	Now   func() time.Time
	Feeds []Source // of the services whose resources the answers depend on
}

// Answers keeps answers of other services by key. An answer is used for up to a minute while the feeds
// report no change of what it depends on. While one of them is behind, or fails, each Get asks. Answers
// that are not used cost nothing: then no feed is polled.
//
// An answer may come from a cache of the other service that has not been invalidated yet, though a feed
// has reported the change: an answer that was asked for within 100 ms after such a report is returned,
// but not kept.
type Answers[K comparable, V any] struct {
	cache  *Cache[node[K], answer[V]]
	follow *follower
}

// node is the key of an answer, or a resource that answers depend on.
type node[K comparable] struct {
	key      K
	resource id.ID
}

type answer[V any] struct {
	value     V
	dependsOn []id.ID
}

// NewAnswers returns Answers without an answer.
func NewAnswers[K comparable, V any](cfg AnswersConfig) *Answers[K, V] {
	a := &Answers[K, V]{cache: New(Config[node[K], answer[V]]{
		Name: cfg.Name, Size: cfg.Size, MaxAge: answerMaxAge, Now: cfg.Now, SettleTime: settleTime,
		Weight: func(v answer[V]) int {
			if len(v.dependsOn) == 0 || len(v.dependsOn) > maxDependencies {
				return cfg.Size + 1 // is not kept
			}
			return 1 + len(v.dependsOn)
		},
		DependsOn: func(v answer[V]) []node[K] {
			resources := make([]node[K], len(v.dependsOn))
			for i, of := range v.dependsOn {
				resources[i].resource = of
			}
			return resources
		},
	})}
	a.follow = &follower{
		now: cfg.Now, feeds: cfg.Feeds, positions: make([]Position, len(cfg.Feeds)),
		invalidate:    func(changed id.ID) { a.cache.Invalidate(node[K]{resource: changed}) },
		invalidateAll: a.cache.Clear,
	}
	a.follow.registerMetrics(cfg.Name)
	return a
}

// Peek returns the answer of a key that is kept, if nothing that it depends on has changed, as of at most
// 100 ms ago, nor was just ended by a request of the same tenant (caller.Ended).
func (a *Answers[K, V]) Peek(ctx context.Context, key K) (V, bool) {
	current := a.follow.current(ctx)
	found, ok := a.cache.PeekCurrent(ctx, node[K]{key: key}, func(v answer[V]) bool {
		return current && !caller.Ended(ctx, v.dependsOn...)
	})
	return found.value, ok
}

// Ask asks for the answer of a key, and keeps it. ask returns the resources on which the answer depends.
// An error is not kept.
func (a *Answers[K, V]) Ask(ctx context.Context, key K, ask func(context.Context) (V, []id.ID, error)) (V, error) {
	found, err := a.cache.Refresh(ctx, node[K]{key: key}, func(ctx context.Context) (found answer[V], err error) {
		found.value, found.dependsOn, err = ask(ctx)
		return found, err
	})
	return found.value, err
}

// Get returns the answer that Peek returns, or else that of Ask. Requests for the same answer do not
// share a call: it could have begun before a change that the later request has to see.
func (a *Answers[K, V]) Get(ctx context.Context, key K, ask func(context.Context) (V, []id.ID, error)) (V, error) {
	if found, ok := a.Peek(ctx, key); ok {
		return found, nil
	}
	return a.Ask(ctx, key, ask)
}

// Invalidate is for changes of resources that this process knows before the feeds report them.
func (a *Answers[K, V]) Invalidate(changed ...id.ID) {
	a.follow.noteChange()
	for _, of := range changed {
		a.follow.invalidate(of)
	}
}

// Unchanged reports whether the feeds have reported no change at all since a time, nor in the moment
// before it whose changes an answer of that time may not show.
func (a *Answers[K, V]) Unchanged(ctx context.Context, since time.Time) bool {
	return a.follow.current(ctx) && a.follow.unchanged(since)
}

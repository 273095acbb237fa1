// Package cache has all caches of values that may change, by two rules; the third is of those who write.
//
//   - A service keeps rows of its own while PostgreSQL has shown in the last 50 ms that it has notified
//     this process of every change (Cache, mostly by pkg/pg/cache). Read for each request, they were more
//     than half of a validation of a token: 176 to 196 µs of processor time, with the rows kept 77 to 92
//     (docs/decisions/cached-validations.md).
//   - An answer of another service is kept while that service, asked every 50 ms, reports no change of
//     what the answer depends on (Answers). Asked for each request, the other services were nine tenths
//     of a validation: about 1,800 µs, with the answers kept 180 (docs/decisions/access-answers.md). A
//     service whose report is behind is asked.
//   - What a request has just ended is named by the answer of the service that wrote it, and the gateway
//     names it to the services for 100 ms (caller.Ended): no cache is used for what depends on it. So a
//     client sees its own changes at once. Only what has ended is named: when every change was named for
//     its whole tenant, tenants that write had 0.86 of the rate of validations that they have alone, since
//     then 1.01 (docs/decisions/cached-validations.md).
//
// The two times add up: a change takes effect within 100 ms on every replica, however slow it is.
package cache

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"go.opentelemetry.io/otel/metric"
	"golang.org/x/sync/singleflight"
)

// loadTimeout bounds a load; several callers may wait for the same load.
const loadTimeout = 15 * time.Second

// Config describes a cache.
type Config[K comparable, V any] struct {
	Name   string        // the label cache of its metrics
	Size   int           // bounds the sum of the weights; the least recently used value is evicted first
	MaxAge time.Duration // TTL, from the start of a load
	Now    func() time.Time

	// DependsOn returns the further keys whose invalidation invalidates a value too. It
	// may be nil.
	DependsOn func(V) []K
	// Weight returns how much of Size a value takes. It may be nil: then each value takes one.
	Weight func(V) int
	// Disabled says that the cache stores nothing until Enable is called.
	Disabled bool
	// SettleTime is how long after an invalidation a load may still begin that does not show the
	// change. Its value is returned, but not cached.
	SettleTime time.Duration
}

// Cache is an in-memory cache (LRU) with a bounded size and a maximal age (TTL), whose entries are
// invalidated by key. A value is returned for at most MaxAge after its load began. After the data of a
// key has changed, the caller calls Invalidate: the next Get loads the value again, and the result of a
// load that began before the change is not cached.
type Cache[K comparable, V any] struct {
	cfg            Config[K, V]
	resultLabels   [3]metric.MeasurementOption // miss, hit, stale
	requestCounter metric.Int64Counter

	mu            sync.Mutex
	disabled      bool
	entries       *lru.Cache[K, entry[V]]
	weight        int
	dependents    map[K]map[K]struct{} // by a key, the keys of the values that depend on it
	loads         map[*load[K]]struct{}
	singleflights *singleflight.Group
	invalidatedAt *lru.Cache[K, time.Time] // when keys were last invalidated, for SettleTime
	clearedAt     time.Time                // when all keys were, or keys that invalidatedAt no longer has
}

// maxInvalidations is how many keys invalidatedAt has.
const maxInvalidations = 4096

type entry[V any] struct {
	value     V
	expiresAt time.Time
}

// load is a running load, with the keys that were invalidated meanwhile.
type load[K comparable] struct {
	began          time.Time
	invalidated    map[K]struct{}
	allInvalidated bool // Clear or Enable was called meanwhile
}

// New makes a cache.
func New[K comparable, V any](cfg Config[K, V]) *Cache[K, V] {
	c := &Cache[K, V]{
		cfg: cfg, disabled: cfg.Disabled, dependents: map[K]map[K]struct{}{}, loads: map[*load[K]]struct{}{},
		singleflights: new(singleflight.Group),
	}
	c.entries, _ = lru.NewWithEvict(cfg.Size, c.onEvict) // fails only for a size below one
	c.invalidatedAt, _ = lru.NewWithEvict(maxInvalidations, func(_ K, at time.Time) { c.clearedAt = at })
	c.registerMetrics()
	return c
}

// Get returns the value of a key, and loads it by read where it is not cached. Concurrent callers
// share one load (singleflight), unless it began longer than MaxAge ago. The context of the load is
// that of its first caller, without its cancellation. An error is not cached.
func (c *Cache[K, V]) Get(ctx context.Context, key K, read func(context.Context) (V, error)) (V, error) {
	for {
		asked := c.cfg.Now()
		found, err := c.getOrLoad(ctx, key, read)
		if err != nil || !asked.After(found.expiresAt) {
			return found.value, err
		}
	}
}

// getOrLoad is Get, except that the load that it shares may have begun longer than MaxAge ago.
func (c *Cache[K, V]) getOrLoad(ctx context.Context, key K, read func(context.Context) (V, error)) (entry[V], error) {
	found, ok, flights := c.lookup(key)
	if ok {
		c.requestCounter.Add(ctx, 1, c.resultLabels[1])
		return found, nil
	}
	c.requestCounter.Add(ctx, 1, c.resultLabels[0])
	flight := flights.DoChan(fmt.Sprintf("%#v", key), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTimeout)
		defer cancel()
		l, until := c.beginLoad()
		value, err := read(ctx)
		loaded := entry[V]{value, until}
		c.finishLoad(l, key, loaded, err)
		return loaded, err
	})
	select {
	case got := <-flight:
		loaded, _ := got.Val.(entry[V])
		return loaded, got.Err
	case <-ctx.Done():
		return entry[V]{}, ctx.Err()
	}
}

// Refresh loads the value of a key, cached or not, and caches it, for callers of Peek.
func (c *Cache[K, V]) Refresh(ctx context.Context, key K, read func(context.Context) (V, error)) (V, error) {
	l, until := c.beginLoad()
	value, err := read(ctx)
	c.finishLoad(l, key, entry[V]{value, until}, err)
	return value, err
}

// RefreshStale is Refresh for a value whose cache entry may be stale. It counts as stale in the
// metrics.
func (c *Cache[K, V]) RefreshStale(ctx context.Context, key K, read func(context.Context) (V, error)) (V, error) {
	c.requestCounter.Add(ctx, 1, c.resultLabels[2])
	return c.Refresh(ctx, key, read)
}

// PeekCurrent returns the cached value of a key, and whether it is cached and current. It does not
// load.
func (c *Cache[K, V]) PeekCurrent(ctx context.Context, key K, isCurrent func(V) bool) (V, bool) {
	found, ok := c.Peek(key)
	result := 0
	switch {
	case ok && isCurrent(found):
		result = 1
	case ok:
		result = 2
	}
	c.requestCounter.Add(ctx, 1, c.resultLabels[result])
	return found, result == 1
}

// Peek returns the cached value of a key. It does not load.
func (c *Cache[K, V]) Peek(key K) (V, bool) {
	found, ok, _ := c.lookup(key)
	return found.value, ok
}

// lookup returns the entry of a key, unless it has expired.
func (c *Cache[K, V]) lookup(key K) (entry[V], bool, *singleflight.Group) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.entries.Get(key)
	if ok && !c.cfg.Now().Before(found.expiresAt) {
		c.entries.Remove(key)
		found, ok = entry[V]{}, false
	}
	return found, ok, c.singleflights
}

// beginLoad registers a load, and returns when its value expires.
func (c *Cache[K, V]) beginLoad() (*load[K], time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &load[K]{began: c.cfg.Now(), invalidated: map[K]struct{}{}}
	c.loads[l] = struct{}{}
	return l, l.began.Add(c.cfg.MaxAge)
}

// finishLoad caches the loaded value, unless its key or a key that it depends on was invalidated
// since the load began.
func (c *Cache[K, V]) finishLoad(l *load[K], key K, found entry[V], err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.loads, l)
	if err != nil || c.disabled || l.allInvalidated || c.weigh(found.value) > c.cfg.Size {
		return
	}
	keys := c.keyAndDependencies(key, found.value)
	if slices.ContainsFunc(keys, l.isInvalidated) || c.cfg.SettleTime > 0 && !c.isSettled(l.began, keys) {
		return
	}
	c.entries.Remove(key) // onEvict removes its dependencies too
	c.weight += c.weigh(found.value)
	c.entries.Add(key, found)
	for c.weight > c.cfg.Size {
		c.entries.RemoveOldest()
	}
	for _, k := range keys[1:] {
		if c.dependents[k] == nil {
			c.dependents[k] = map[K]struct{}{}
		}
		c.dependents[k][key] = struct{}{}
	}
}

func (l *load[K]) isInvalidated(key K) bool {
	_, ok := l.invalidated[key]
	return ok
}

// isSettled reports whether none of the keys was invalidated within SettleTime before a time.
func (c *Cache[K, V]) isSettled(began time.Time, keys []K) bool {
	last := c.clearedAt
	for _, k := range keys {
		if at, ok := c.invalidatedAt.Peek(k); ok && at.After(last) {
			last = at
		}
	}
	return last.Before(began.Add(-c.cfg.SettleTime))
}

func (c *Cache[K, V]) weigh(value V) int {
	if c.cfg.Weight == nil {
		return 1
	}
	return c.cfg.Weight(value)
}

// keyAndDependencies returns the key of a value and the keys that it depends on.
func (c *Cache[K, V]) keyAndDependencies(key K, value V) []K {
	keys := []K{key}
	if c.cfg.DependsOn != nil {
		keys = append(keys, c.cfg.DependsOn(value)...)
	}
	return keys
}

// onEvict removes the weight and the dependencies of an entry that is removed. mu is locked.
func (c *Cache[K, V]) onEvict(key K, old entry[V]) {
	c.weight -= c.weigh(old.value)
	for _, k := range c.keyAndDependencies(key, old.value)[1:] {
		delete(c.dependents[k], key)
		if len(c.dependents[k]) == 0 {
			delete(c.dependents, k)
		}
	}
}

// Invalidate removes the value of a key and the values that depend on the key. The results of
// running loads of them are not cached.
func (c *Cache[K, V]) Invalidate(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for l := range c.loads {
		l.invalidated[key] = struct{}{}
	}
	if c.cfg.SettleTime > 0 {
		c.invalidatedAt.Add(key, c.cfg.Now())
	}
	c.singleflights = new(singleflight.Group) // a later Get shares no load that began before the invalidation
	c.entries.Remove(key)
	for dependent := range c.dependents[key] {
		c.entries.Remove(dependent)
	}
}

// Clear invalidates all keys.
func (c *Cache[K, V]) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
}

func (c *Cache[K, V]) clear() {
	for l := range c.loads {
		l.allInvalidated = true
	}
	c.singleflights = new(singleflight.Group)
	c.clearedAt = c.cfg.Now()
	c.entries.Purge()
}

// Enable enables or disables the cache. Either way it clears it.
func (c *Cache[K, V]) Enable(enabled bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.disabled = !enabled
	c.clear()
}

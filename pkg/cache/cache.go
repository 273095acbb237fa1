// Package cache is an in-memory cache, bounded in size and age and invalidated by key. It is
// the only one of the services; the gateway, which has no database, has its own for API keys
// (gateway/apikeycache.go).
//
// A value is served for at most MaxAge after its load began, however long that takes. A caller
// that changes what a key stands for calls Forget: the next Get loads again, and a load that
// began before the change is not kept. Package pg invalidates what PostgreSQL reports.
package cache

import (
	"context"
	"fmt"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"go.opentelemetry.io/otel/metric"
	"golang.org/x/sync/singleflight"
)

// loadTimeout bounds a load, for which several callers may wait.
const loadTimeout = 15 * time.Second

// Config says what a cache holds.
type Config[K comparable, V any] struct {
	Name   string        // in metrics
	Size   int           // bounds the weight of the values; the least recently used goes first
	MaxAge time.Duration // from the start of a load
	Now    func() time.Time

	// DependsOn returns the further keys whose change makes a value stale. It may
	// be nil.
	DependsOn func(V) []K
	// Weight returns how much of Size a value takes. It may be nil: each takes one.
	Weight func(V) int
	// Disabled caches keep nothing until Enable.
	Disabled bool
}

// Cache holds values by key.
type Cache[K comparable, V any] struct {
	cfg            Config[K, V]
	resultLabels   [3]metric.MeasurementOption // miss, hit, stale
	requestCounter metric.Int64Counter

	mu            sync.Mutex
	disabled      bool
	entries       *lru.Cache[K, entry[V]]
	weight        int
	dependents    map[K]map[K]struct{} // a key that others depend on, and those
	loads         map[*load[K]]struct{}
	singleflights *singleflight.Group
}

type entry[V any] struct {
	value     V
	expiresAt time.Time
}

// load is a load under way, with the keys that were forgotten meanwhile.
type load[K comparable] struct {
	invalidated    map[K]struct{}
	allInvalidated bool // everything was
}

// New makes a cache.
func New[K comparable, V any](cfg Config[K, V]) *Cache[K, V] {
	c := &Cache[K, V]{
		cfg: cfg, disabled: cfg.Disabled, dependents: map[K]map[K]struct{}{}, loads: map[*load[K]]struct{}{}, singleflights: new(singleflight.Group),
	}
	c.entries, _ = lru.NewWithEvict(cfg.Size, c.onEvict) // fails only for a size below one
	c.registerMetrics()
	return c
}

// Get returns the value of a key, and loads it where the cache does not hold it.
// Callers that ask at the same time share one load, unless it began longer than MaxAge
// ago. Its context is that of the first without its cancellation. An error is not kept.
func (c *Cache[K, V]) Get(ctx context.Context, key K, read func(context.Context) (V, error)) (V, error) {
	for {
		asked := c.cfg.Now()
		found, err := c.getOrLoad(ctx, key, read)
		if err != nil || !asked.After(found.expiresAt) {
			return found.value, err
		}
	}
}

// getOrLoad is Get, but for the age of a load that it shares.
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

// Refresh loads the value of a key whether or not the cache holds it, for those
// that Peek at it afterwards.
func (c *Cache[K, V]) Refresh(ctx context.Context, key K, read func(context.Context) (V, error)) (V, error) {
	l, until := c.beginLoad()
	value, err := read(ctx)
	c.finishLoad(l, key, entry[V]{value, until}, err)
	return value, err
}

// RefreshStale is Refresh for a value that may be cached and may be stale: it cannot be
// confirmed to be current.
func (c *Cache[K, V]) RefreshStale(ctx context.Context, key K, read func(context.Context) (V, error)) (V, error) {
	c.requestCounter.Add(ctx, 1, c.resultLabels[2])
	return c.Refresh(ctx, key, read)
}

// PeekCurrent returns the value of a key where the cache holds it, and whether it is
// current.
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

// Peek returns the value of a key where the cache holds it.
func (c *Cache[K, V]) Peek(key K) (V, bool) {
	found, ok, _ := c.lookup(key)
	return found.value, ok
}

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

func (c *Cache[K, V]) beginLoad() (*load[K], time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &load[K]{invalidated: map[K]struct{}{}}
	c.loads[l] = struct{}{}
	return l, c.cfg.Now().Add(c.cfg.MaxAge)
}

// finish keeps what was loaded, unless it or what it depends on was forgotten
// since the load began.
func (c *Cache[K, V]) finishLoad(l *load[K], key K, found entry[V], err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.loads, l)
	if err != nil || c.disabled || l.allInvalidated {
		return
	}
	keys := c.keyAndDependencies(key, found.value)
	for _, k := range keys {
		if _, ok := l.invalidated[k]; ok {
			return
		}
	}
	c.entries.Remove(key) // with its dependencies
	c.weight += c.weigh(found.value)
	c.entries.Add(key, found)
	for c.weight > c.cfg.Size {
		c.entries.RemoveOldest()
	}
	if !c.entries.Contains(key) { // it is heavier than all that may be held
		return
	}
	for _, k := range keys[1:] {
		if c.dependents[k] == nil {
			c.dependents[k] = map[K]struct{}{}
		}
		c.dependents[k][key] = struct{}{}
	}
}

func (c *Cache[K, V]) weigh(value V) int {
	if c.cfg.Weight == nil {
		return 1
	}
	return c.cfg.Weight(value)
}

// keysOf returns the key of a value and those that it depends on.
func (c *Cache[K, V]) keyAndDependencies(key K, value V) []K {
	keys := []K{key}
	if c.cfg.DependsOn != nil {
		keys = append(keys, c.cfg.DependsOn(value)...)
	}
	return keys
}

// evicted is called with the lock held.
func (c *Cache[K, V]) onEvict(key K, old entry[V]) {
	c.weight -= c.weigh(old.value)
	for _, k := range c.keyAndDependencies(key, old.value)[1:] {
		delete(c.dependents[k], key)
		if len(c.dependents[k]) == 0 {
			delete(c.dependents, k)
		}
	}
}

// Forget drops what is held under a key and what depends on it, also what is
// being loaded.
func (c *Cache[K, V]) Invalidate(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for l := range c.loads {
		l.invalidated[key] = struct{}{}
	}
	c.singleflights = new(singleflight.Group) // a Get from now on shares no load that began before
	c.entries.Remove(key)
	for dependent := range c.dependents[key] {
		c.entries.Remove(dependent)
	}
}

// Clear drops everything, also what is being loaded.
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
	c.entries.Purge()
}

// Enable lets the cache keep values, or keeps it from doing so. Either way it
// begins empty.
func (c *Cache[K, V]) Enable(enabled bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.disabled = !enabled
	c.clear()
}

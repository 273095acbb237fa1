package oauth

import (
	"context"
	"sync"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/oauth/store"
)

const (
	// keyLifetime is how long a process uses a key that it has read, and the answer
	// that its account is an administrator: a change by another process takes effect
	// after that (docs/interface/authentication.md#what-a-key-may-do).
	keyLifetime = 100 * time.Millisecond
	// keyCapacity limits the memory: a few hundred bytes each.
	keyCapacity = 4096
)

// cache holds what was read of API keys for keyLifetime.
type cache[K comparable, V any] struct {
	now func() time.Time

	mu      sync.Mutex
	drops   uint64
	entries map[K]entry[V]
}

type entry[V any] struct {
	value   V
	expires time.Time
}

// reading is when the lookup of a value began.
type reading struct {
	at    time.Time
	drops uint64
}

func newCache[K comparable, V any](now func() time.Time) *cache[K, V] {
	return &cache[K, V]{now: now, entries: map[K]entry[V]{}}
}

func (c *cache[K, V]) get(name K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.entries[name]
	return found.value, ok && c.now().Before(found.expires)
}

// read begins the lookup of a value for put.
func (c *cache[K, V]) read() reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	return reading{c.now(), c.drops}
}

// put stores a value, unless an entry was dropped since the lookup began: it might
// be that one. A full cache is emptied.
func (c *cache[K, V]) put(name K, value V, read reading) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if read.drops != c.drops {
		return
	}
	if len(c.entries) >= keyCapacity {
		clear(c.entries)
	}
	c.entries[name] = entry[V]{value, read.at.Add(keyLifetime)}
}

func (c *cache[K, V]) drop(name K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drops++
	delete(c.entries, name)
}

// keyName is a key within its tenant.
type keyName struct {
	tenant id.ID
	key    string
}

// forget drops a key that this process has changed.
func (s *Service) forget(tenant id.ID, key string) {
	s.keys.drop(keyName{tenant, key})
	s.signers.drop(key)
	s.administrators.drop(key)
}

// signingKey returns a key of the tenant as it was at most keyLifetime ago, or
// apierr.NotFound.
func (s *Service) signingKey(ctx context.Context, tenant id.ID, key string) (store.Key, error) {
	if !isKeyID(key) {
		return store.Key{}, apierr.NotFound
	}
	name := keyName{tenant, key}
	if k, ok := s.keys.get(name); ok {
		return k, nil
	}
	read := s.keys.read()
	k, err := s.Key(ctx, tenant, key)
	if err == nil {
		s.keys.put(name, k, read)
	}
	return k, err
}

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
	// keyLifetime bounds how long a process goes on with a key that another
	// one disabled or deleted.
	keyLifetime = time.Second
	// keyCapacity bounds the memory: a few hundred bytes each.
	keyCapacity = 4096
)

// cache holds what was read of API keys for a moment, so that it is not read
// again and again.
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

// reading is the moment when the lookup of a value began.
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

// read begins the lookup of a value that will be put.
func (c *cache[K, V]) read() reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	return reading{c.now(), c.drops}
}

// put keeps a value from the moment when it was read, unless something was
// dropped since: it might be that. A full cache begins anew: what is still
// needed is back at once.
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

// forget makes this process look at a key again that it changed.
func (s *Service) forget(tenant id.ID, key string) {
	s.keys.drop(keyName{tenant, key})
	s.signers.drop(key)
	s.administrators.drop(key)
}

// signingKey gives a key of the tenant as it was at most keyLifetime ago, or
// apierr.NotFound. It never looks outside the tenant.
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

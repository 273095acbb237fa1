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

// keyCache holds unsealed keys for a moment, so that the validation of a token
// does not read its key again and again.
type keyCache struct {
	now func() time.Time

	mu      sync.Mutex
	entries map[keyName]keyEntry
}

type keyName struct {
	tenant id.ID
	key    string
}

type keyEntry struct {
	key     store.Key
	expires time.Time
}

func newKeyCache(now func() time.Time) *keyCache {
	return &keyCache{now: now, entries: map[keyName]keyEntry{}}
}

func (c *keyCache) get(tenant id.ID, key string) (store.Key, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry, ok := c.entries[keyName{tenant, key}]
	return entry.key, ok && c.now().Before(entry.expires)
}

// put keeps a key from the moment when it was read. A full cache begins anew:
// what is still needed is back at once.
func (c *keyCache) put(k store.Key, read time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries) >= keyCapacity {
		clear(c.entries)
	}
	c.entries[keyName{k.TenantID, k.ID}] = keyEntry{k, read.Add(keyLifetime)}
}

func (c *keyCache) drop(tenant id.ID, key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, keyName{tenant, key})
}

// signingKey gives a key of the tenant as it was at most keyLifetime ago, or
// apierr.NotFound. It never looks outside the tenant.
func (s *Service) signingKey(ctx context.Context, tenant id.ID, key string) (store.Key, error) {
	if !isKeyID(key) {
		return store.Key{}, apierr.NotFound
	}
	if k, ok := s.keys.get(tenant, key); ok {
		return k, nil
	}
	read := s.now()
	k, err := s.Key(ctx, tenant, key)
	if err == nil {
		s.keys.put(k, read)
	}
	return k, err
}

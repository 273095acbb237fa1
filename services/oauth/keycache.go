package oauth

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/oauth/store"
)

const (
	// keyMaxAge is how long a process uses a key that it has read, and the answer
	// that its account is an administrator: a change by another process takes effect
	// after that (docs/interface/authentication.md#what-a-key-may-do).
	keyMaxAge = 100 * time.Millisecond
	// keyCacheSize is in keys, a few hundred bytes each.
	keyCacheSize = 4096
)

// keyName is a key within its tenant.
type keyName struct {
	tenant id.ID
	key    string
}

func newKeyCache[K comparable, V any](name string, now func() time.Time) *cache.Cache[K, V] {
	return cache.New(cache.Config[K, V]{Name: "oauth." + name, Size: keyCacheSize, MaxAge: keyMaxAge, Now: now})
}

// forgetKey drops what the caches hold of a key that this process changed.
func (s *Service) forgetKey(tenant id.ID, key string) {
	s.keys.Invalidate(keyName{tenant, key})
	s.signers.Invalidate(key)
	s.administrators.Invalidate(key)
}

// signingKey returns a key of the tenant as it was at most keyMaxAge ago, or
// apierr.NotFound. It never looks outside the tenant.
func (s *Service) signingKey(ctx context.Context, tenant id.ID, key string) (store.Key, error) {
	if !isKeyID(key) {
		return store.Key{}, apierr.NotFound
	}
	return s.keys.Get(ctx, keyName{tenant, key}, func(ctx context.Context) (store.Key, error) { return s.Key(ctx, tenant, key) })
}

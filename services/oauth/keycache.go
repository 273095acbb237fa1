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
	// keyMaxAge is the age of a cache entry: of an API key, and of the answer that its
	// account is an administrator. A key that another process disables or deletes is
	// refused after that time (docs/interface/authentication.md#what-a-key-may-do).
	keyMaxAge = 100 * time.Millisecond
	// keyCacheSize is in keys, a few hundred bytes each.
	keyCacheSize = 4096
)

// tenantKeyID is the id of an API key, which is looked up in one tenant only.
type tenantKeyID struct {
	tenant id.ID
	keyID  string
}

func newKeyCache[K comparable, V any](name string, now func() time.Time) *cache.Cache[K, V] {
	return cache.New(cache.Config[K, V]{Name: "oauth." + name, Size: keyCacheSize, MaxAge: keyMaxAge, Now: now})
}

// invalidateKey removes an API key that this process has changed from its caches.
func (s *Service) invalidateKey(tenant id.ID, keyID string) {
	s.signingKeys.Invalidate(tenantKeyID{tenant, keyID})
	s.keysByID.Invalidate(keyID)
	s.administratorKeys.Invalidate(keyID)
}

// signingKey returns an API key of the tenant with its secret, at most keyMaxAge old, or
// apierr.NotFound. It never returns a key of another tenant.
func (s *Service) signingKey(ctx context.Context, tenant id.ID, keyID string) (store.APIKey, error) {
	if !isAPIKeyID(keyID) {
		return store.APIKey{}, apierr.NotFound
	}
	return s.signingKeys.Get(ctx, tenantKeyID{tenant, keyID}, func(ctx context.Context) (store.APIKey, error) {
		return s.APIKey(ctx, tenant, keyID)
	})
}

package pg

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
)

// tenantQuota limits how many connections of a pool one tenant uses at a time (noisy neighbour,
// fairness between tenants), so that its slow queries leave connections to other tenants.
// Further queries of the tenant wait in their order. Queries without a tenant are not limited.
type tenantQuota struct {
	limit   int // connections of one tenant; 0: no limit
	mu      sync.Mutex
	used    map[id.ID]int
	waiting map[id.ID][]chan struct{} // no empty lists; closing a channel hands a connection over
	waited  time.Duration             // sum of all waits
}

// newTenantQuota leaves a quarter of the pool to other tenants, at least one connection.
func newTenantQuota(connections int32) tenantQuota {
	return tenantQuota{limit: max(1, int(connections)-max(1, int(connections)/4)), used: map[id.ID]int{}, waiting: map[id.ID][]chan struct{}{}}
}

// acquire waits until the tenant of the context may use a connection. After nil the caller must call
// release with the returned tenant.
func (s *tenantQuota) acquire(ctx context.Context) (tenant id.ID, err error) {
	tenant = caller.From(ctx).Tenant
	if tenant.IsZero() || s.limit == 0 {
		return tenant, nil
	}
	s.mu.Lock()
	if s.used[tenant] < s.limit {
		s.used[tenant]++
		s.mu.Unlock()
		return tenant, nil
	}
	turn := make(chan struct{})
	s.waiting[tenant] = append(s.waiting[tenant], turn)
	s.mu.Unlock()
	defer s.addWait(time.Now())
	select {
	case <-turn:
		return tenant, nil
	case <-ctx.Done():
		s.abandon(tenant, turn)
		return tenant, ctx.Err()
	}
}

func (s *tenantQuota) addWait(since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waited += time.Since(since)
}

// waitTime returns how long all queries together have waited.
func (s *tenantQuota) waitTime() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waited
}

// release releases a connection of a tenant, or hands it over to the next waiting query.
func (s *tenantQuota) release(tenant id.ID) {
	if tenant.IsZero() || s.limit == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if waiting := s.waiting[tenant]; len(waiting) > 0 {
		s.remove(tenant, 0)
		close(waiting[0])
		return
	}
	if s.used[tenant]--; s.used[tenant] == 0 {
		delete(s.used, tenant)
	}
}

// abandon ends a wait, or releases the connection that was handed over meanwhile.
func (s *tenantQuota) abandon(tenant id.ID, turn chan struct{}) {
	s.mu.Lock()
	n := slices.Index(s.waiting[tenant], turn)
	if n >= 0 {
		s.remove(tenant, n)
	}
	s.mu.Unlock()
	if n < 0 {
		s.release(tenant)
	}
}

// remove removes the n-th waiting query of a tenant.
func (s *tenantQuota) remove(tenant id.ID, n int) {
	s.waiting[tenant] = append(s.waiting[tenant][:n:n], s.waiting[tenant][n+1:]...)
	if len(s.waiting[tenant]) == 0 {
		delete(s.waiting, tenant)
	}
}

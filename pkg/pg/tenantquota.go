package pg

import (
	"context"
	"math"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/fairqueue"
	"github.com/doorward/doorward/pkg/id"
)

// tenantQuota limits how many connections of a pool one tenant uses at a time (noisy neighbour,
// fairness between tenants), so that its slow queries leave connections to other tenants.
// Further queries of the tenant wait in their order. Queries without a tenant are not limited.
type tenantQuota struct {
	queue  *fairqueue.Queue
	waited atomic.Int64 // nanoseconds, sum of all waits
}

// newTenantQuota leaves a quarter of the pool to other tenants, at least one connection. The queue has
// no limit of all connections: that is the pool's, which has queries without a tenant too.
func newTenantQuota(connections int32) *tenantQuota {
	limit := max(1, int(connections)-max(1, int(connections)/4))
	return &tenantQuota{queue: fairqueue.New(math.MaxInt, limit, math.MaxInt)}
}

// acquire waits until the tenant of the context may use a connection. After nil the caller must call
// release with the returned tenant.
func (q *tenantQuota) acquire(ctx context.Context) (tenant id.ID, err error) {
	tenant = caller.From(ctx).Tenant
	if tenant.IsZero() {
		return tenant, nil
	}
	started := time.Now()
	err = q.queue.Acquire(ctx, tenant)
	q.waited.Add(int64(time.Since(started)))
	return tenant, err
}

// waitTime returns how long all queries together have waited.
func (q *tenantQuota) waitTime() time.Duration { return time.Duration(q.waited.Load()) }

// release releases a connection of a tenant.
func (q *tenantQuota) release(tenant id.ID) {
	if !tenant.IsZero() {
		q.queue.Release(tenant)
	}
}

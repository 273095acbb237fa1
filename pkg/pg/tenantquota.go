package pg

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

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

// Query runs a query outside a transaction. The caller must close the rows, or read them to
// their end.
func (db *DB) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	shard, _, err := db.shardOf(ctx)
	if err != nil {
		return nil, err
	}
	return shard.query(ctx, sql, args...)
}

func (db *DB) query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	tenant, err := db.tenantQuota.acquire(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := db.Pool.Query(ctx, sql, args...)
	if err != nil {
		db.tenantQuota.release(tenant)
		return rows, err
	}
	return &quotaRows{Rows: rows, release: sync.OnceFunc(func() { db.tenantQuota.release(tenant) })}, nil
}

// Exec runs a statement outside a transaction. It does not wait for a tenant that is being moved:
// use InTx to write for a tenant.
func (db *DB) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	shard, _, err := db.shardOf(ctx)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	return shard.exec(ctx, sql, args...)
}

func (db *DB) exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	tenant, err := db.tenantQuota.acquire(ctx)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	defer db.tenantQuota.release(tenant)
	tag, err := db.Pool.Exec(ctx, sql, args...)
	if tag.RowsAffected() > 0 {
		db.writes.Add(1)
	}
	return tag, err
}

func (db *DB) sendBatch(ctx context.Context, batch *Batch) error {
	shard, _, err := db.shardOf(ctx)
	if err != nil {
		return err
	}
	return shard.send(ctx, batch)
}

func (db *DB) send(ctx context.Context, batch *Batch) error {
	tenant, err := db.tenantQuota.acquire(ctx)
	if err != nil {
		return err
	}
	defer db.tenantQuota.release(tenant)
	return db.SendBatch(ctx, batch).Close()
}

// quotaRows release the quota after the last row.
type quotaRows struct {
	pgx.Rows
	release func()
}

func (r *quotaRows) Next() bool {
	more := r.Rows.Next()
	if !more {
		r.release()
	}
	return more
}

func (r *quotaRows) Close() {
	r.Rows.Close()
	r.release()
}

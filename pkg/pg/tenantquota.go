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

// shares limits how many connections of a pool one tenant uses at a time, so that
// its slow queries leave some to the other tenants. Further queries of the tenant
// wait, the oldest first. What runs for no tenant has no limit.
type tenantQuota struct {
	limit   int // connections of one tenant; 0 for any number
	mu      sync.Mutex
	used    map[id.ID]int
	waiting map[id.ID][]chan struct{} // never empty ones; closing one hands a connection over
	waited  time.Duration             // by all that waited
}

// newShares leaves a quarter of the pool to other tenants, at least one connection.
func newTenantQuota(connections int32) tenantQuota {
	return tenantQuota{limit: max(1, int(connections)-max(1, int(connections)/4)), used: map[id.ID]int{}, waiting: map[id.ID][]chan struct{}{}}
}

// acquire waits until the tenant of the context may use a connection. Each call
// without an error is followed by one of release with the same tenant.
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

// waitTime returns how long queries have waited for a share, all together.
func (s *tenantQuota) waitTime() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waited
}

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

// abandon ends a wait, or releases what it was handed meanwhile.
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

// remove takes the n-th out of those that wait.
func (s *tenantQuota) remove(tenant id.ID, n int) {
	s.waiting[tenant] = append(s.waiting[tenant][:n:n], s.waiting[tenant][n+1:]...)
	if len(s.waiting[tenant]) == 0 {
		delete(s.waiting, tenant)
	}
}

// Query runs a query outside a transaction. The rows have to be closed, or read to
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

// Exec runs a statement outside a transaction. It does not wait for a tenant that is
// being moved: what is written for a tenant goes through InTx.
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

// sharedRows end the use of a connection with the last row.
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

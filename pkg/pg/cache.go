package pg

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
)

const (
	cacheRows   = 50_000 // a few hundred bytes each
	cacheMaxAge = time.Minute
)

// Cache caches the rows of resources that are read with every request and hardly ever change (the
// cache itself: pkg/cache). Cache invalidation: the transaction that makes a change calls
// InvalidateAfter, its process sees the change at once, and with the commit it notifies a channel of
// the tenant and the id that changed, to which all replicas listen (listen.go). While Listen does not
// run or its connection is lost, the cache is disabled.
type Cache[Row any] struct {
	*cache.Cache[id.Ref, []Row]
	db           *DB
	channel      string
	query        string
	dependsOn    func(Row) id.Ref // may be nil
	maxStaleness time.Duration
}

// NewCache makes a cache, which is disabled until Listen of the database runs. The query reads
// the rows of one resource: $1 is its tenant, $2 its id. dependsOn returns a further resource whose
// change invalidates a row, or the zero Ref; it may be nil. The name is the label of the metrics.
// Caches of the same tables share a channel.
func NewCache[Row any](db *DB, name, channelName, query string, dependsOn func(Row) id.Ref) *Cache[Row] {
	return NewCacheWithin(db, Bounds{Rows: cacheRows, MaxAge: cacheMaxAge}, name, channelName, query, dependsOn)
}

// Bounds are the bounds of a cache: the number of rows, and their age.
type Bounds struct {
	Rows   int
	MaxAge time.Duration
	// MaxStaleness is how long after its commit a change may not be visible, even if the
	// connection of the notifications hangs. If PostgreSQL has not confirmed for that long that no
	// notification is pending, rows are read from the database. Zero means that rows may be stale
	// until a broken connection is noticed.
	MaxStaleness time.Duration
}

// maxStaleness is half of the 100 ms within which a change takes effect on every replica. The other
// half is for another service that caches answers of this service.
const maxStaleness = 50 * time.Millisecond

// FreshBounds are the bounds for rows that decide about access: a revocation must take effect at once.
func FreshBounds(rows int) Bounds {
	return Bounds{Rows: rows, MaxAge: cacheMaxAge, MaxStaleness: maxStaleness}
}

// NewCacheWithin is NewCache with other bounds.
func NewCacheWithin[Row any](db *DB, bounds Bounds, name, channelName, query string, dependsOn func(Row) id.Ref) *Cache[Row] {
	cfg := cache.Config[id.Ref, []Row]{
		Name: name, Size: bounds.Rows, MaxAge: bounds.MaxAge, Now: time.Now, Disabled: true,
		Weight: func(rows []Row) int { return 1 + len(rows) },
	}
	if dependsOn != nil {
		cfg.DependsOn = func(rows []Row) []id.Ref {
			var refs []id.Ref
			for _, row := range rows {
				if ref := dependsOn(row); !ref.ID.IsZero() {
					refs = append(refs, ref)
				}
			}
			return refs
		}
	}
	c := &Cache[Row]{cache.New(cfg), db, channelName, query, dependsOn, bounds.MaxStaleness}
	db.register(channelName, c.Enable, c.invalidate)
	return c
}

// One returns the row of a resource, or apierr.NotFound. Callers share the row and must not change it.
func (c *Cache[Row]) One(ctx context.Context, ref id.Ref) (Row, error) {
	return c.OneBy(ctx, ref, c.read(ref))
}

// OneBy is One with another query than that of the cache.
func (c *Cache[Row]) OneBy(ctx context.Context, ref id.Ref, read func(context.Context) ([]Row, error)) (Row, error) {
	rows, err := c.allBy(ctx, ref, read)
	return firstRow(rows, err)
}

func firstRow[Row any](rows []Row, err error) (Row, error) {
	if err == nil && len(rows) == 0 {
		err = apierr.NotFound
	}
	if err != nil {
		var none Row
		return none, err
	}
	return rows[0], nil
}

// All returns the rows of a resource. Callers share the rows and must not change them.
func (c *Cache[Row]) All(ctx context.Context, ref id.Ref) ([]Row, error) {
	return c.allBy(ctx, ref, c.read(ref))
}

func (c *Cache[Row]) allBy(ctx context.Context, ref id.Ref, read func(context.Context) ([]Row, error)) ([]Row, error) {
	if c.maxStaleness == 0 {
		rows, err := c.Get(ctx, ref, read)
		return rows, Error(err)
	}
	if !c.db.listener.isCurrent(c.maxStaleness) || caller.Ended(ctx, ref.ID) {
		return c.RefreshStale(ctx, ref, read)
	}
	rows, err := c.Get(ctx, ref, read)
	if err == nil && c.dependsOn != nil && slices.ContainsFunc(rows, func(r Row) bool { return caller.Ended(ctx, c.dependsOn(r).ID) }) {
		return c.RefreshStale(ctx, ref, read)
	}
	return rows, Error(err)
}

// InvalidateAfter invalidates the rows of a resource when the transaction that changes it has
// ended: in this process at once, in the others, and in their feeds, by a notification that
// PostgreSQL sends with the commit. If the rows decide about access (FreshBounds), the answer to the
// request names the resource (caller.End), and it is read for the requests of the tenant that follow.
func (c *Cache[Row]) InvalidateAfter(tx interface{ invalidateAfter(invalidation) }, ref id.Ref) {
	tx.invalidateAfter(invalidation{c.channel, ref, c.Invalidate, c.maxStaleness > 0})
}

func (c *Cache[Row]) read(ref id.Ref) func(context.Context) ([]Row, error) {
	return func(ctx context.Context) ([]Row, error) { return All[Row](ctx, c.db, c.query, ref.Tenant, ref.ID) }
}

// Read returns the row of a resource from the database, or apierr.NotFound, and caches it.
func (c *Cache[Row]) Read(ctx context.Context, ref id.Ref) (Row, error) {
	rows, err := c.Refresh(ctx, ref, c.read(ref))
	return firstRow(rows, err)
}

// invalidate invalidates the resource that a notification names: "<tenant> <id>". Any other payload,
// such as that of too many changes, clears the cache.
func (c *Cache[Row]) invalidate(payload string) {
	if changed, named := parseChanged(payload); named {
		c.Invalidate(changed)
	} else {
		c.Clear()
	}
}

// formatChanged returns the payload of the notification that names a resource.
func formatChanged(ref id.Ref) string {
	return pgtype.UUID{Bytes: ref.Tenant, Valid: true}.String() + " " + pgtype.UUID{Bytes: ref.ID, Valid: true}.String()
}

// parseChanged parses the payload of a notification; named is false if it names no resource.
func parseChanged(payload string) (changed id.Ref, named bool) {
	tenant, resource, _ := strings.Cut(payload, " ")
	var of, to pgtype.UUID
	if of.Scan(tenant) != nil || to.Scan(resource) != nil {
		return id.Ref{}, false
	}
	return id.Ref{Tenant: of.Bytes, ID: to.Bytes}, true
}

// Package cache keeps rows of a service's own tables while PostgreSQL has shown that it has notified the
// process of every change, the first of the three rules of pkg/cache. Feed tells other services of the same
// changes, for the second.
//
// Read for each request, the rows were more than half of a validation of a token: 176 to 196 µs of
// processor time, with the rows kept 77 to 92 (docs/decisions/cached-validations.md). The connection that
// listens is pinged (pkg/pg/listen), so that it bounds how stale a row is even if the connection hangs.
package cache

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
	"github.com/doorward/doorward/pkg/pg"
)

const (
	size   = 50_000 // rows, a few hundred bytes each
	maxAge = time.Minute
)

// Cache caches the rows of resources that are read with every request and hardly ever change (the
// cache itself: pkg/cache). Cache invalidation: the transaction that makes a change calls
// InvalidateAfter, its process sees the change at once, and with the commit it notifies a channel of
// the tenant and the id that changed, to which all replicas listen (pkg/pg/listen). While Listen of the
// database does not run or its connection is lost, the cache is disabled.
type Cache[Row any] struct {
	*cache.Cache[id.Ref, []Row]
	db           *pg.DB
	channel      string
	query        string
	dependsOn    func(Row) id.Ref // may be nil
	maxStaleness time.Duration
}

// New makes a cache, which is disabled until Listen of the database runs. The query reads
// the rows of one resource: $1 is its tenant, $2 its id. dependsOn returns a further resource whose
// change invalidates a row, or the zero Ref; it may be nil. The name is the label of the metrics.
// Caches of the same tables share a channel.
func New[Row any](db *pg.DB, name, channelName, query string, dependsOn func(Row) id.Ref) *Cache[Row] {
	return NewWithin(db, Bounds{Rows: size, MaxAge: maxAge}, name, channelName, query, dependsOn)
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
	return Bounds{Rows: rows, MaxAge: maxAge, MaxStaleness: maxStaleness}
}

// NewWithin is New with other bounds.
func NewWithin[Row any](db *pg.DB, bounds Bounds, name, channelName, query string,
	dependsOn func(Row) id.Ref) *Cache[Row] {
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
	db.OnNotify(allChannel, c.invalidate) // listened to before the cache is enabled
	db.Subscribe(channelName, c.Enable, c.invalidate)
	return c
}

// allChannel is the channel of changes to any rows.
const allChannel = "cache_all"

// ClearAfter clears the caches and resets the feeds of all services of a database with the commit, for a transaction
// that writes rows past the stores: an import. A cache may also have it that a row is not there.
func ClearAfter(tx Transaction) { tx.Notify(allChannel, "") }

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
	var none Row
	if err != nil {
		return none, err
	}
	if len(rows) == 0 {
		return none, apierr.NotFound
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
		return rows, pg.Error(err)
	}
	if !c.db.NotifiedWithin(c.maxStaleness) || caller.Ended(ctx, ref.ID) {
		return c.RefreshStale(ctx, ref, read)
	}
	rows, err := c.Get(ctx, ref, read)
	if err != nil {
		return nil, pg.Error(err)
	}
	if c.dependsOn != nil && slices.ContainsFunc(rows, func(r Row) bool {
		return caller.Ended(ctx, c.dependsOn(r).ID)
	}) {
		return c.RefreshStale(ctx, ref, read)
	}
	return rows, nil
}

// InvalidateAfter invalidates the rows of a resource when the transaction that changes it has
// ended: in this process at once, in the others, and in their feeds, by a notification that
// PostgreSQL sends with the commit. If the rows decide about access (FreshBounds), the answer to the
// request names the resource (caller.End), and it is read for the requests of the tenant that follow.
func (c *Cache[Row]) InvalidateAfter(tx Transaction, ref id.Ref) {
	tx.Notify(c.channel, formatChanged(ref))
	tx.OnEnd(func(ctx context.Context, committed bool) {
		c.Invalidate(ref)
		if committed && c.maxStaleness > 0 {
			caller.End(ctx, ref.Tenant, ref.ID)
		}
	})
}

// Transaction is what InvalidateAfter uses of a *pg.Tx, in which a store may have embedded it.
type Transaction interface {
	Notify(channel, payload string)
	OnEnd(fn func(ctx context.Context, committed bool))
}

func (c *Cache[Row]) read(ref id.Ref) func(context.Context) ([]Row, error) {
	return func(ctx context.Context) ([]Row, error) { return pg.All[Row](ctx, c.db, c.query, ref.Tenant, ref.ID) }
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

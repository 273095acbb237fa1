// Package tenantsize measures how much a service stores of a tenant, for operators (docs/operations.md#tenants).
package tenantsize

import (
	"context"
	"slices"
	"time"

	"github.com/doorward/doorward/pkg/api/sizeapi"
	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

const (
	// keep is how long a size is used again: to count the rows of a large tenant takes seconds.
	keep = time.Hour
	// maxKept bounds the sizes that are kept.
	maxKept = 10_000
)

// Sizer measures tenants in the schema of a service.
type Sizer struct {
	db   *pg.DB
	kept *cache.Cache[id.ID, sizeapi.Size]
}

var _ sizeapi.API = (*Sizer)(nil)

// New makes the sizer of a service.
func New(db *pg.DB, now func() time.Time) *Sizer {
	return &Sizer{db: db, kept: cache.New(cache.Config[id.ID, sizeapi.Size]{
		Name: "tenantSizes", Size: maxKept, MaxAge: keep, Now: now,
	})}
}

// Sizes returns how much the service stores of tenants, as of at most an hour ago. Those that are not kept are measured
// together.
func (s *Sizer) Sizes(ctx context.Context, in sizeapi.Tenants) (out sizeapi.Sizes, err error) {
	missing := slices.DeleteFunc(slices.Clone(in.IDs), func(tenant id.ID) bool {
		_, known := s.kept.Peek(tenant)
		return known
	})
	measured := map[id.ID]sizeapi.Size{}
	if len(missing) > 0 {
		if measured, err = Measure(ctx, s.db, missing); err != nil {
			return out, err
		}
	}
	for _, tenant := range in.IDs {
		size, err := s.kept.Get(ctx, tenant, func(ctx context.Context) (sizeapi.Size, error) {
			if size, ok := measured[tenant]; ok {
				return size, nil
			}
			again, err := Measure(ctx, s.db, []id.ID{tenant}) // it has expired since it was looked for
			return again[tenant], err
		})
		if err != nil {
			return out, err
		}
		out.Sizes = append(out.Sizes, size)
	}
	return out, nil
}

// Measure counts the rows of tenants in each table of a schema, and estimates their bytes from the size of the tables.
func Measure(ctx context.Context, db *pg.DB, tenants []id.ID) (map[id.ID]sizeapi.Size, error) {
	tables, err := db.TenantTables(ctx)
	if err != nil {
		return nil, err
	}
	sizes := map[id.ID]sizeapi.Size{}
	for _, tenant := range tenants {
		sizes[tenant] = sizeapi.Size{Rows: map[string]int64{}}
	}
	type part struct {
		TenantID    id.ID
		Rows, Bytes int64
	}
	for _, table := range tables {
		// A table that was never analyzed has no estimate of its rows: then a row counts as 200 bytes.
		parts, err := pg.All[part](ctx, db, `SELECT tenant_id, count(*) AS rows, (count(*) * (
				SELECT CASE WHEN c.reltuples > 0 THEN pg_total_relation_size(c.oid) / c.reltuples ELSE 200 END
				FROM pg_class c WHERE c.oid = $2::text::regclass))::bigint AS bytes
			FROM `+table.Name+` WHERE tenant_id = ANY ($1) GROUP BY tenant_id`, pg.CustomPlan, tenants, table.Name)
		if err != nil {
			return nil, err
		}
		for _, p := range parts {
			size := sizes[p.TenantID]
			size.Bytes += p.Bytes
			size.Rows[table.Name] = p.Rows
			sizes[p.TenantID] = size
		}
	}
	return sizes, nil
}

// Package tenantpurge deletes the rows of deleted tenants in the schema of a service
// (docs/operations.md#a-tenant-is-deleted). Each service has its worker, which asks the directory service for the
// deleted tenants.
package tenantpurge

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/purge"
	"github.com/doorward/doorward/pkg/purge/purgesql"
)

const (
	interval = time.Minute
	// slice is how many rows one transaction deletes.
	slice = 1000
	// overlap is how long passes go on after a tenant is done, in PostgreSQL's form. What had begun before may write
	// rows still: a handler of an event works a minute at most, a request less. What begins later finds the tenant
	// done.
	overlap = "10 minutes"
)

// Kept are the tables whose rows stay: that of the tenants, which keeps keys and ids, and those of events, which are
// sent still, and deleted by their age.
var Kept = []string{"tenants", "outbox", "seen_events"}

// Deleted returns the deleted tenants: directoryapi.API.DeletedTenants.
type Deleted func(context.Context, directoryapi.Empty) (directoryapi.DeletedTenants, error)

// Worker returns the worker that deletes the rows of deleted tenants until its ctx ends. After a kill the next pass
// goes on.
func Worker(db *pg.DB, deleted Deleted) func(context.Context) error {
	return purge.Every(interval, "purge of deleted tenants failed, retrying", func(ctx context.Context) error {
		return Purge(ctx, db, deleted)
	})
}

// Purge does one pass. A tenant is done when a pass finds no row of it: then consumers skip its events (package
// outbox), and only the passes of the next minutes look for rows of what had begun before (overlap).
func Purge(ctx context.Context, db *pg.DB, deleted Deleted) error {
	all, err := deleted(ctx, directoryapi.Empty{})
	if err != nil || len(all.IDs) == 0 {
		return err
	}
	left, err := unfinished(ctx, db, all.IDs)
	if err != nil || len(left) == 0 {
		return err
	}
	tables, err := db.TenantTables(ctx)
	if err != nil {
		return err
	}
	slices.Reverse(tables) // those that refer to others first
	for _, tenant := range left {
		if err := purgeTenant(caller.WithTenant(ctx, tenant), db, tables, tenant); err != nil {
			return err
		}
	}
	return nil
}

// unfinished returns the tenants of which there may be rows.
func unfinished(ctx context.Context, db *pg.DB, deleted []id.ID) ([]id.ID, error) {
	return pg.Values[id.ID](ctx, db, `SELECT d.id FROM unnest($1::uuid[]) AS d (id) WHERE NOT EXISTS
		(SELECT 1 FROM purged_tenants p WHERE p.id = d.id AND p.purged_at < now() - $2::interval)`, deleted, overlap)
}

func purgeTenant(ctx context.Context, db *pg.DB, tables []pg.TenantTable, tenant id.ID) error {
	var total int64
	for _, table := range tables {
		if slices.Contains(Kept, table.Name) {
			continue
		}
		rows, err := purgeTable(ctx, db, table, tenant)
		if err != nil {
			return err
		}
		total += rows
	}
	if total > 0 {
		return nil
	}
	_, err := pg.Exec(ctx, db, `INSERT INTO purged_tenants (id) VALUES ($1) ON CONFLICT DO NOTHING`, tenant)
	return err
}

// purgeTable deletes the rows of a tenant in slices, each in a transaction of its own. Where another process purges the
// schema, it leaves the rest to it.
func purgeTable(ctx context.Context, db *pg.DB, table pg.TenantTable, tenant id.ID) (total int64, err error) {
	key := strings.Join(table.Primary, ", ")
	query := `DELETE FROM ` + table.Name + ` WHERE tenant_id = $1 AND (` + key + `) IN (
		SELECT ` + key + ` FROM ` + table.Name + ` WHERE tenant_id = $1 LIMIT $2)`
	for rows := int64(slice); rows == slice; total += rows {
		rows = 0
		err := db.InTx(ctx, func(tx *pg.Tx) error {
			free, err := purgesql.Lock(ctx, tx)
			if err == nil && free {
				rows, err = pg.Exec(ctx, tx, query, tenant, slice)
			}
			if err == nil && !free {
				total++ // the other process is not done
			}
			return err
		})
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

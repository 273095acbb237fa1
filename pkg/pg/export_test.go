package pg

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
)

// Writes returns how many writes the worker of Analyze knows of.
func Writes(db *DB) int64 { return db.writes.Load() }

// DeleteIn deletes the rows of a tenant from a table of a shard that it has left at a time.
func (db *DB) DeleteIn(ctx context.Context, shard, table string, tenant id.ID, closed time.Time) error {
	return db.shardNamed(shard).deleteTenant(ctx, TenantTable{Name: table}, tenant, closed)
}

package store

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// Removal is a directory that is gone and whose accounts and groups are not.
type Removal struct {
	TenantID    id.ID
	DirectoryID id.ID
	CreatedAt   time.Time
}

// RemoveLeft deletes at most limit accounts and as many groups that a deleted
// directory has left, with all that hangs on them, and gives their number: 0
// when nothing is left of any for now. Replicas take different directories. One
// is done with when it was deleted before settled: until then, accounts may come
// whose creation had begun.
func (tx *Tx) RemoveLeft(ctx context.Context, limit int, settled time.Time) (int64, error) {
	r, err := pg.One[Removal](ctx, tx, `SELECT tenant_id, directory_id, created_at FROM directory_removals ORDER BY created_at LIMIT 1 FOR UPDATE SKIP LOCKED`)
	if errors.Is(err, apierr.NotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	total := int64(0)
	for _, table := range []string{"accounts", "groups"} {
		n, err := pg.Exec(ctx, tx, `WITH gone AS (
				DELETE FROM `+table+` WHERE tenant_id = $1 AND id IN (
					SELECT id FROM `+table+` WHERE tenant_id = $1 AND directory_id = $2 LIMIT $3) RETURNING id
			), data AS (
				DELETE FROM custom_data WHERE tenant_id = $1 AND owner_id IN (SELECT id FROM gone)
			)
			SELECT FROM gone`, r.TenantID, r.DirectoryID, limit)
		if err != nil {
			return 0, err
		}
		total += n
	}
	if total == 0 && r.CreatedAt.Before(settled) {
		_, err := pg.Exec(ctx, tx, `DELETE FROM directory_removals WHERE tenant_id = $1 AND directory_id = $2`, r.TenantID, r.DirectoryID)
		return 1, err // there may be another
	}
	return total, nil
}

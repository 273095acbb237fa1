package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// Removal is a directory that is gone and whose accounts and groups are not.
type Removal struct {
	TenantID    id.ID
	DirectoryID id.ID
	CreatedAt   time.Time
}

// NextRemoval returns a directory of any tenant that has left something, or that was
// deleted before before: no account of it can come any more. Replicas are given
// different ones; it returns apierr.NotFound when there is none for now.
func (tx *Tx) NextRemoval(ctx context.Context, before time.Time) (Removal, error) {
	return pg.One[Removal](ctx, tx, `SELECT r.tenant_id, r.directory_id, r.created_at FROM directory_removals r
		WHERE r.created_at < $1
			OR EXISTS (SELECT FROM accounts a WHERE a.tenant_id = r.tenant_id AND a.directory_id = r.directory_id)
			OR EXISTS (SELECT FROM groups g WHERE g.tenant_id = r.tenant_id AND g.directory_id = r.directory_id)
		ORDER BY r.created_at LIMIT 1 FOR UPDATE SKIP LOCKED`, before)
}

// RemoveAccounts deletes at most limit of the accounts that a deleted directory has left, with
// all that belongs to them, and returns their ids.
func (tx *Tx) RemoveAccounts(ctx context.Context, r Removal, limit int) ([]id.ID, error) {
	return tx.removeLeft(ctx, "accounts", r, limit)
}

// RemoveGroups is RemoveAccounts for groups.
func (tx *Tx) RemoveGroups(ctx context.Context, r Removal, limit int) ([]id.ID, error) {
	return tx.removeLeft(ctx, "groups", r, limit)
}

// EndRemoval deletes the record of a directory that has left nothing, if it was deleted before
// before, and returns the number of those that it forgot.
func (tx *Tx) EndRemoval(ctx context.Context, r Removal, before time.Time) (int64, error) {
	return pg.Exec(ctx, tx, `DELETE FROM directory_removals WHERE tenant_id = $1 AND directory_id = $2 AND created_at < $3`,
		r.TenantID, r.DirectoryID, before)
}

func (tx *Tx) removeLeft(ctx context.Context, table string, r Removal, limit int) ([]id.ID, error) {
	return pg.Values[id.ID](ctx, tx, `WITH gone AS (
			DELETE FROM `+table+` WHERE tenant_id = $1 AND id IN (
				SELECT id FROM `+table+` WHERE tenant_id = $1 AND directory_id = $2 LIMIT $3) RETURNING id
		), data AS (
			DELETE FROM custom_data WHERE tenant_id = $1 AND owner_id IN (SELECT id FROM gone)
		)
		SELECT id FROM gone`, r.TenantID, r.DirectoryID, limit)
}

package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// DirectoryRemoval is the record of a deleted directory, of which accounts and groups may remain.
type DirectoryRemoval struct {
	TenantID    id.ID
	DirectoryID id.ID
	CreatedAt   time.Time
}

// NextDirectoryRemoval returns and locks the record of a deleted directory of any tenant of which
// accounts or groups remain, or that was deleted before a time after which no account of it can be
// inserted any more. It returns apierr.NotFound when there is none now.
func (tx *Tx) NextDirectoryRemoval(ctx context.Context, before time.Time) (DirectoryRemoval, error) {
	return pg.One[DirectoryRemoval](ctx, tx, `SELECT r.tenant_id, r.directory_id, r.created_at FROM directory_removals r
		WHERE r.created_at < $1
			OR EXISTS (SELECT 1 FROM accounts a WHERE a.tenant_id = r.tenant_id AND a.directory_id = r.directory_id)
			OR EXISTS (SELECT 1 FROM groups g WHERE g.tenant_id = r.tenant_id AND g.directory_id = r.directory_id)
		ORDER BY r.created_at LIMIT 1 FOR UPDATE`, before)
}

// DeleteRemainingAccounts deletes at most limit of the accounts that remain of a deleted
// directory, with all that belongs to them, and returns their ids. They have had no Access since
// the directory was deleted, so that this changes none.
func (tx *Tx) DeleteRemainingAccounts(ctx context.Context, r DirectoryRemoval, limit int) ([]id.ID, error) {
	selected, err := pg.Values[id.ID](ctx, tx,
		`SELECT id FROM accounts WHERE tenant_id = $1 AND directory_id = $2 LIMIT $3 FOR UPDATE`,
		r.TenantID, r.DirectoryID, limit)
	if err != nil || len(selected) == 0 {
		return nil, err
	}
	ended, err := tx.deleteAccounts(ctx, r.TenantID, selected)
	ids := make([]id.ID, len(ended))
	for i, account := range ended {
		ids[i] = account.ID
	}
	return ids, err
}

// DeleteRemainingGroups is DeleteRemainingAccounts for groups.
func (tx *Tx) DeleteRemainingGroups(ctx context.Context, r DirectoryRemoval, limit int) ([]id.ID, error) {
	return pg.Values[id.ID](ctx, tx, `WITH gone AS (
			DELETE FROM groups WHERE tenant_id = $1 AND id IN (
				SELECT id FROM groups WHERE tenant_id = $1 AND directory_id = $2 LIMIT $3) RETURNING id
		), data AS (
			DELETE FROM custom_data WHERE tenant_id = $1 AND owner_id IN (SELECT id FROM gone)
		)
		SELECT id FROM gone`, r.TenantID, r.DirectoryID, limit)
}

// DeleteDirectoryRemoval deletes the record of a directory of which nothing remains, if the
// directory was deleted before a time, and returns the number of deleted records.
func (tx *Tx) DeleteDirectoryRemoval(ctx context.Context, r DirectoryRemoval, before time.Time) (int64, error) {
	return pg.Exec(ctx, tx, `DELETE FROM directory_removals
		WHERE tenant_id = $1 AND directory_id = $2 AND created_at < $3`, r.TenantID, r.DirectoryID, before)
}

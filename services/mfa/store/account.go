package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// EnsureAccount adds the row of an account, unless there is one, and locks the row.
func (tx *Tx) EnsureAccount(ctx context.Context, tenant, account, directory id.ID) error {
	_, err := pg.Exec(ctx, tx, `INSERT INTO accounts (tenant_id, id, directory_id) VALUES ($1, $2, $3)
		ON CONFLICT (tenant_id, id) DO UPDATE SET directory_id = excluded.directory_id`, tenant, account, directory)
	return err
}

// LockAccount locks the row of an account against other changes of its phones, factors and
// challenges. It returns apierr.NotFound for an account that has no row here.
func (tx *Tx) LockAccount(ctx context.Context, tenant, account id.ID) error {
	_, err := pg.Value[id.ID](ctx, tx, `SELECT id FROM accounts WHERE tenant_id = $1 AND id = $2 FOR UPDATE`, tenant,
		account)
	return err
}

// CountEnrolled returns how many factors and how many phones an account has. The caller must
// have locked the account, so that no other request adds one meanwhile.
func (tx *Tx) CountEnrolled(ctx context.Context, tenant, account id.ID) (factors, phones int, err error) {
	factors, err = pg.Value[int](ctx, tx, `SELECT count(*) FROM factors WHERE tenant_id = $1 AND account_id = $2`,
		tenant, account)
	if err != nil {
		return 0, 0, err
	}
	phones, err = pg.Value[int](ctx, tx, `SELECT count(*) FROM phones WHERE tenant_id = $1 AND account_id = $2`, tenant,
		account)
	return factors, phones, err
}

// DeleteAccounts deletes at most limit accounts, which are owners themselves or are in a directory
// that is one, with their phones, factors and challenges, and returns their number.
func (tx *Tx) DeleteAccounts(ctx context.Context, tenant id.ID, owners []id.ID, limit int) (int64, error) {
	return pg.Exec(ctx, tx, `DELETE FROM accounts WHERE tenant_id = $1 AND id IN (
		SELECT id FROM accounts WHERE tenant_id = $1 AND (id = ANY ($2) OR directory_id = ANY ($2)) LIMIT $3)`, tenant,
		owners, limit)
}

// Removal records that an account or a directory was deleted, until the purge has repeated
// the deletion here.
type Removal struct {
	TenantID id.ID
	OwnerID  id.ID
}

// InsertRemovals records the deletion of accounts or directories.
func (tx *Tx) InsertRemovals(ctx context.Context, tenant id.ID, owners []id.ID, now time.Time) error {
	_, err := pg.Exec(ctx, tx, `INSERT INTO removals (tenant_id, owner_id, created_at)
		SELECT DISTINCT $1::uuid, owner.id, $3::timestamptz FROM unnest($2::uuid[]) AS owner (id)
		ON CONFLICT (tenant_id, owner_id) DO UPDATE SET created_at = excluded.created_at`, tenant, owners, now)
	return err
}

// Removals returns at most limit accounts and directories that were deleted before a
// time.
func (s *Store) Removals(ctx context.Context, before time.Time, limit int) ([]Removal, error) {
	return pg.All[Removal](ctx, s.db, `SELECT tenant_id, owner_id FROM removals WHERE created_at < $1
		ORDER BY created_at LIMIT $2`, before, limit)
}

// DeleteRemovals deletes the records of deletions.
func (tx *Tx) DeleteRemovals(ctx context.Context, tenant id.ID, owners []id.ID) error {
	_, err := pg.Exec(ctx, tx, `DELETE FROM removals WHERE tenant_id = $1 AND owner_id = ANY ($2)`, tenant, owners)
	return err
}

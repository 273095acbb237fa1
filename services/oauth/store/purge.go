package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/pg"
)

// ExpiringTable is a table whose rows have no effect when they have expired.
type ExpiringTable struct {
	table string
	key   string // columns of the primary key after tenant_id
}

// ExpiringTables are the tables to purge. The first two have the order of TokenKinds.
var ExpiringTables = []ExpiringTable{
	{Refresh.table(), "id"},
	{Access.table(), "id"},
	{"spent_assertions", "jti_digest"},
	{"digest_nonces", "key_id, nonce"},
	{"password_changes", "account_id"},
}

// PurgeResult is the result of one batch of a purge.
type PurgeResult struct {
	Rows int64     // that were deleted
	Last time.Time // the greatest expiry of these rows
}

// DeleteExpired deletes at most limit rows that expired from one time to another, the oldest
// first. It skips rows that another replica purges at the same time. A batch that starts at
// Last of the batch before it does not read the index entries of deleted rows again, which
// stay until a vacuum: all batches cost the same.
//
// Each row is looked up by its key: otherwise the planner would read the whole table for
// every batch while that has less than some million rows.
func (tx *Tx) DeleteExpired(ctx context.Context, of ExpiringTable, from, before time.Time, limit int) (PurgeResult, error) {
	if _, err := pg.Exec(ctx, tx, `SELECT set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off',
		true)`); err != nil {
		return PurgeResult{}, err
	}
	return pg.One[PurgeResult](ctx, tx, `WITH deleted AS (
		DELETE FROM `+of.table+` WHERE (tenant_id, `+of.key+`) IN
			(SELECT tenant_id, `+of.key+` FROM `+of.table+` WHERE expires_at >= $1 AND expires_at < $2
			ORDER BY expires_at LIMIT $3 FOR UPDATE SKIP LOCKED)
		RETURNING expires_at)
		SELECT count(*) AS rows, coalesce(max(expires_at), $1) AS last FROM deleted`, from, before, limit)
}

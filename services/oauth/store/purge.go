package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/pg"
)

// Expiring is a table whose rows are of no use once they have expired.
type Expiring struct {
	table string
	key   string // beside the tenant
}

// Expired are the tables to purge, in the order of Kinds.
var Expired = []Expiring{
	{Refresh.table(), "id"},
	{Access.table(), "id"},
	{"spent_assertions", "jti_digest"},
	{"digest_nonces", "key_id, nonce"},
	{"password_changes", "account_id"},
}

// Purged is what a purge has done: how many rows went, and when the last of them
// had expired.
type Purged struct {
	Rows int64
	Last time.Time
}

// Purge removes at most limit rows that expired between two times, the oldest
// first. Rows that another replica purges at the same moment are left to it. A
// purge that begins where the one before it ended does not go again over what is
// left of its rows in the index, until a vacuum, and so costs the same.
//
// Each row is looked up by its key: the planner would rather read the whole
// table for every batch while that has less than some million rows.
func (tx *Tx) Purge(ctx context.Context, of Expiring, from, before time.Time, limit int) (Purged, error) {
	if _, err := pg.Exec(ctx, tx, `SELECT set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off',
		true)`); err != nil {
		return Purged{}, err
	}
	return pg.One[Purged](ctx, tx, `WITH gone AS (
		DELETE FROM `+of.table+` WHERE (tenant_id, `+of.key+`) IN
			(SELECT tenant_id, `+of.key+` FROM `+of.table+` WHERE expires_at >= $1 AND expires_at < $2
			ORDER BY expires_at LIMIT $3 FOR UPDATE SKIP LOCKED)
		RETURNING expires_at)
		SELECT count(*) AS rows, coalesce(max(expires_at), $1) AS last FROM gone`, from, before, limit)
}

package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// Nonce is a nonce that a request was signed with, by an API key.
type Nonce struct {
	TenantID id.ID
	KeyID    string
	Nonce    string
	SeenAt   time.Time
}

// UseNonce notes that a nonce was seen, and reports false when it was seen
// after a time already, or when its key is not enabled now. It is the one write
// outside a Tx: every signed request waits for it, and a single statement is
// its own transaction in one round trip.
func (s *Store) UseNonce(ctx context.Context, n Nonce, after time.Time) (bool, error) {
	used, err := pg.Exec(ctx, s.db, `INSERT INTO digest_nonces AS n (tenant_id, key_id, nonce, seen_at)
		SELECT k.tenant_id, k.id, $3, $4 FROM api_keys k WHERE k.tenant_id = $1 AND k.id = $2 AND k.status = 'ENABLED'
		ON CONFLICT (tenant_id, key_id, nonce) DO UPDATE SET seen_at = excluded.seen_at WHERE n.seen_at < $5`,
		n.TenantID, n.KeyID, n.Nonce, n.SeenAt, after)
	return used == 1, err
}

// PurgeNonces removes at most limit nonces that were seen before a time, the
// oldest first, and gives their number. Rows that another replica purges at the
// same moment are left to it.
func (tx *Tx) PurgeNonces(ctx context.Context, before time.Time, limit int) (int64, error) {
	return pg.Exec(ctx, tx, `DELETE FROM digest_nonces WHERE (tenant_id, key_id, nonce) IN
		(SELECT tenant_id, key_id, nonce FROM digest_nonces WHERE seen_at < $1 ORDER BY seen_at LIMIT $2 FOR UPDATE SKIP LOCKED)`, before, limit)
}

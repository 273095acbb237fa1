package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// Nonce is a nonce that a request was signed with, by an API key.
type Nonce struct {
	TenantID  id.ID
	KeyID     string
	Nonce     string
	ExpiresAt time.Time // until when it is good for no other request
}

// UseNonce notes that a nonce was seen, and reports false when one that has not
// expired was seen already, or when its key is not enabled now. It is the one
// write outside a Tx: every signed request waits for it, and a single statement
// is its own transaction in one round trip.
func (s *Store) UseNonce(ctx context.Context, n Nonce, now time.Time) (bool, error) {
	used, err := pg.Exec(ctx, s.db, `INSERT INTO digest_nonces AS n (tenant_id, key_id, nonce, expires_at)
		SELECT k.tenant_id, k.id, $3, $4 FROM api_keys k WHERE k.tenant_id = $1 AND k.id = $2 AND k.status = 'ENABLED'
		ON CONFLICT (tenant_id, key_id, nonce) DO UPDATE SET expires_at = excluded.expires_at WHERE n.expires_at < $5`,
		n.TenantID, n.KeyID, n.Nonce, n.ExpiresAt, now)
	return used == 1, err
}

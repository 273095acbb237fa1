package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// Nonce is the nonce of a request that was signed with an API key.
type Nonce struct {
	TenantID id.ID
	KeyID    string
	Nonce    string
}

// UseNonces records nonces in one statement, one that is in the list twice once. It
// returns those that were not recorded, or have expired, and whose key is enabled;
// they are there once the transaction has committed. The order of the rows keeps
// two statements with the same nonces from waiting for each other.
func (tx *Tx) UseNonces(_ context.Context, list []Nonce, now, expiresAt time.Time) (used *[]Nonce) {
	tenants, keys, nonces := make([]id.ID, len(list)), make([]string, len(list)), make([]string, len(list))
	for i, n := range list {
		tenants[i], keys[i], nonces[i] = n.TenantID, n.KeyID, n.Nonce
	}
	used = new([]Nonce)
	pg.QueueReturning(tx, used, `INSERT INTO digest_nonces AS n (tenant_id, key_id, nonce, expires_at)
		SELECT DISTINCT k.tenant_id, k.id, u.nonce, $4::timestamptz
		FROM unnest($1::uuid[], $2::text[], $3::text[]) AS u (tenant_id, key_id, nonce)
		JOIN api_keys k ON k.tenant_id = u.tenant_id AND k.id = u.key_id WHERE k.status = 'ENABLED' ORDER BY k.tenant_id, k.id, u.nonce
		ON CONFLICT (tenant_id, key_id, nonce) DO UPDATE SET expires_at = excluded.expires_at WHERE n.expires_at < $5
		RETURNING n.tenant_id, n.key_id, n.nonce`, tenants, keys, nonces, expiresAt, now)
	return used
}

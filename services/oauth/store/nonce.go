package store

import (
	"bytes"
	"cmp"
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// Nonce is the nonce of a request that was signed with an API key (SAuthc1, replay
// protection). The table is nonces, because SAuthc1 is a digest scheme; it is not HTTP
// Digest authentication.
type Nonce struct {
	TenantID id.ID
	KeyID    string
	Nonce    string
}

// Compare orders nonces, so that concurrent statements with the same nonces lock them in one
// order: no deadlock.
func (n Nonce) Compare(other Nonce) int {
	return cmp.Or(bytes.Compare(n.TenantID[:], other.TenantID[:]), cmp.Compare(n.KeyID, other.KeyID),
		cmp.Compare(n.Nonce, other.Nonce))
}

// UseNonces records nonces, which must be sorted and without duplicates, in one statement.
// used has the nonces that were new, or whose earlier use has expired, and whose API key is
// enabled; it is filled when the transaction commits. The API key is looked up by a
// sub-select for each row: for a join the planner would read the whole table api_keys while
// that has only some thousand rows. The arrays are sub-selects, so that the planner does not
// see their lengths and make a new plan for each.
func (tx *Tx) UseNonces(_ context.Context, list []Nonce, now, expiresAt time.Time) (used *[]Nonce) {
	tenants, keys, nonces := make([]id.ID, len(list)), make([]string, len(list)), make([]string, len(list))
	for i, n := range list {
		tenants[i], keys[i], nonces[i] = n.TenantID, n.KeyID, n.Nonce
	}
	used = new([]Nonce)
	pg.QueueReturning(tx, used, `INSERT INTO nonces AS n (tenant_id, key_id, nonce, expires_at)
		SELECT u.tenant_id, u.key_id, u.nonce, $4::timestamptz
		FROM unnest((SELECT $1::uuid[]), (SELECT $2::text[]), (SELECT $3::text[])) AS u (tenant_id, key_id, nonce)
		WHERE (SELECT k.status FROM api_keys k WHERE k.tenant_id = u.tenant_id AND k.id = u.key_id) = 'ENABLED'
		ON CONFLICT (tenant_id, key_id, nonce) DO UPDATE SET expires_at = excluded.expires_at WHERE n.expires_at < $5
		RETURNING n.tenant_id, n.key_id, n.nonce`, tenants, keys, nonces, expiresAt, now)
	return used
}

package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
)

// Nonce is the nonce of a request that was signed with an API key.
type Nonce struct {
	TenantID  id.ID
	KeyID     string
	Nonce     string
	ExpiresAt time.Time // no other request may have it before
}

// UseNonce records a nonce. The transaction fails with apierr.NotFound if it was recorded already
// and has not expired, or if its key is not enabled.
func (tx *Tx) UseNonce(_ context.Context, n Nonce, now time.Time) error {
	tx.QueueChange(`INSERT INTO digest_nonces AS n (tenant_id, key_id, nonce, expires_at)
		SELECT k.tenant_id, k.id, $3, $4 FROM api_keys k WHERE k.tenant_id = $1 AND k.id = $2 AND k.status = 'ENABLED'
		ON CONFLICT (tenant_id, key_id, nonce) DO UPDATE SET expires_at = excluded.expires_at WHERE n.expires_at < $5`,
		n.TenantID, n.KeyID, n.Nonce, n.ExpiresAt, now)
	return nil
}

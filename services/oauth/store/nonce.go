package store

import (
	"time"

	"github.com/doorward/doorward/pkg/id"
)

// Nonce is a nonce that a request was signed with, by an API key.
type Nonce struct {
	TenantID  id.ID
	KeyID     string
	Nonce     string
	ExpiresAt time.Time // until when it is good for no other request
}

// UseNonce records a nonce. The transaction fails with apierr.NotFound where one
// that has not expired was recorded already, and where its key is not enabled now.
func (tx *Tx) UseNonce(n Nonce, now time.Time) {
	tx.QueueChange(`INSERT INTO digest_nonces AS n (tenant_id, key_id, nonce, expires_at)
		SELECT k.tenant_id, k.id, $3, $4 FROM api_keys k WHERE k.tenant_id = $1 AND k.id = $2 AND k.status = 'ENABLED'
		ON CONFLICT (tenant_id, key_id, nonce) DO UPDATE SET expires_at = excluded.expires_at WHERE n.expires_at < $5`,
		n.TenantID, n.KeyID, n.Nonce, n.ExpiresAt, now)
}

package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// SAMLRelayKey returns the encrypted key that signs a tenant's default relay states, or
// apierr.NotFound where none was created yet.
func (s *Store) SAMLRelayKey(ctx context.Context, tenant id.ID) ([]byte, error) {
	return pg.Value[[]byte](ctx, s.db, `SELECT key_sealed FROM saml_relay_keys WHERE tenant_id = $1`, tenant)
}

// InsertSAMLRelayKeyIfAbsent stores the encrypted key of a tenant, unless the tenant has a key.
func (tx *Tx) InsertSAMLRelayKeyIfAbsent(ctx context.Context, tenant id.ID, sealed []byte, now time.Time) error {
	_, err := pg.Exec(ctx, tx, `INSERT INTO saml_relay_keys (tenant_id, key_sealed, created_at) VALUES ($1, $2, $3)
		ON CONFLICT DO NOTHING`, tenant, sealed, now)
	return err
}

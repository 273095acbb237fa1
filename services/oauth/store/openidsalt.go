package store

import (
	"context"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
)

// OpenIDSalt returns the salt of the pairwise subjects of a tenant, or apierr.NotFound before its first use.
func (s *Store) OpenIDSalt(ctx context.Context, tenant id.ID) (secure.Secret, error) {
	return pg.Value[secure.Secret](ctx, s.db, `SELECT salt FROM openid_salts WHERE tenant_id = $1`, tenant)
}

// InsertOpenIDSalt adds the salt of a tenant, unless it has one.
func (tx *Tx) InsertOpenIDSalt(tenant id.ID, salt secure.Secret) {
	tx.Queue(`INSERT INTO openid_salts (tenant_id, salt) VALUES ($1, $2) ON CONFLICT DO NOTHING`, tenant, salt.Reveal())
}

package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
)

// ConsumeAssertion records that the assertion with a jti was used (single use), until it
// expires. A jti that was used before is apierr.Exists.
func (tx *Tx) ConsumeAssertion(ctx context.Context, tenant id.ID, jti string, expires time.Time) error {
	_, err := pg.Exec(ctx, tx, `INSERT INTO consumed_assertions (tenant_id, jti_digest, expires_at) VALUES ($1, $2, $3)`,
		tenant, secure.Digest(secure.Secret(jti)), expires)
	return err
}

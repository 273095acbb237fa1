package store

import (
	"context"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// SetPassword writes the hash of a new password.
func (tx *Tx) SetPassword(ctx context.Context, tenant, account id.ID, hash string) error {
	return pg.MustChange(ctx, tx, `UPDATE accounts SET password_hash = $3 WHERE tenant_id = $1 AND id = $2`, tenant, account, hash)
}

// ReplacePassword writes another hash of the same password, unless the password
// was changed meanwhile.
func (tx *Tx) ReplacePassword(ctx context.Context, tenant, account id.ID, old, hash string) error {
	_, err := pg.Exec(ctx, tx, `UPDATE accounts SET password_hash = $4 WHERE tenant_id = $1 AND id = $2 AND password_hash = $3`, tenant, account, old, hash)
	return err
}

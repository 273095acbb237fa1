package store

import (
	"context"
	"errors"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// NewPassword is a new password as it is to be stored.
type NewPassword struct {
	Hash       string
	KeepFormer int    // number of former hashes that the account keeps (password history)
	Replaces   string // with KeepFormer above 0, the present hash that it may replace; empty: no password
}

// ErrPasswordChanged means that the present password of an account is not the one that a new
// password may replace: it was changed in between.
var ErrPasswordChanged = errors.New("store: the password was changed meanwhile")

// PasswordHashes returns the newest password hashes of an account, at most count, beginning with
// the present one.
func (s *Store) PasswordHashes(ctx context.Context, tenant, account id.ID, count int) ([]string, error) {
	entries, err := pg.All[struct{ PasswordHash string }](ctx, s.db, `SELECT password_hash FROM (
			SELECT password_hash, NULL AS position FROM accounts WHERE tenant_id = $1 AND id = $2
			AND password_hash <> ''
			UNION ALL
			SELECT password_hash, position FROM password_history WHERE tenant_id = $1 AND account_id = $2
		) entries ORDER BY position DESC NULLS FIRST LIMIT $3`, tenant, account, count)
	hashes := make([]string, len(entries))
	for i, entry := range entries {
		hashes[i] = entry.PasswordHash
	}
	return hashes, err
}

// SetPassword stores the hash of a new password and adds the former hash to the password history.
// The transaction must have locked the account (LockAccount), so that of two concurrent changes
// neither loses the hash of the other. With KeepFormer above 0, it returns ErrPasswordChanged
// where the present hash is not the one that the password replaces.
func (tx *Tx) SetPassword(ctx context.Context, tenant, account id.ID, password NewPassword) error {
	for _, sql := range []string{
		`INSERT INTO password_history (tenant_id, account_id, position, password_hash)
			SELECT tenant_id, id, 1 + COALESCE((SELECT max(position) FROM password_history
			WHERE tenant_id = $1 AND account_id = $2), 0),
				password_hash
			FROM accounts WHERE tenant_id = $1 AND id = $2 AND password_hash <> '' AND $3 > 0`,
		`DELETE FROM password_history WHERE tenant_id = $1 AND account_id = $2 AND position <=
			(SELECT max(position) FROM password_history WHERE tenant_id = $1 AND account_id = $2) - $3`,
	} {
		if _, err := pg.Exec(ctx, tx, sql, tenant, account, password.KeepFormer); err != nil {
			return err
		}
	}
	changed, err := pg.Exec(ctx, tx, `UPDATE accounts SET password_hash = $3
		WHERE tenant_id = $1 AND id = $2 AND ($4 = 0 OR
		password_hash = $5)`,
		tenant, account, password.Hash, password.KeepFormer, password.Replaces)
	if err != nil {
		return err
	}
	if changed == 0 {
		return ErrPasswordChanged
	}
	return nil
}

// ReplaceHash stores another hash of the same password (rehashing), unless the password or its
// hash was changed in between.
func (tx *Tx) ReplaceHash(ctx context.Context, tenant, account id.ID, old, hash string) error {
	_, err := pg.Exec(ctx, tx, `UPDATE accounts SET password_hash = $4
		WHERE tenant_id = $1 AND id = $2 AND password_hash = $3`, tenant, account, old, hash)
	return err
}

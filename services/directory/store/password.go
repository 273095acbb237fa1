package store

import (
	"context"
	"errors"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// NewPassword is a password that may be set, as it is stored.
type NewPassword struct {
	Hash    string
	Former  int    // how many former hashes of the account stay, the newest ones
	Follows string // the hash that it may take the place of, where former ones stay; empty: no password
}

// ErrPasswordMoved means that an account has another password than the one that
// a new password may take the place of.
var ErrPasswordMoved = errors.New("store: the password was changed meanwhile")

// PasswordHashes returns the newest password hashes of an account, its present
// one first, at most count.
func (s *Store) PasswordHashes(ctx context.Context, tenant, account id.ID, count int) ([]string, error) {
	entries, err := pg.All[struct{ PasswordHash string }](ctx, s.db, `SELECT password_hash FROM (
			SELECT password_hash, NULL AS position FROM accounts WHERE tenant_id = $1 AND id = $2 AND password_hash <> ''
			UNION ALL
			SELECT password_hash, position FROM password_history WHERE tenant_id = $1 AND account_id = $2
		) entries ORDER BY position DESC NULLS FIRST LIMIT $3`, tenant, account, count)
	hashes := make([]string, len(entries))
	for i, entry := range entries {
		hashes[i] = entry.PasswordHash
	}
	return hashes, err
}

// SetPassword writes the hash of a new password; the former one joins the
// history. The transaction holds the account's lock (LockAccount), so that of
// two changes at once neither loses the hash of the other. Where former hashes
// stay, it returns ErrPasswordMoved unless the password follows the present one.
func (tx *Tx) SetPassword(ctx context.Context, tenant, account id.ID, password NewPassword) error {
	for _, sql := range []string{
		`INSERT INTO password_history (tenant_id, account_id, position, password_hash)
			SELECT tenant_id, id, 1 + COALESCE((SELECT max(position) FROM password_history WHERE tenant_id = $1 AND account_id = $2), 0),
				password_hash
			FROM accounts WHERE tenant_id = $1 AND id = $2 AND password_hash <> '' AND $3 > 0`,
		`DELETE FROM password_history WHERE tenant_id = $1 AND account_id = $2 AND position <=
			(SELECT max(position) FROM password_history WHERE tenant_id = $1 AND account_id = $2) - $3`,
	} {
		if _, err := pg.Exec(ctx, tx, sql, tenant, account, password.Former); err != nil {
			return err
		}
	}
	changed, err := pg.Exec(ctx, tx, `UPDATE accounts SET password_hash = $3 WHERE tenant_id = $1 AND id = $2 AND ($4 = 0 OR
		password_hash = $5)`,
		tenant, account, password.Hash, password.Former, password.Follows)
	if err == nil && changed == 0 {
		err = ErrPasswordMoved
	}
	return err
}

// ReplacePassword writes another hash of the same password, unless the password
// or its hash was changed meanwhile.
func (tx *Tx) ReplacePassword(ctx context.Context, tenant, account id.ID, old, hash string) error {
	_, err := pg.Exec(ctx, tx, `UPDATE accounts SET password_hash = $4 WHERE tenant_id = $1 AND id = $2 AND password_hash = $3`,
		tenant, account, old, hash)
	return err
}

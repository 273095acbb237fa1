package store

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// PasswordChange is the latest change of an account's password.
type PasswordChange struct {
	TenantID  id.ID
	AccountID id.ID
	ChangedAt time.Time
	ExpiresAt time.Time // from then on no login that began before the change is running
}

// RecordPasswordChange stores the latest change of a password. InsertAccessTokens and
// InsertTokenPair then store no tokens of a login that began before the change.
func (tx *Tx) RecordPasswordChange(ctx context.Context, c PasswordChange) error {
	_, err := pg.Exec(ctx, tx, `INSERT INTO password_changes AS p (tenant_id, account_id, changed_at, expires_at)
		VALUES ($1, $2, $3, $4)
		ON CONFLICT (tenant_id, account_id) DO UPDATE SET changed_at = excluded.changed_at, expires_at = excluded.expires_at
		WHERE p.changed_at < excluded.changed_at`, c.TenantID, c.AccountID, c.ChangedAt, c.ExpiresAt)
	return err
}

// DeleteTokensBefore revokes the tokens of an account whose login began before a password
// change, with the access tokens of their refreshes. With all they are deleted for every
// application; otherwise only for applications whose policy says
// revokeTokensOnPasswordChange.
func (tx *Tx) DeleteTokensBefore(ctx context.Context, c PasswordChange, all bool) error {
	first := firstID(c.ChangedAt.Add(time.Millisecond))
	const revoked = ` AND ($4 OR application_id NOT IN (SELECT application_id FROM oauth_policies WHERE tenant_id = $1
		AND NOT revoke_tokens_on_password_change))`
	for _, of := range []struct {
		kind  TokenKind
		began string
	}{{Refresh, `id < $3`}, {Access, `(id < $3 OR refresh_id < $3)`}} {
		deleted, err := pg.Values[id.ID](ctx, tx, `DELETE FROM `+of.kind.table()+`
			WHERE tenant_id = $1 AND account_id = $2 AND `+of.began+revoked+` RETURNING id`, c.TenantID, c.AccountID, first, all)
		if err != nil {
			return err
		}
		tx.invalidateTokens(of.kind, c.TenantID, deleted...)
	}
	return nil
}

// firstID returns the least UUIDv7 of a millisecond (RFC 9562, section 5.7). The id of a
// token contains the time at which its login began.
func firstID(at time.Time) (v id.ID) {
	binary.BigEndian.PutUint64(v[:8], uint64(at.UnixMilli())<<16)
	return v
}

package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/purge/purgesql"
)

// PasswordReset is a pending password reset: the right to set the password of an account once.
type PasswordReset struct {
	TenantID      id.ID
	Digest        []byte // of the jti of its token
	AccountID     id.ID
	ApplicationID id.ID // through which it was requested, if any
	Mailed        bool  // the token was sent by mail, and shown to nobody else
	ExpiresAt     time.Time
	CreatedAt     time.Time
}

// ResetKey returns the sealed key that signs the reset tokens of a tenant: nil where none was
// created yet, or apierr.NotFound for the tenant.
func (s *Store) ResetKey(ctx context.Context, tenant id.ID) ([]byte, error) {
	return pg.Value[[]byte](ctx, s.db, `SELECT reset_key_sealed FROM tenants WHERE tenant_id = $1`, tenant)
}

// EnsureResetKey stores the sealed key of a tenant's reset tokens unless there is one, and returns
// the stored one: of concurrent calls the first decides.
func (tx *Tx) EnsureResetKey(ctx context.Context, tenant id.ID, sealed []byte) ([]byte, error) {
	return pg.Value[[]byte](ctx, tx, `UPDATE tenants SET reset_key_sealed = coalesce(reset_key_sealed, $2)
		WHERE tenant_id = $1
		RETURNING reset_key_sealed`, tenant, sealed)
}

const resetQuery = `SELECT ` + accountColumns + `, r.application_id FROM password_resets r
	JOIN accounts a ON a.tenant_id = r.tenant_id AND a.id = r.account_id
	JOIN directories d ON d.tenant_id = a.tenant_id AND d.id = a.directory_id
	WHERE r.tenant_id = $1 AND r.digest = $2`

// PendingReset returns the account of a reset that has not ended, or apierr.NotFound.
func (s *Store) PendingReset(ctx context.Context, tenant id.ID, digest []byte, now time.Time) (MailedAccount, error) {
	return pg.One[MailedAccount](ctx, s.db, resetQuery+` AND r.expires_at > $3`, tenant, digest, now)
}

// Reset returns the account of a reset that was used, has expired or is pending, or apierr.NotFound.
func (s *Store) Reset(ctx context.Context, tenant id.ID, digest []byte) (MailedAccount, error) {
	return pg.One[MailedAccount](ctx, s.db, resetQuery, tenant, digest)
}

// InsertReset inserts a pending reset, or returns apierr.NotFound for an account that was deleted.
func (tx *Tx) InsertReset(ctx context.Context, r PasswordReset) error {
	return pg.MustChange(ctx, tx,
		`INSERT INTO password_resets (tenant_id, digest, account_id, application_id, expires_at,
		created_at, mailed)
		SELECT tenant_id, @digest, id, @application_id, @expires_at, @created_at, @mailed FROM accounts
		WHERE tenant_id = @tenant_id AND id = @account_id FOR KEY SHARE`, pg.Named(r))
}

// ConsumeReset ends a pending reset and returns it. Of concurrent attempts one gets it, and the
// others return apierr.NotFound.
func (tx *Tx) ConsumeReset(ctx context.Context, tenant id.ID, digest []byte, now time.Time) (PasswordReset, error) {
	return pg.One[PasswordReset](ctx, tx, `UPDATE password_resets SET expires_at = $3
		WHERE tenant_id = $1 AND digest = $2 AND expires_at > $3
		RETURNING tenant_id, digest, account_id, application_id, mailed, expires_at, created_at`, tenant, digest, now)
}

// EndResets ends all resets of an account, which invalidates their tokens. The rows stay until they are purged, so
// that the page of an old link can lead on.
func (tx *Tx) EndResets(ctx context.Context, tenant, account id.ID, now time.Time) error {
	_, err := pg.Exec(ctx, tx, `UPDATE password_resets SET expires_at = $3
		WHERE tenant_id = $1 AND account_id = $2 AND expires_at > $3`, tenant, account, now)
	return err
}

// ExpiringResets are the resets, for the purge.
var ExpiringResets = purgesql.Rows{Table: "password_resets", Time: "expires_at"}

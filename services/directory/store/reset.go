package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// Reset is an open right to set an account's password once.
type Reset struct {
	TenantID      id.ID
	Digest        []byte // of the jti of its token
	AccountID     id.ID
	ApplicationID id.ID // through which it was asked for, if any
	ExpiresAt     time.Time
	CreatedAt     time.Time
}

// ResetKey returns the sealed key of a tenant's reset tokens: nil when none was
// made yet, or apierr.NotFound for the tenant.
func (s *Store) ResetKey(ctx context.Context, tenant id.ID) ([]byte, error) {
	return pg.Value[[]byte](ctx, s.db, `SELECT reset_key_sealed FROM tenants WHERE tenant_id = $1`, tenant)
}

// KeepResetKey writes the sealed key of a tenant's reset tokens unless there is one, and
// returns the one that is there. The first of several parallel calls decides.
func (tx *Tx) KeepResetKey(ctx context.Context, tenant id.ID, sealed []byte) ([]byte, error) {
	return pg.Value[[]byte](ctx, tx, `UPDATE tenants SET reset_key_sealed = coalesce(reset_key_sealed, $2) WHERE tenant_id = $1
		RETURNING reset_key_sealed`, tenant, sealed)
}

// OpenReset is the account of an open reset and the application through which it was
// asked for, if any.
type OpenReset struct {
	directoryapi.Account
	ApplicationID id.ID
}

// OpenReset returns an open reset, or apierr.NotFound.
func (s *Store) OpenReset(ctx context.Context, tenant id.ID, digest []byte, now time.Time) (OpenReset, error) {
	return pg.One[OpenReset](ctx, s.db, `SELECT `+accountColumns+`, r.application_id FROM password_resets r
		JOIN accounts a ON a.tenant_id = r.tenant_id AND a.id = r.account_id
		JOIN directories d ON d.tenant_id = a.tenant_id AND d.id = a.directory_id
		WHERE r.tenant_id = $1 AND r.digest = $2 AND r.expires_at > $3`, tenant, digest, now)
}

// InsertReset adds an open reset, or returns apierr.NotFound for an account that is
// gone.
func (tx *Tx) InsertReset(ctx context.Context, r Reset) error {
	return pg.MustChange(ctx, tx, `INSERT INTO password_resets (tenant_id, digest, account_id, application_id, expires_at, created_at)
		SELECT tenant_id, $3, id, $4, $5, $6 FROM accounts WHERE tenant_id = $1 AND id = $2 FOR KEY SHARE`,
		r.TenantID, r.AccountID, r.Digest, r.ApplicationID, r.ExpiresAt, r.CreatedAt)
}

// ConsumeReset removes an open reset and returns it. One of any number of attempts gets it,
// and the others are apierr.NotFound.
func (tx *Tx) ConsumeReset(ctx context.Context, tenant id.ID, digest []byte, now time.Time) (Reset, error) {
	return pg.One[Reset](ctx, tx, `DELETE FROM password_resets WHERE tenant_id = $1 AND digest = $2 AND expires_at > $3
		RETURNING tenant_id, digest, account_id, application_id, expires_at, created_at`, tenant, digest, now)
}

// DropResets removes all resets of an account: their tokens are void.
func (tx *Tx) DropResets(ctx context.Context, tenant, account id.ID) error {
	_, err := pg.Exec(ctx, tx, `DELETE FROM password_resets WHERE tenant_id = $1 AND account_id = $2`, tenant, account)
	return err
}

// PurgeResets removes at most limit resets that expired before a time, the
// oldest first, and returns their number. Rows that another replica purges at the
// same moment are left to it.
func (tx *Tx) PurgeResets(ctx context.Context, before time.Time, limit int) (int64, error) {
	return pg.Exec(ctx, tx, `DELETE FROM password_resets WHERE (tenant_id, digest) IN
		(SELECT tenant_id, digest FROM password_resets WHERE expires_at < $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)`, before, limit)
}

package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// RegistrationToken is an initial access token, by which clients register themselves (RFC 7591, section 3).
type RegistrationToken struct {
	TenantID      id.ID
	ID            id.ID
	ApplicationID id.ID
	Digest        []byte
	Uses          int // that are left
	CreatedAt     time.Time
	ExpiresAt     time.Time
}

const registrationTokenColumns = `r.tenant_id, r.id, r.application_id, r.digest, r.uses, r.created_at, r.expires_at`

// RegistrationTokens returns the initial access tokens of an application that may be used at a time.
func (s *Store) RegistrationTokens(ctx context.Context, application id.Ref, now time.Time) ([]RegistrationToken, error) {
	return pg.All[RegistrationToken](ctx, s.db, `SELECT `+registrationTokenColumns+` FROM openid_registration_tokens r
		WHERE r.tenant_id = $1 AND r.application_id = $2 AND r.uses > 0 AND r.expires_at > $3 ORDER BY r.id`,
		application.Tenant, application.ID, now)
}

// InsertRegistrationToken adds an initial access token.
func (tx *Tx) InsertRegistrationToken(r RegistrationToken) {
	tx.Queue(pg.Insert("openid_registration_tokens", registrationTokenColumns), pg.Named(r))
}

// DeleteRegistrationToken deletes an initial access token of an application, or returns apierr.NotFound.
func (tx *Tx) DeleteRegistrationToken(ctx context.Context, application id.Ref, token id.ID) error {
	return pg.MustChange(ctx, tx, `DELETE FROM openid_registration_tokens WHERE tenant_id = $1 AND application_id = $2
		AND id = $3`, application.Tenant, application.ID, token)
}

// UseRegistrationToken uses an initial access token of an application once, or returns apierr.NotFound.
func (tx *Tx) UseRegistrationToken(ctx context.Context, application id.Ref, digest []byte, now time.Time) error {
	return pg.MustChange(ctx, tx, `UPDATE openid_registration_tokens SET uses = uses - 1 WHERE tenant_id = $1
		AND application_id = $2 AND digest = $3 AND uses > 0 AND expires_at > $4`, application.Tenant, application.ID, digest, now)
}

// LockRegistrations waits for the other registrations of a tenant, and returns how many clients have registered
// themselves in it.
func (tx *Tx) LockRegistrations(ctx context.Context, tenant id.ID) (int, error) {
	if _, err := pg.Exec(ctx, tx, `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`,
		"openid registrations "+tenant.String()); err != nil {
		return 0, err
	}
	return pg.Value[int](ctx, tx, `SELECT count(*) FROM openid_clients WHERE tenant_id = $1
		AND registration_digest IS NOT NULL`, tenant)
}

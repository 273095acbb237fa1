package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// SignUp is a pending sign-up of a tenant, or a pending invitation of an administrator, which is a
// row without a password hash.
type SignUp struct {
	TenantID     id.ID
	AccountID    id.ID
	Digest       []byte // of the token in the mail
	Email        string
	AddressHash  string // of the network of the request; empty where it is not known
	GivenName    *string
	Surname      *string
	PasswordHash *string // nil for an invitation
	CreatedAt    time.Time
	ExpiresAt    time.Time
}

// IsInvitation reports whether the row is an invitation of an administrator.
func (s SignUp) IsInvitation() bool { return s.PasswordHash == nil }

const signUpColumns = `tenant_id, account_id, digest, email, address_hash, given_name, surname, password_hash, created_at, expires_at`

// SignUpTenant returns the tenant of a pending sign-up or invitation, or apierr.NotFound: a mailed
// link has the token alone.
func (s *Store) SignUpTenant(ctx context.Context, digest []byte) (id.ID, error) {
	return pg.Value[id.ID](s.db.OnMain(ctx), s.db, `SELECT tenant_id FROM sign_ups WHERE digest = $1`, digest)
}

// SignUp returns a pending sign-up or invitation that has not expired, or apierr.NotFound.
func (s *Store) SignUp(ctx context.Context, tenant id.ID, digest []byte, now time.Time) (SignUp, error) {
	return pg.One[SignUp](s.db.OnMain(ctx), s.db, `SELECT `+signUpColumns+` FROM sign_ups
		WHERE tenant_id = $1 AND digest = $2 AND expires_at > $3`, tenant, digest, now)
}

// SignUpByAccount returns the sign-up or invitation that creates an account, or apierr.NotFound.
func (s *Store) SignUpByAccount(ctx context.Context, tenant, account id.ID) (SignUp, error) {
	return pg.One[SignUp](s.db.OnMain(ctx), s.db, `SELECT `+signUpColumns+` FROM sign_ups WHERE tenant_id = $1 AND account_id = $2`,
		tenant, account)
}

// CountSignUps counts the sign-ups and invitations since a time, by email and by network (rate
// limit). It locks both counts until the transaction ends.
func (tx *Tx) CountSignUps(ctx context.Context, email, addressHash string, since time.Time) (ofEmail, ofAddress int, err error) {
	email = field.LoginName(email)
	if _, err := pg.Exec(ctx, tx, `SELECT pg_advisory_xact_lock(key) FROM
		(SELECT unnest(ARRAY[hashtextextended('sign-up email ' || $1, 0), hashtextextended('sign-up address ' || $2, 0)]) AS key
			ORDER BY 1) keys`,
		email, addressHash); err != nil {
		return 0, 0, err
	}
	if ofEmail, err = pg.Value[int](ctx, tx, `SELECT count(*) FROM sign_ups WHERE email_folded = $1 AND created_at > $2`, email,
		since); err != nil {
		return 0, 0, err
	}
	ofAddress, err = pg.Value[int](ctx, tx, `SELECT count(*) FROM sign_ups WHERE address_hash = $1 AND created_at > $2`, addressHash, since)
	return ofEmail, ofAddress, err
}

// InsertSignUp inserts a pending sign-up or invitation.
func (tx *Tx) InsertSignUp(ctx context.Context, s SignUp) error {
	_, err := pg.Exec(ctx, tx, `INSERT INTO sign_ups (`+signUpColumns+`, email_folded) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
		s.TenantID, s.AccountID, s.Digest, s.Email, s.AddressHash, s.GivenName, s.Surname, s.PasswordHash, s.CreatedAt, s.ExpiresAt,
		field.LoginName(s.Email))
	return err
}

// DeleteSignUp deletes a pending sign-up or invitation. Of concurrent calls one succeeds, and the
// others return apierr.NotFound.
func (tx *Tx) DeleteSignUp(ctx context.Context, tenant id.ID, digest []byte) error {
	return pg.MustChange(ctx, tx, `DELETE FROM sign_ups WHERE tenant_id = $1 AND digest = $2`, tenant, digest)
}

// PurgeSignUps deletes at most limit sign-ups and invitations that expired before a time, and
// returns their number.
func (tx *Tx) PurgeSignUps(ctx context.Context, before time.Time, limit int) (int64, error) {
	return pg.Exec(ctx, tx, `DELETE FROM sign_ups WHERE (tenant_id, account_id) IN
		(SELECT tenant_id, account_id FROM sign_ups WHERE expires_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED)`, before, limit)
}

package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/purge/purgesql"
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

const signUpColumns = `tenant_id, account_id, digest, email, address_hash, given_name, surname, password_hash,
	created_at, expires_at`

// SignUpTenant returns the tenant of a pending sign-up or invitation, or apierr.NotFound: a mailed
// link has the token alone.
func (s *Store) SignUpTenant(ctx context.Context, digest []byte) (id.ID, error) {
	return pg.Value[id.ID](ctx, s.db, `SELECT tenant_id FROM sign_ups WHERE digest = $1`, digest)
}

// SignUp returns a pending sign-up or invitation that has not expired, or apierr.NotFound.
func (s *Store) SignUp(ctx context.Context, tenant id.ID, digest []byte, now time.Time) (SignUp, error) {
	return pg.One[SignUp](ctx, s.db, `SELECT `+signUpColumns+` FROM sign_ups
		WHERE tenant_id = $1 AND digest = $2 AND expires_at > $3`, tenant, digest, now)
}

// SignUpByAccount returns the sign-up or invitation that creates an account, or apierr.NotFound.
func (s *Store) SignUpByAccount(ctx context.Context, tenant, account id.ID) (SignUp, error) {
	return pg.One[SignUp](ctx, s.db, `SELECT `+signUpColumns+` FROM sign_ups WHERE tenant_id = $1 AND account_id = $2`,
		tenant, account)
}

// CountSignUps counts the rows since a time that share a rate limit with s. Of a sign-up these are
// the sign-ups of its email, and those of its network; of an invitation the tenant's invitations of
// its email, so that no stranger uses up what an administrator may send. It locks the counts until
// the transaction ends.
func (tx *Tx) CountSignUps(ctx context.Context, s SignUp, since time.Time) (ofEmail, ofNetwork int, err error) {
	email, inviter := field.LoginName(s.Email), ""
	if s.IsInvitation() {
		inviter = s.TenantID.String()
	}
	if _, err := pg.Exec(ctx, tx, `SELECT pg_advisory_xact_lock(key) FROM
		(SELECT unnest(ARRAY[hashtextextended('sign-up email ' || $1 || ' ' || $2, 0),
			hashtextextended('sign-up address ' || $3, 0)]) AS key ORDER BY 1) keys`,
		email, inviter, s.AddressHash); err != nil {
		return 0, 0, err
	}
	ofEmail, err = pg.Value[int](ctx, tx, `SELECT count(*) FROM sign_ups WHERE email_folded = $1 AND created_at > $2
		AND (password_hash IS NULL) = $3 AND (tenant_id = $4 OR NOT $3)`, email, since, s.IsInvitation(), s.TenantID)
	if err != nil {
		return 0, 0, err
	}
	ofNetwork, err = pg.Value[int](ctx, tx, `SELECT count(*) FROM sign_ups WHERE address_hash = $1 AND created_at > $2`,
		s.AddressHash, since)
	return ofEmail, ofNetwork, err
}

// InsertSignUp inserts a pending sign-up or invitation.
func (tx *Tx) InsertSignUp(ctx context.Context, s SignUp) error {
	_, err := pg.Exec(ctx, tx, pg.Insert("sign_ups", signUpColumns+", email_folded"),
		pg.Named(s, pg.Args{"email_folded": field.LoginName(s.Email)}))
	return err
}

// DeleteSignUp deletes a pending sign-up or invitation. Of concurrent calls one succeeds, and the
// others return apierr.NotFound.
func (tx *Tx) DeleteSignUp(ctx context.Context, tenant id.ID, digest []byte) error {
	return pg.MustChange(ctx, tx, `DELETE FROM sign_ups WHERE tenant_id = $1 AND digest = $2`, tenant, digest)
}

// ExpiringSignUps are the sign-ups and invitations, for the purge.
var ExpiringSignUps = purgesql.Rows{Table: "sign_ups", Time: "expires_at"}

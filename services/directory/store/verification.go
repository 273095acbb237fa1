package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// EmailVerification is the pending verification of an account's email.
type EmailVerification struct {
	Digest    []byte // of the token
	Sealed    []byte // the token, for the account's representation and its mail
	ExpiresAt *time.Time
}

// SetVerification replaces the verification token of an account.
func (tx *Tx) SetVerification(ctx context.Context, tenant, account id.ID, v *EmailVerification) error {
	return pg.MustChange(ctx, tx, `UPDATE accounts SET verification_digest = $3, verification_sealed = $4, verification_expires_at = $5
		WHERE tenant_id = $1 AND id = $2`, tenant, account, v.Digest, v.Sealed, v.ExpiresAt)
}

// RenewVerification sets when the pending verification token of an account expires, and returns the
// sealed token, or apierr.NotFound where none is pending.
func (tx *Tx) RenewVerification(ctx context.Context, tenant, account id.ID, now, expires time.Time) ([]byte, error) {
	return pg.Value[[]byte](ctx, tx, `UPDATE accounts SET verification_expires_at = $4
		WHERE tenant_id = $1 AND id = $2 AND verification_digest IS NOT NULL AND verification_expires_at > $3
		RETURNING verification_sealed`, tenant, account, now, expires)
}

// VerificationTenant returns the tenant of a verification token, or apierr.NotFound: a mailed link
// has the token alone.
func (s *Store) VerificationTenant(ctx context.Context, digest []byte) (id.ID, error) {
	return pg.InAnyShard(ctx, s.db, func(ctx context.Context) (id.ID, error) {
		return pg.Value[id.ID](ctx, s.db, `SELECT tenant_id FROM accounts WHERE verification_digest = $1`, digest)
	})
}

const pendingVerification = `SELECT ` + accountColumns + ` FROM ` + accountsWithDirectory + `
	WHERE a.tenant_id = $1 AND a.verification_digest = $2 AND a.verification_expires_at > $3`

// VerificationAccount returns the account of a verification token that has not expired, or
// apierr.NotFound.
func (s *Store) VerificationAccount(ctx context.Context, tenant id.ID, digest []byte, now time.Time) (directoryapi.Account, error) {
	return pg.One[directoryapi.Account](ctx, s.db, pendingVerification, tenant, digest, now)
}

// ConsumeVerification consumes a verification token: it marks the email as verified and enables an
// account with the status UNVERIFIED. Of concurrent attempts one succeeds, and the others return
// apierr.NotFound.
func (tx *Tx) ConsumeVerification(ctx context.Context, tenant id.ID, digest []byte, now time.Time) (directoryapi.Account, error) {
	before, err := pg.One[directoryapi.Account](ctx, tx, pendingVerification+` FOR UPDATE OF a`, tenant, digest, now)
	if err != nil {
		return before, err
	}
	after := before
	MarkVerified(&after)
	after.ModifiedAt = now
	return after, tx.UpdateAccount(ctx, before, after)
}

// MarkVerified marks the email of an account as verified, which enables an account with the status
// UNVERIFIED, and makes its verification token void.
func MarkVerified(a *directoryapi.Account) {
	a.EmailVerificationStatus, a.EmailAssumed, a.VerificationSealed = directoryapi.Verified, false, nil
	if a.Status == directoryapi.Unverified {
		a.Status = directoryapi.Enabled
	}
}

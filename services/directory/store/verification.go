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
	// ApplicationID is the application through which the mail was caused; zero: none.
	ApplicationID id.ID
}

// SetVerification replaces the verification token of an account.
func (tx *Tx) SetVerification(ctx context.Context, tenant, account id.ID, v *EmailVerification) error {
	return pg.MustChange(ctx, tx, `UPDATE accounts SET verification_digest = $3, verification_sealed = $4,
		verification_expires_at = $5, verification_application_id = $6
		WHERE tenant_id = $1 AND id = $2`, tenant, account, v.Digest, v.Sealed, v.ExpiresAt, v.ApplicationID)
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
	return pg.Value[id.ID](ctx, s.db, `SELECT tenant_id FROM accounts WHERE verification_digest = $1`, digest)
}

// MailedAccount is the account of a mailed link, and the application through which its mail was caused, if any.
type MailedAccount struct {
	directoryapi.Account
	ApplicationID id.ID
}

const verificationQuery = `SELECT ` + accountColumns + `, a.verification_application_id AS application_id FROM ` +
	accountsWithDirectory + ` WHERE a.tenant_id = $1 AND a.verification_digest = $2`

const pendingVerification = verificationQuery + ` AND a.verification_expires_at > $3`

// PendingVerification returns the account of a verification token that has not ended, or apierr.NotFound.
func (s *Store) PendingVerification(ctx context.Context, tenant id.ID, digest []byte,
	now time.Time) (MailedAccount, error) {
	return pg.One[MailedAccount](ctx, s.db, pendingVerification, tenant, digest, now)
}

// Verification returns the account of a verification token that was used, has expired or is pending, or
// apierr.NotFound.
func (s *Store) Verification(ctx context.Context, tenant id.ID, digest []byte) (MailedAccount, error) {
	return pg.One[MailedAccount](ctx, s.db, verificationQuery, tenant, digest)
}

// ConsumeVerification consumes a verification token: it marks the email as verified and enables an
// account with the status UNVERIFIED. Of concurrent attempts one succeeds, and the others return
// apierr.NotFound.
func (tx *Tx) ConsumeVerification(ctx context.Context, tenant id.ID, digest []byte,
	now time.Time) (directoryapi.Account, error) {
	found, err := pg.One[MailedAccount](ctx, tx, pendingVerification+` FOR UPDATE OF a`, tenant, digest, now)
	if err != nil {
		return found.Account, err
	}
	after := found.Account
	MarkVerified(&after)
	after.ModifiedAt = now
	return after, tx.UpdateAccount(ctx, found.Account, after)
}

// MarkVerified marks the email of an account as verified, which enables an account with the status
// UNVERIFIED, and makes its verification token void.
func MarkVerified(a *directoryapi.Account) {
	a.EmailVerificationStatus, a.EmailAssumed, a.VerificationSealed = directoryapi.Verified, false, nil
	if a.Status == directoryapi.Unverified {
		a.Status = directoryapi.Enabled
	}
}

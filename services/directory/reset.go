package directory

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory/store"
)

// resetType is the header stt (token type) of a reset token, which is a JWT.
const resetType = "assertion"

// errInvalidResetToken is the error for every invalid token. It does not tell why the token is
// invalid.
var errInvalidResetToken = apierr.NotFound.Because("the password reset token is unknown, used or expired").
	Saying("This password reset request does not exist. Please request a new password reset.")

// RequestReset (forgot password) creates a reset token for the account of a login in the first
// account store that has one, and sends its mail where the directory has that enabled
// (docs/interface/accounts.md#password-reset). Accounts of mirror directories are not found, as
// their passwords are not stored here. Beyond the rate limit of anonymous requests it creates no
// token and sends no mail. It returns errUnknownLogin.
func (s *Service) RequestReset(ctx context.Context, in directoryapi.RequestReset) (directoryapi.PasswordReset, error) {
	return s.requestReset(ctx, in, directoryapi.Reset)
}

// RemindOfAccount answers a registration with the email of an account (docs/interface/accounts.md#password-reset):
// an UNVERIFIED one gets its verification mail again, with the same token, another one the mail of the
// workflow ExistingAccount, with the link to a new password. It returns errUnknownLogin.
func (s *Service) RemindOfAccount(ctx context.Context, in directoryapi.RequestReset) (directoryapi.Empty, error) {
	found, err := s.store.FindAccountByLogin(ctx, in.Tenant, in.Stores, in.Login)
	if errors.Is(err, apierr.NotFound) {
		return directoryapi.Empty{}, errUnknownLogin
	}
	if err != nil {
		return directoryapi.Empty{}, err
	}
	if found.Status == directoryapi.Unverified {
		_, err := s.RequestVerification(ctx, directoryapi.RequestVerification(in))
		return directoryapi.Empty{}, err
	}
	_, err = s.requestReset(ctx, in, directoryapi.ExistingAccount)
	return directoryapi.Empty{}, err
}

// requestReset creates a reset token and sends it by the mail of a workflow.
func (s *Service) requestReset(
	ctx context.Context, in directoryapi.RequestReset, workflow directoryapi.Workflow,
) (directoryapi.PasswordReset, error) {
	key, err := s.resetKey(ctx, in.Tenant)
	if err != nil {
		return directoryapi.PasswordReset{}, err
	}
	found, err := s.store.FindNativeAccountByLogin(ctx, in.Tenant, in.Stores, in.Login)
	if errors.Is(err, apierr.NotFound) {
		return directoryapi.PasswordReset{}, errUnknownLogin
	}
	if err != nil {
		return directoryapi.PasswordReset{}, err
	}
	policy, err := s.store.PasswordPolicy(ctx, in.Tenant, found.DirectoryID)
	if err != nil {
		return directoryapi.PasswordReset{}, err
	}
	isMailSent, err := s.isWorkflowEnabled(ctx, in.Tenant, found.DirectoryID, workflow)
	if err != nil {
		return directoryapi.PasswordReset{}, err
	}
	now, jti := s.now(), secure.Token(22)
	reset := store.PasswordReset{
		TenantID: in.Tenant, Digest: secure.Digest(jti), AccountID: found.ID, ApplicationID: in.Application,
		Mailed:    in.Anonymous,
		ExpiresAt: now.Add(time.Duration(policy.ResetTokenTTL) * time.Hour).Truncate(time.Second), CreatedAt: now,
	}
	token, err := signReset(reset, jti, key)
	if err != nil {
		return directoryapi.PasswordReset{}, err
	}
	err = s.store.Tx(ctx, func(tx *store.Tx) error {
		if in.Anonymous {
			if may, err := s.allowMail(ctx, tx, in.Tenant, found.ID, workflow); err != nil || !may {
				token = ""
				return err
			}
		}
		if err := tx.InsertReset(ctx, reset); err != nil {
			return err
		}
		if !isMailSent {
			return nil
		}
		return tx.Emit(ctx, events.PasswordResetRequested{
			Tenant: in.Tenant, Account: found.ID, Directory: found.DirectoryID, Application: in.Application,
			Token:    s.ring.Seal(token, events.MailTokenPurpose(found.ID)),
			Existing: workflow == directoryapi.ExistingAccount,
		})
	})
	if errors.Is(err, apierr.NotFound) {
		err = errUnknownLogin // deleted meanwhile
	}
	return directoryapi.PasswordReset{Token: token, Account: found.Account}, err
}

// signReset returns the token of a reset: a JWT with its tenant and its expiry, and nothing that
// tells the account.
func signReset(reset store.PasswordReset, jti, key secure.Secret) (secure.Secret, error) {
	token, err := secure.SignJWT(map[string]any{"tid": reset.TenantID.String(), "stt": resetType},
		secure.Claims{"exp": reset.ExpiresAt.Unix(), "jti": jti.Reveal()}, key)
	return secure.Secret(token), err
}

// resetKey returns the key that signs the reset tokens of a tenant. The first call for a tenant
// creates it.
func (s *Service) resetKey(ctx context.Context, tenant id.ID) (secure.Secret, error) {
	sealed, err := s.store.ResetKey(ctx, tenant)
	if err != nil {
		return "", err
	}
	if sealed == nil {
		err = s.store.Tx(ctx, func(tx *store.Tx) (err error) {
			sealed, err = tx.EnsureResetKey(ctx, tenant, s.ring.Seal(secure.Token(43), resetKeyPurpose(tenant)))
			return err
		})
	}
	if err != nil {
		return "", err
	}
	return s.ring.Open(sealed, resetKeyPurpose(tenant))
}

func resetKeyPurpose(tenant id.ID) string { return "directory.reset/" + tenant.String() }

// errResetWithoutPassword has a text that clients compare
// (docs/interface/errors.md#texts-that-clients-compare).
var errResetWithoutPassword = apierr.Required.Because(resetWithoutPassword).Saying(resetWithoutPassword)

const resetWithoutPassword = "account password is required; it cannot be null, empty, or blank."

// verifiedReset is the reset of a token that has been verified.
type verifiedReset struct {
	directoryapi.PasswordReset
	digest []byte // of the token's jti
}

// encodedDots decodes the dots of a token: a page that reads the token from the link of a mail may
// send it percent-encoded, also twice.
var encodedDots = strings.NewReplacer("%252E", ".", "%252e", ".", "%2E", ".", "%2e", ".")

// verifyResetToken verifies a reset token and returns its reset. It returns apierr.NotFound unless
// the token was signed by its tenant's key, has not expired and has not been used.
func (s *Service) verifyResetToken(ctx context.Context, in directoryapi.ResetToken) (verifiedReset, error) {
	verified, tenant, err := s.verifyResetSignature(ctx, in)
	if err != nil {
		return verified, err
	}
	found, err := s.store.PendingReset(caller.WithTenant(ctx, tenant), tenant, verified.digest, s.now())
	verified.Account, verified.Application = found.Account, found.ApplicationID
	if errors.Is(err, apierr.NotFound) {
		err = errInvalidResetToken
	}
	return verified, err
}

// verifyResetSignature verifies that a reset token was signed by the key of its tenant, which it returns, or
// returns apierr.NotFound. The token may have expired.
func (s *Service) verifyResetSignature(ctx context.Context,
	in directoryapi.ResetToken) (verified verifiedReset, tenant id.ID, err error) {
	verified.Token = secure.Secret(encodedDots.Replace(in.Token.Reveal()))
	var lookupErr error // a failed look-up of the key, which is not an invalid token
	header, claims, err := secure.ParseJWT(verified.Token.Reveal(),
		func(header map[string]any, _ secure.Claims) (key secure.Secret, _ error) {
			named, _ := header["tid"].(string)
			if tenant, err = id.Parse(named); err != nil || (!in.Tenant.IsZero() && tenant != in.Tenant) {
				return "", errInvalidResetToken
			}
			key, lookupErr = s.resetKey(caller.WithTenant(ctx, tenant), tenant)
			return key, lookupErr
		})
	switch {
	case lookupErr != nil && !errors.Is(lookupErr, apierr.NotFound):
		return verified, tenant, lookupErr
	case err != nil || header["stt"] != resetType:
		return verified, tenant, errInvalidResetToken
	}
	jti, _ := claims["jti"].(string)
	verified.digest = secure.Digest(secure.Secret(jti))
	return verified, tenant, nil
}

// Reset returns the reset of a token, or apierr.NotFound.
func (s *Service) Reset(ctx context.Context, in directoryapi.ResetToken) (directoryapi.PasswordReset, error) {
	verified, err := s.verifyResetToken(ctx, in)
	return verified.PasswordReset, err
}

// ResetPassword sets the password of the account of a reset token, and invalidates all reset
// tokens of the account. Of concurrent attempts one succeeds: the others wait for the lock of the
// account and find no reset. A password that is refused consumes no token. A token that was mailed, and
// that no API call has returned, proves that the mailbox is the user's: it verifies the email, and enables
// an UNVERIFIED account. Otherwise the status of the account stays. The event PasswordChanged revokes tokens
// and ends sessions (docs/interface/accounts.md#password-reset). deleteProvisionedLinkOfUnverified deletes a
// link that a login has created together with this account.
func (s *Service) ResetPassword(ctx context.Context,
	in directoryapi.ResetPassword) (directoryapi.PasswordReset, error) {
	verified, err := s.verifyResetToken(ctx, in.ResetToken)
	if err != nil {
		return verified.PasswordReset, err
	}
	in.Tenant = verified.Account.TenantID
	ctx = caller.WithTenant(ctx, in.Tenant)
	mailed, err := s.isWorkflowEnabled(ctx, in.Tenant, verified.Account.DirectoryID, directoryapi.ResetSuccess)
	if err != nil {
		return verified.PasswordReset, err
	}
	if requirePassword(in.Password) != nil {
		return verified.PasswordReset, errResetWithoutPassword
	}
	err = s.changePassword(ctx, verified.Account, in.Password,
		func(tx *store.Tx, password store.NewPassword) (err error) {
			if verified.Account, err = tx.LockAccount(ctx, in.Tenant, verified.Account.ID); err != nil {
				return err
			}
			used, err := tx.ConsumeReset(ctx, in.Tenant, verified.digest, s.now())
			if err != nil {
				return err
			}
			if err := deleteProvisionedLinkOfUnverified(ctx, tx, verified.Account); err != nil {
				return err
			}
			proved := used.Mailed && !HasVerifiedEmail(verified.Account)
			if err := s.setPassword(ctx, tx, &verified.Account, password, used.Mailed); err != nil {
				return err
			}
			if proved {
				if err := tx.Emit(ctx, events.AccountVerified{
					Tenant: in.Tenant, Account: verified.Account.ID, Directory: verified.Account.DirectoryID,
				}); err != nil {
					return err
				}
			}
			err = tx.Emit(ctx, events.PasswordChanged{
				Tenant: in.Tenant, Account: verified.Account.ID, By: events.PasswordByReset,
				ModifiedAt: verified.Account.ModifiedAt,
			})
			if err != nil || !mailed {
				return err
			}
			return tx.Emit(ctx, events.PasswordReset{
				Tenant: in.Tenant, Account: verified.Account.ID, Directory: verified.Account.DirectoryID,
				Application: used.ApplicationID,
			})
		})
	if errors.Is(err, apierr.NotFound) {
		err = errInvalidResetToken // used or deleted meanwhile
	}
	return verified.PasswordReset, err
}

// deleteProvisionedLinkOfUnverified deletes the link that a login created together with the account, as a copy
// of another account (provider/linking.go), unless the email of the account is verified. Who uses a reset
// token owns the mailbox; the other account may have been registered with that address by somebody
// else.
func deleteProvisionedLinkOfUnverified(ctx context.Context, tx *store.Tx, a directoryapi.Account) error {
	if HasVerifiedEmail(a) {
		return nil
	}
	return tx.DeleteProvisionedLinks(ctx, a)
}

// setPassword stores the new password of an account that the transaction has locked, invalidates its
// reset tokens and, where the token proves the mailbox, marks its email as verified.
func (s *Service) setPassword(
	ctx context.Context, tx *store.Tx, a *directoryapi.Account, password store.NewPassword, isMailboxProved bool,
) error {
	before, now := *a, s.now()
	if isMailboxProved {
		store.MarkVerified(a)
	}
	a.PasswordModifiedAt, a.ModifiedAt = &now, now
	if err := tx.SetPassword(ctx, a.TenantID, a.ID, password); err != nil {
		return err
	}
	if err := tx.EndResets(ctx, a.TenantID, a.ID, now); err != nil {
		return err
	}
	return tx.UpdateAccount(ctx, before, *a)
}

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

// resetType is the header stt of a reset token.
const resetType = "assertion"

// errNoReset refuses every token that opens no reset, with one reason for all.
var errNoReset = apierr.NotFound.Because("the password reset token is unknown, used or expired").
	Saying("This password reset request does not exist. Please request a new password reset.")

// RequestReset (forgot password) makes a reset token for the account of a login, in the first store
// that holds one; accounts of mirror directories have no password here and do
// not match (docs/interface/accounts.md#password-reset). The mail is sent where the directory
// has it enabled. An anonymous request beyond the limit makes neither and has no Token. It
// returns errNoLogin.
func (s *Service) RequestReset(ctx context.Context, in directoryapi.RequestReset) (directoryapi.PasswordReset, error) {
	key, err := s.resetKey(ctx, in.Tenant)
	if err != nil {
		return directoryapi.PasswordReset{}, err
	}
	found, err := s.store.FindNative(ctx, in.Tenant, in.Stores, in.Login)
	if errors.Is(err, apierr.NotFound) {
		return directoryapi.PasswordReset{}, errNoLogin
	}
	if err != nil {
		return directoryapi.PasswordReset{}, err
	}
	policy, err := s.store.PasswordPolicy(ctx, in.Tenant, found.DirectoryID)
	if err != nil {
		return directoryapi.PasswordReset{}, err
	}
	now, jti := s.now(), secure.Token(22)
	reset := store.Reset{
		TenantID: in.Tenant, Digest: secure.Digest(jti), AccountID: found.ID, ApplicationID: in.Application,
		ExpiresAt: now.Add(time.Duration(policy.ResetTokenTTL) * time.Hour).Truncate(time.Second), CreatedAt: now,
	}
	token, err := signReset(reset, jti, key)
	if err != nil {
		return directoryapi.PasswordReset{}, err
	}
	err = s.store.Tx(ctx, func(tx *store.Tx) error {
		if in.Anonymous {
			if may, err := s.mayMail(ctx, tx, in.Tenant, found.ID, directoryapi.Reset); err != nil || !may {
				token = ""
				return err
			}
		}
		if err := tx.InsertReset(ctx, reset); err != nil {
			return err
		}
		if policy.ResetEmailStatus != directoryapi.Enabled {
			return nil
		}
		return tx.Emit(ctx, events.PasswordResetRequested{
			Tenant: in.Tenant, Account: found.ID, Directory: found.DirectoryID, Application: in.Application,
			Token: s.ring.Seal(token, events.MailTokenPurpose(found.ID)),
		})
	})
	if errors.Is(err, apierr.NotFound) {
		err = errNoLogin // deleted meanwhile
	}
	return directoryapi.PasswordReset{Token: token, Account: found.Account}, err
}

// signReset returns the token of a reset: a JWT with its tenant and its end,
// and nothing of the account.
func signReset(reset store.Reset, jti, key secure.Secret) (secure.Secret, error) {
	token, err := secure.SignJWT(map[string]any{"tid": reset.TenantID.String(), "stt": resetType},
		secure.Claims{"exp": reset.ExpiresAt.Unix(), "jti": jti.Reveal()}, key)
	return secure.Secret(token), err
}

// resetKey returns the key that signs the reset tokens of a tenant. It is made
// when it is first asked for.
func (s *Service) resetKey(ctx context.Context, tenant id.ID) (secure.Secret, error) {
	sealed, err := s.store.ResetKey(ctx, tenant)
	if err == nil && sealed == nil {
		err = s.store.Tx(ctx, func(tx *store.Tx) (err error) {
			sealed, err = tx.KeepResetKey(ctx, tenant, s.ring.Seal(secure.Token(43), resetKeyPurpose(tenant)))
			return err
		})
	}
	if err != nil {
		return "", err
	}
	return s.ring.Open(sealed, resetKeyPurpose(tenant))
}

func resetKeyPurpose(tenant id.ID) string { return "directory.reset/" + tenant.String() }

// openReset is what a reset token leads to.
type openReset struct {
	directoryapi.PasswordReset
	digest []byte // of the token's jti
}

// encodedDots decodes the dots of a token that a page has read from the link of a
// mail, and perhaps encoded once more for the path that it sends it in.
var encodedDots = strings.NewReplacer("%252E", ".", "%252e", ".", "%2E", ".", "%2e", ".")

// openReset reads a reset token. It returns apierr.NotFound for any but one that the tenant's
// key signed, that has not expired, and that is not used.
func (s *Service) openReset(ctx context.Context, in directoryapi.ResetToken) (open openReset, err error) {
	open.Token = secure.Secret(encodedDots.Replace(in.Token.Reveal()))
	var failure error // of the look-up of the key
	header, claims, err := secure.ParseJWT(open.Token.Reveal(), func(header map[string]any, _ secure.Claims) (key secure.Secret, _ error) {
		named, _ := header["tid"].(string)
		tenant, err := id.Parse(named)
		if err != nil || (!in.Tenant.IsZero() && tenant != in.Tenant) {
			return "", errNoReset
		}
		in.Tenant = tenant
		key, failure = s.resetKey(caller.WithTenant(ctx, tenant), tenant)
		return key, failure
	})
	switch {
	case failure != nil && !errors.Is(failure, apierr.NotFound):
		return open, failure
	case err != nil || header["stt"] != resetType:
		return open, errNoReset
	}
	jti, _ := claims["jti"].(string)
	expires, err := claims.GetExpirationTime()
	if err != nil || expires == nil || !s.now().Before(expires.Time) {
		return open, errNoReset
	}
	open.digest = secure.Digest(secure.Secret(jti))
	reset, err := s.store.OpenReset(caller.WithTenant(ctx, in.Tenant), in.Tenant, open.digest, s.now())
	open.Account, open.Application = reset.Account, reset.ApplicationID
	if errors.Is(err, apierr.NotFound) {
		err = errNoReset
	}
	return open, err
}

// Reset returns the reset that a token stands for, or apierr.NotFound.
func (s *Service) Reset(ctx context.Context, in directoryapi.ResetToken) (directoryapi.PasswordReset, error) {
	open, err := s.openReset(ctx, in)
	return open.PasswordReset, err
}

// ResetPassword sets the password of the account that a token stands for, and consumes all its
// open resets. One of several parallel attempts succeeds: the others wait for the account and
// find no reset. A password that is refused consumes nothing. The status of the account stays;
// what was issued to it ends by the event (docs/interface/accounts.md#password-reset), and the
// link with which a login has made an unproved copy ends with it.
func (s *Service) ResetPassword(ctx context.Context, in directoryapi.ResetPassword) (directoryapi.PasswordReset, error) {
	open, err := s.openReset(ctx, in.ResetToken)
	if err != nil {
		return open.PasswordReset, err
	}
	in.Tenant = open.Account.TenantID
	ctx = caller.WithTenant(ctx, in.Tenant)
	mailed, err := s.workflowOn(ctx, in.Tenant, open.Account.DirectoryID, directoryapi.ResetSuccess)
	if err != nil {
		return open.PasswordReset, err
	}
	err = s.changePassword(ctx, open.Account, in.Password, func(tx *store.Tx, password store.NewPassword) (err error) {
		if open.Account, err = tx.LockAccount(ctx, in.Tenant, open.Account.ID); err != nil {
			return err
		}
		used, err := tx.ConsumeReset(ctx, in.Tenant, open.digest, s.now())
		if err != nil {
			return err
		}
		if err := dropUnprovedLinks(ctx, tx, open.Account); err != nil {
			return err
		}
		if err := s.setPassword(ctx, tx, &open.Account, password); err != nil {
			return err
		}
		err = tx.Emit(ctx, events.PasswordChanged{Tenant: in.Tenant, Account: open.Account.ID, By: events.PasswordByReset})
		if err != nil || !mailed {
			return err
		}
		return tx.Emit(ctx, events.PasswordReset{
			Tenant: in.Tenant, Account: open.Account.ID, Directory: open.Account.DirectoryID, Application: used.ApplicationID,
		})
	})
	if errors.Is(err, apierr.NotFound) {
		err = errNoReset // used or deleted meanwhile
	}
	return open.PasswordReset, err
}

// dropUnprovedLinks ends the links with which logins have made a copy whose email nobody has
// proved. Whoever uses a reset token has the mailbox; the account that was copied may be that
// of a stranger who claimed its address.
func dropUnprovedLinks(ctx context.Context, tx *store.Tx, a directoryapi.Account) error {
	if hasProvedEmail(a) {
		return nil
	}
	return tx.DeleteProvisionedLinks(ctx, a)
}

// setPassword writes the password of an account that the transaction has locked.
// The resets that were open for the former are void.
func (s *Service) setPassword(ctx context.Context, tx *store.Tx, a *directoryapi.Account, password store.NewPassword) error {
	before, now := *a, s.now()
	a.PasswordModifiedAt, a.ModifiedAt = &now, now
	if err := tx.SetPassword(ctx, a.TenantID, a.ID, password); err != nil {
		return err
	}
	if err := tx.DropResets(ctx, a.TenantID, a.ID); err != nil {
		return err
	}
	return tx.UpdateAccount(ctx, before, *a)
}

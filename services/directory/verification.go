package directory

import (
	"context"
	"errors"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory/store"
)

// VerifyEmail consumes an email verification token
// (docs/interface/accounts.md#email-verification). Of concurrent attempts one succeeds; an
// unknown, used or expired token is apierr.NotFound. A change of the email makes the account
// UNVERIFIED and its token void (UpdateAccount in account.go), and sends no mail.
func (s *Service) VerifyEmail(ctx context.Context, in directoryapi.VerifyEmail) (directoryapi.Account, error) {
	var a directoryapi.Account
	digest := secure.Digest(in.Token)
	if in.Tenant.IsZero() {
		tenant, err := s.store.VerificationTenant(ctx, digest)
		if err != nil {
			return a, noVerification(err)
		}
		in.Tenant, ctx = tenant, caller.WithTenant(ctx, tenant)
	}
	err := s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		if a, err = tx.ConsumeVerification(ctx, in.Tenant, digest, s.now()); err != nil {
			return err
		}
		return tx.Emit(ctx, events.AccountVerified{Tenant: in.Tenant, Account: a.ID, Directory: a.DirectoryID})
	})
	return a, noVerification(err)
}

// Verification returns the account whose email a token would verify, and does not consume the
// token. It returns apierr.NotFound as VerifyEmail does.
func (s *Service) Verification(ctx context.Context,
	in directoryapi.VerifyEmail) (link directoryapi.MailedLink, err error) {
	digest := secure.Digest(in.Token)
	if in.Tenant.IsZero() {
		in.Tenant, err = s.store.VerificationTenant(ctx, digest)
	}
	if err != nil {
		return link, noVerification(err)
	}
	found, err := s.store.PendingVerification(caller.WithTenant(ctx, in.Tenant), in.Tenant, digest, s.now())
	return mailedLink(in.Tenant, found), noVerification(err)
}

// noVerification adds the reason to apierr.NotFound of a token.
func noVerification(err error) error {
	if errors.Is(err, apierr.NotFound) {
		return apierr.NotFound.Because("the verification token is unknown, used or expired")
	}
	return err
}

// errUnknownLogin is the error for requesting a mail for an unknown login.
var errUnknownLogin = apierr.NoSuchResource.Because(
	"the user name or email does not match a known resource: no account of it is in the " +
		"account stores") // clients compare the first half

// RequestVerification sends the verification mail of the account of a login again (resend), with the
// same token where that is unused and has not ended: the links of earlier mails keep working. No mail is
// sent for an email that is verified already, nor beyond the rate limit of anonymous requests (maillimit.go,
// docs/interface/accounts.md#email-verification); the answer says whether one is. It returns
// errUnknownLogin and apierr.VerificationDisabled.
func (s *Service) RequestVerification(
	ctx context.Context, in directoryapi.RequestVerification,
) (out directoryapi.RequestedMail, err error) {
	found, err := s.store.FindAccountByLogin(ctx, in.Tenant, in.Stores, in.Login)
	if errors.Is(err, apierr.NotFound) {
		return out, errUnknownLogin
	}
	if err != nil {
		return out, err
	}
	policy, err := s.store.CreationPolicy(ctx, in.Tenant, found.DirectoryID)
	switch {
	case err != nil:
		return out, err
	case policy.VerificationEmailStatus != directoryapi.Enabled:
		return out, apierr.VerificationDisabled.Because("the directory does not ask for the verification of emails")
	case found.EmailVerificationStatus == directoryapi.Verified:
		return out, nil
	}
	err = s.store.Tx(ctx, func(tx *store.Tx) error {
		a, err := tx.LockAccount(ctx, in.Tenant, found.ID)
		if err != nil || a.EmailVerificationStatus == directoryapi.Verified {
			return err
		}
		if in.Anonymous {
			if may, err := s.allowMail(ctx, tx, in.Tenant, a.ID, directoryapi.Verification); err != nil || !may {
				return err
			}
		}
		sealed, err := s.renewVerification(ctx, tx, a, in.Application)
		if err != nil {
			return err
		}
		out.Sent = true
		return tx.Emit(ctx, events.VerificationRequested{
			Tenant: in.Tenant, Account: a.ID, Directory: a.DirectoryID, Application: in.Application, Token: sealed,
		})
	})
	if errors.Is(err, apierr.NotFound) {
		err = errUnknownLogin // deleted meanwhile
	}
	return out, err
}

// renewVerification restarts the lifetime of an account's verification token, or makes a new token
// where that was used or has ended, and returns the sealed token.
func (s *Service) renewVerification(ctx context.Context, tx *store.Tx, a directoryapi.Account,
	application id.ID) ([]byte, error) {
	_, made := s.newVerification(a.ID, application)
	sealed, err := tx.RenewVerification(ctx, a.TenantID, a.ID, s.now(), *made.ExpiresAt)
	if !errors.Is(err, apierr.NotFound) {
		return sealed, err
	}
	return made.Sealed, tx.SetVerification(ctx, a.TenantID, a.ID, made)
}

// newVerification makes a verification token for an account, and what is stored of it. application is the one
// through which its mail is caused, if any.
func (s *Service) newVerification(account, application id.ID) (secure.Secret, *store.EmailVerification) {
	token := secure.Token(22)
	expires := s.now().Add(s.cfg.VerificationTTL)
	return token, &store.EmailVerification{Digest: secure.Digest(token),
		Sealed:    s.ring.Seal(token, events.MailTokenPurpose(account)),
		ExpiresAt: &expires, ApplicationID: application}
}

// HasVerifiedEmail reports whether a mailed token, an administrator or the provider has verified
// the email of an account. EmailAssumed is no verification.
func HasVerifiedEmail(a directoryapi.Account) bool {
	return a.EmailVerificationStatus == directoryapi.Verified && !a.EmailAssumed
}

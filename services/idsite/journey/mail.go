package journey

import (
	"context"
	"errors"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/store"
)

// Password resets and the verification of email addresses, and the links of their mails. A link has its token and
// nothing else, and the token leads to its tenant (docs/interface/mail.md#links).

// RequestReset sends a password reset mail (forgot password). Its answer and its time are the same whether the
// account exists or not (enumeration.go).
func (j *Journey) RequestReset(ctx context.Context, where applicationapi.LoginTarget, login string) error {
	return hideAccountExistence(ctx, func() error {
		_, err := j.peers.Application.RequestReset(ctx, applicationapi.LoginName{LoginTarget: where, Login: login})
		return err
	})
}

// RequestPasswordReset sends a password reset mail, in the account store that the browser names (Target).
func (l *Login) RequestPasswordReset(ctx context.Context, application id.ID, login string,
	named directoryapi.StoreName) error {
	if err := l.CheckApplication(application); err != nil {
		return err
	}
	where, err := l.Target(ctx, l.Flow, named)
	if err != nil {
		return err
	}
	return l.RequestReset(ctx, where, login)
}

// CheckReset returns an error unless a password reset token is valid in the application.
func (l *Login) CheckReset(ctx context.Context, application id.ID, token secure.Secret) error {
	if err := l.CheckApplication(application); err != nil {
		return err
	}
	return l.checkReset(ctx, l.resetToken(token))
}

func (l *Login) resetToken(token secure.Secret) applicationapi.ResetToken {
	return applicationapi.ResetToken{Tenant: l.Flow.TenantID, Application: l.Flow.ApplicationID, Token: token}
}

func (j *Journey) checkReset(ctx context.Context, in applicationapi.ResetToken) error {
	_, err := j.peers.Application.CheckReset(ctx, in)
	return err
}

// ResetPassword sets a new password with a password reset token, which it consumes. It returns
// ErrEnded for another token than the first valid one of the login: a login sets one password. A password that is
// refused can be tried again with the same token.
func (l *Login) ResetPassword(ctx context.Context, application id.ID, token, password secure.Secret) error {
	if err := l.CheckReset(ctx, application, token); err != nil {
		return err
	}
	digest := secure.Digest(token)
	if err := l.change(ctx, func(tx *store.Tx) error { return tx.ClaimReset(ctx, l.Flow, digest) }); err != nil {
		return err
	}
	return l.resetPassword(ctx, l.resetToken(token), password)
}

func (j *Journey) resetPassword(ctx context.Context, in applicationapi.ResetToken, password secure.Secret) error {
	_, err := j.peers.Application.ResetPassword(ctx, applicationapi.ResetPassword{ResetToken: in, Password: password})
	return err
}

// VerifyEmail verifies an email address with the token of a verification mail, which it consumes, or returns
// apierr.NotFound: also for the token of another tenant than the given one, if there is one.
func (j *Journey) VerifyEmail(ctx context.Context, tenant id.ID, token secure.Secret) (directoryapi.Account, error) {
	return j.peers.Directory.VerifyEmail(ctx, directoryapi.VerifyEmail{Tenant: tenant, Token: token})
}

// SendVerificationMail sends another verification mail to the account whose right password was entered in
// the login; login must be a login name of it. It returns apierr.Forbidden for any other, and the errors of
// sendVerification.
func (l *Login) SendVerificationMail(ctx context.Context, application id.ID, login string) error {
	if err := l.CheckApplication(application); err != nil {
		return err
	}
	account, err := l.Unverified(ctx, l.Flow)
	if err != nil {
		return err
	}
	login = field.LoginName(login)
	if account.ID.IsZero() || login != field.LoginName(account.Email) && login != field.LoginName(account.Username) {
		return ErrNotAllowed
	}
	return l.sendVerification(ctx, account, application)
}

// Unverified returns the account whose right password was entered in a login, although its email is not verified.
// It is zero where there is none.
func (j *Journey) Unverified(ctx context.Context, f store.Flow) (directoryapi.Account, error) {
	if f.UnverifiedID.IsZero() {
		return directoryapi.Account{}, nil
	}
	account, err := j.peers.Directory.Account(ctx, id.Ref{Tenant: f.TenantID, ID: f.UnverifiedID})
	if errors.Is(err, apierr.NotFound) {
		return directoryapi.Account{}, nil
	}
	return account, err
}

// sendVerification sends another verification mail to an account. It returns apierr.NotFound for an account
// whose email is verified meanwhile, apierr.VerificationDisabled, and apierr.TooMany beyond the limit of mails.
func (j *Journey) sendVerification(ctx context.Context, account directoryapi.Account, application id.ID) error {
	if account.EmailVerificationStatus == directoryapi.Verified {
		return apierr.NotFound.Because("the email of the account is verified")
	}
	ctx = caller.WithTenant(ctx, account.TenantID)
	requested, err := j.peers.Directory.RequestVerification(ctx, directoryapi.RequestVerification{
		Tenant: account.TenantID, Application: application, Stores: directoryOf(account), Login: account.Email,
		Anonymous: true,
	})
	if err != nil {
		return err
	}
	if !requested.Sent {
		return errTooManyMails
	}
	return nil
}

// errTooManyMails is the error for a mail beyond the limit of mails to an account.
var errTooManyMails = apierr.TooMany.Because("several mails were sent to the account within the last hour")

// directoryOf is the directory of an account as the only account store.
func directoryOf(account directoryapi.Account) []directoryapi.Store {
	return []directoryapi.Store{{Kind: directoryapi.Directories, ID: account.DirectoryID}}
}

// Link returns to what the token of a mailed link leads, which it does not consume, or apierr.NotFound.
func (j *Journey) Link(ctx context.Context, workflow directoryapi.Workflow,
	token secure.Secret) (directoryapi.MailedLink, error) {
	if workflow == directoryapi.Verification {
		link, err := j.peers.Directory.Verification(ctx, directoryapi.VerifyEmail{Token: token})
		return j.checkLink(ctx, link, err)
	}
	reset, err := j.peers.Directory.Reset(ctx, directoryapi.ResetToken{Token: token})
	return j.checkLink(ctx, directoryapi.MailedLink{Tenant: reset.Account.TenantID, Account: reset.Account,
		Application: reset.Application}, err)
}

// checkLink refuses the links of a suspended tenant. err is the result of the look-up of the link.
func (j *Journey) checkLink(ctx context.Context, link directoryapi.MailedLink, err error) (directoryapi.MailedLink, error) {
	if err != nil {
		return link, err
	}
	return link, j.CheckTenant(ctx, link.Tenant)
}

// EndedLink returns to what a link has led that was used or has expired, or apierr.NotFound for
// a token that never was.
func (j *Journey) EndedLink(ctx context.Context, workflow directoryapi.Workflow,
	token secure.Secret) (directoryapi.MailedLink, error) {
	link, err := j.peers.Directory.EndedLink(ctx, directoryapi.EndedLink{Workflow: workflow, Token: token})
	return j.checkLink(ctx, link, err)
}

// SendMailAgain sends another mail in place of one whose link has ended, to the present address of the
// account. It returns apierr.NotFound where the account needs none, and apierr.TooMany beyond the limit of mails.
func (j *Journey) SendMailAgain(ctx context.Context, workflow directoryapi.Workflow,
	ended directoryapi.MailedLink) error {
	if ended.Account.ID.IsZero() {
		return apierr.NotFound
	}
	if workflow == directoryapi.Verification {
		return j.sendVerification(ctx, ended.Account, ended.Application)
	}
	reset, err := j.peers.Directory.RequestReset(caller.WithTenant(ctx, ended.Tenant), directoryapi.RequestReset{
		Tenant: ended.Tenant, Application: ended.Application, Stores: directoryOf(ended.Account), Login: ended.Account.Email,
		Anonymous: true,
	})
	if err != nil {
		return err
	}
	if reset.Token == "" {
		return errTooManyMails
	}
	return nil
}

// ResetPasswordByLink sets a new password with the token of a password reset mail, which it consumes, and returns
// the account. It returns apierr.NotFound for an invalid token, and the errors of a new password, which do not
// consume the token.
func (j *Journey) ResetPasswordByLink(ctx context.Context, token secure.Secret,
	password field.Text) (directoryapi.Account, error) {
	reset, err := j.peers.Directory.ResetPassword(ctx, directoryapi.ResetPassword{
		ResetToken: directoryapi.ResetToken{Token: token}, Password: password,
	})
	return reset.Account, err
}

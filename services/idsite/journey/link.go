package journey

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/secure"
)

// Mailed links: email verification and password reset. A link has its token and nothing else,
// and the token leads to its tenant (docs/interface/mail.md#links).

// Link returns to what the token of a mailed link leads, which it does not consume, or apierr.NotFound.
func (j *Journey) Link(ctx context.Context, workflow directoryapi.Workflow, token secure.Secret) (directoryapi.MailedLink, error) {
	if workflow == directoryapi.Verification {
		return j.peers.Directory.Verification(ctx, directoryapi.VerifyEmail{Token: token})
	}
	reset, err := j.peers.Directory.Reset(ctx, directoryapi.ResetToken{Token: token})
	return directoryapi.MailedLink{Tenant: reset.Account.TenantID, Account: reset.Account, Application: reset.Application}, err
}

// EndedLink returns to what a link has led that was used or has expired, or apierr.NotFound for
// a token that never was.
func (j *Journey) EndedLink(ctx context.Context, workflow directoryapi.Workflow, token secure.Secret) (directoryapi.MailedLink, error) {
	return j.peers.Directory.EndedLink(ctx, directoryapi.EndedLink{Workflow: workflow, Token: token})
}

// SendMailAgain sends another mail in place of one whose link has ended, to the present address of the
// account. It returns apierr.NotFound where the account needs none, and apierr.TooMany beyond the limit of mails.
func (j *Journey) SendMailAgain(ctx context.Context, workflow directoryapi.Workflow, ended directoryapi.MailedLink) error {
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
func (j *Journey) ResetPasswordByLink(ctx context.Context, token secure.Secret, password field.Text) (directoryapi.Account, error) {
	reset, err := j.peers.Directory.ResetPassword(ctx, directoryapi.ResetPassword{
		ResetToken: directoryapi.ResetToken{Token: token}, Password: password,
	})
	return reset.Account, err
}

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

// VerifyEmail verifies an email address with the token of a verification mail, which it consumes, or returns
// apierr.NotFound: also for the token of another tenant than the given one, if there is one.
func (j *Journey) VerifyEmail(ctx context.Context, tenant id.ID, token secure.Secret) (directoryapi.Account, error) {
	return j.peers.Directory.VerifyEmail(ctx, directoryapi.VerifyEmail{Tenant: tenant, Token: token})
}

// SendVerification sends another verification mail to the account of a login name. Its answer and its time are
// the same whether the account exists or not (enumeration.go).
func (j *Journey) SendVerification(ctx context.Context, where applicationapi.LoginTarget, login string) error {
	return hideAccountExistence(ctx, func() error {
		_, err := j.peers.Application.RequestVerification(ctx, applicationapi.LoginName{LoginTarget: where, Login: login})
		return err
	})
}

// SendVerificationToUnverified sends another verification mail to the account whose right password was entered in
// a login; login must be a login name of it. It returns apierr.Forbidden for any other, and the errors of
// sendVerification.
func (j *Journey) SendVerificationToUnverified(ctx context.Context, f store.Flow, login string) error {
	if f.UnverifiedID.IsZero() {
		return ErrNotAllowed
	}
	account, err := j.Unverified(ctx, f)
	if err != nil {
		return err
	}
	login = field.LoginName(login)
	if account.ID.IsZero() || login != field.LoginName(account.Email) && login != field.LoginName(account.Username) {
		return ErrNotAllowed
	}
	return j.sendVerification(ctx, account, f.ApplicationID)
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
	requested, err := j.peers.Directory.RequestVerification(caller.WithTenant(ctx, account.TenantID), directoryapi.RequestVerification{
		Tenant: account.TenantID, Application: application, Stores: directoryOf(account), Login: account.Email, Anonymous: true,
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

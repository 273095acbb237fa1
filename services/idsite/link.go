package idsite

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

// Mailed links: email verification and password reset. A link has its token and nothing else,
// and the token leads to its tenant (docs/interface/mail.md#links). The pages are in rest/link.go,
// those of a sign-up in rest/signup.go. How a mail gets its link is in
// services/notification/maillink.go.

// MailedLink is what the page of a mailed link shows.
type MailedLink struct {
	Account directoryapi.Account           // zero: not known any more
	Rules   directoryapi.RegistrationRules // of its directory
	Site    Origin
}

// Origin is where a page belongs: its name stands above the page, and a button leads to its home.
type Origin struct {
	Name string `json:"name"`    // of the application, or else of the tenant
	Home string `json:"homeUrl"` // address of the application; "": not known
}

// originOfApplication returns the origin of the pages of an application.
func (s *Service) originOfApplication(app applicationapi.Application) Origin {
	return Origin{Name: s.displayName(app.Name, app.Builtin), Home: app.Home()}
}

// VerificationLink returns what the page of a verification mail shows, or apierr.NotFound for an
// invalid token. It does not consume the token.
func (s *Service) VerificationLink(ctx context.Context, token secure.Secret) (MailedLink, error) {
	link, err := s.peers.Directory.Verification(ctx, directoryapi.VerifyEmail{Token: token})
	if err != nil {
		return MailedLink{}, err
	}
	return s.mailedLink(ctx, link)
}

// VerifyEmail verifies an email address with the token of a verification mail, which it consumes,
// or returns apierr.NotFound.
func (s *Service) VerifyEmail(ctx context.Context, token secure.Secret) (directoryapi.Account, error) {
	return s.peers.Directory.VerifyEmail(ctx, directoryapi.VerifyEmail{Token: token})
}

// ResetLink returns what the page of a password reset mail shows, or apierr.NotFound for an invalid
// token. It does not consume the token.
func (s *Service) ResetLink(ctx context.Context, token secure.Secret) (MailedLink, error) {
	reset, err := s.peers.Directory.Reset(ctx, directoryapi.ResetToken{Token: token})
	if err != nil {
		return MailedLink{}, err
	}
	return s.mailedLink(ctx, directoryapi.MailedLink{Tenant: reset.Account.TenantID, Account: reset.Account, Application: reset.Application})
}

// EndedLink returns what the page of a link shows that was used or has expired, or apierr.NotFound for
// a token that never was.
func (s *Service) EndedLink(ctx context.Context, workflow directoryapi.Workflow, token secure.Secret) (MailedLink, error) {
	link, err := s.peers.Directory.EndedLink(ctx, directoryapi.EndedLink{Workflow: workflow, Token: token})
	if err != nil {
		return MailedLink{}, err
	}
	return s.mailedLink(ctx, link)
}

// SendMailAgain sends another mail in place of one whose link has ended, to the present address of the
// account. It returns apierr.NotFound where the account needs none, and apierr.TooMany beyond the limit of mails.
func (s *Service) SendMailAgain(ctx context.Context, workflow directoryapi.Workflow, token secure.Secret) (MailedLink, error) {
	ended, err := s.peers.Directory.EndedLink(ctx, directoryapi.EndedLink{Workflow: workflow, Token: token})
	if err == nil && ended.Account.ID.IsZero() {
		err = apierr.NotFound
	}
	if err != nil {
		return MailedLink{}, err
	}
	link, err := s.mailedLink(ctx, ended)
	if err != nil {
		return link, err
	}
	if workflow == directoryapi.Verification {
		return link, s.sendVerification(ctx, ended.Account, ended.Application)
	}
	reset, err := s.peers.Directory.RequestReset(caller.WithTenant(ctx, ended.Tenant), directoryapi.RequestReset{
		Tenant: ended.Tenant, Application: ended.Application, Stores: directoryOf(ended.Account), Login: ended.Account.Email, Anonymous: true,
	})
	if err == nil && reset.Token == "" {
		err = errTooManyMails
	}
	return link, err
}

// errTooManyMails is the error for a mail beyond the limit of mails to an account.
var errTooManyMails = apierr.TooMany.Because("several mails were sent to the account within the last hour")

// sendVerification sends another verification mail to an account. It returns apierr.NotFound for an account
// whose email is verified meanwhile, apierr.VerificationDisabled, and apierr.TooMany beyond the limit of mails.
func (s *Service) sendVerification(ctx context.Context, account directoryapi.Account, application id.ID) error {
	if account.EmailVerificationStatus == directoryapi.Verified {
		return apierr.NotFound.Because("the email of the account is verified")
	}
	requested, err := s.peers.Directory.RequestVerification(caller.WithTenant(ctx, account.TenantID), directoryapi.RequestVerification{
		Tenant: account.TenantID, Application: application, Stores: directoryOf(account), Login: account.Email, Anonymous: true,
	})
	if err == nil && !requested.Sent {
		err = errTooManyMails
	}
	return err
}

// directoryOf is the directory of an account as the only account store.
func directoryOf(account directoryapi.Account) []directoryapi.Store {
	return []directoryapi.Store{{Kind: directoryapi.Directories, ID: account.DirectoryID}}
}

func (s *Service) mailedLink(ctx context.Context, in directoryapi.MailedLink) (link MailedLink, err error) {
	ctx, link.Account = caller.WithTenant(ctx, in.Tenant), in.Account
	if !in.Account.ID.IsZero() {
		link.Rules, err = s.peers.Directory.RegistrationRules(ctx, id.Ref{Tenant: in.Tenant, ID: in.Account.DirectoryID})
		if err != nil {
			return link, err
		}
	}
	link.Site, err = s.mailOrigin(ctx, in)
	return link, err
}

// mailOrigin returns the origin of a mailed link: the application through which the mail was caused, else the
// only one that has the account, else the tenant.
func (s *Service) mailOrigin(ctx context.Context, in directoryapi.MailedLink) (Origin, error) {
	if !in.Application.IsZero() {
		app, err := s.peers.Application.Application(ctx, id.Ref{Tenant: in.Tenant, ID: in.Application})
		if !errors.Is(err, apierr.NotFound) { // deleted meanwhile
			return s.originOfApplication(app), err
		}
	}
	if !in.Account.ID.IsZero() {
		reaching, err := s.peers.Application.AccountApplications(ctx, id.Ref{Tenant: in.Tenant, ID: in.Account.ID})
		if err != nil {
			return Origin{}, err
		}
		if len(reaching.Items) == 1 {
			return s.originOfApplication(reaching.Items[0]), nil
		}
	}
	tenant, err := s.peers.Directory.Tenant(ctx, id.Ref{Tenant: in.Tenant, ID: in.Tenant})
	if errors.Is(err, apierr.NotFound) {
		err = nil // the product is named
	}
	return Origin{Name: tenant.Name}, err
}

// Homes returns the applications to which the pages of a site lead where they know of no login: those of the tenant
// that have a homeUrl.
func (s *Service) Homes(ctx context.Context, site store.Site) ([]Origin, error) {
	ctx = caller.WithTenant(ctx, site.TenantID)
	found, err := s.peers.Application.Homes(ctx, applicationapi.Homes{Tenant: site.TenantID})
	homes := make([]Origin, 0, len(found.Items))
	for _, app := range found.Items {
		homes = append(homes, s.originOfApplication(app))
	}
	return homes, err
}

// ResetPassword sets a new password with the token of a password reset mail, which it consumes, and returns the
// account. It returns apierr.NotFound for an invalid token, and the errors of a new password, which do not
// consume the token.
func (s *Service) ResetPassword(ctx context.Context, token secure.Secret, password field.Text) (directoryapi.Account, error) {
	reset, err := s.peers.Directory.ResetPassword(ctx, directoryapi.ResetPassword{ResetToken: directoryapi.ResetToken{Token: token},
		Password: password})
	return reset.Account, err
}

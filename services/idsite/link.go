package idsite

import (
	"context"
	"errors"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// Mailed links: email verification and password reset. A link has its token and nothing else,
// and the token leads to its tenant (docs/interface/mail.md#links). The pages are in rest/link.go,
// those of a sign-up in rest/signup.go. How a mail gets its link is in
// services/notification/maillink.go.

// MailedLink is what the page of a mailed link shows.
type MailedLink struct {
	Account directoryapi.Account
	Rules   directoryapi.RegistrationRules // of its directory
	Name    string                         // of the application that has caused the mail, if it is known, else of the directory
}

// VerificationLink returns what the page of a verification mail shows, or apierr.NotFound for an
// invalid token. It does not consume the token.
func (s *Service) VerificationLink(ctx context.Context, token secure.Secret) (MailedLink, error) {
	account, err := s.peers.Directory.Verification(ctx, directoryapi.VerifyEmail{Token: token})
	if err != nil {
		return MailedLink{}, err
	}
	return s.mailedLink(ctx, account, id.ID{})
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
	return s.mailedLink(ctx, reset.Account, reset.Application)
}

func (s *Service) mailedLink(ctx context.Context, account directoryapi.Account, application id.ID) (MailedLink, error) {
	ctx = caller.WithTenant(ctx, account.TenantID)
	rules, err := s.peers.Directory.RegistrationRules(ctx, id.Ref{Tenant: account.TenantID, ID: account.DirectoryID})
	link := MailedLink{Account: account, Rules: rules, Name: s.displayName(rules.Directory, rules.Builtin)}
	if err != nil || application.IsZero() {
		return link, err
	}
	app, err := s.peers.Application.Application(ctx, id.Ref{Tenant: account.TenantID, ID: application})
	if errors.Is(err, apierr.NotFound) { // deleted meanwhile
		return link, nil
	}
	link.Name = s.displayName(app.Name, app.Builtin)
	return link, err
}

// ResetPassword sets a new password with the token of a password reset mail, which it consumes. It
// returns apierr.NotFound for an invalid token, and the errors of a new password, which do not
// consume the token.
func (s *Service) ResetPassword(ctx context.Context, token secure.Secret, password field.Text) error {
	_, err := s.peers.Directory.ResetPassword(ctx, directoryapi.ResetPassword{ResetToken: directoryapi.ResetToken{Token: token},
		Password: password})
	return err
}

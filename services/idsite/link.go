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

// A request from a mailed link carries its token and nothing else: it leads to
// its tenant (docs/interface/mail.md#links).

// MailedLink is what the page of a mailed link shows.
type MailedLink struct {
	Account directoryapi.Account
	Rules   directoryapi.RegistrationRules // of its directory
	Name    string                         // of the application that asked for the mail, where it is known, else of the directory
}

// VerificationLink returns what the page of a verification mail shows, or apierr.NotFound. It does
// not consume the token.
func (s *Service) VerificationLink(ctx context.Context, token secure.Secret) (MailedLink, error) {
	account, err := s.peers.Directory.Verification(ctx, directoryapi.VerifyEmail{Token: token})
	if err != nil {
		return MailedLink{}, err
	}
	return s.mailedLink(ctx, account, id.ID{})
}

// VerifyEmail consumes the token of a verification mail, or returns apierr.NotFound.
func (s *Service) VerifyEmail(ctx context.Context, token secure.Secret) (directoryapi.Account, error) {
	return s.peers.Directory.VerifyEmail(ctx, directoryapi.VerifyEmail{Token: token})
}

// ResetLink returns what the page of a reset mail shows, or apierr.NotFound.
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
	asked, err := s.peers.Application.Application(ctx, id.Ref{Tenant: account.TenantID, ID: application})
	if errors.Is(err, apierr.NotFound) { // deleted meanwhile
		return link, nil
	}
	link.Name = s.displayName(asked.Name, asked.Builtin)
	return link, err
}

// ResetPassword sets a new password with the token of a reset mail, which it consumes. It
// returns apierr.NotFound as Reset does, and the errors of a new password, which do not
// consume the token.
func (s *Service) ResetPassword(ctx context.Context, token secure.Secret, password field.Text) error {
	_, err := s.peers.Directory.ResetPassword(ctx, directoryapi.ResetPassword{ResetToken: directoryapi.ResetToken{Token: token},
		Password: password})
	return err
}

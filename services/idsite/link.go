package idsite

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/secure"
)

// A request from a mailed link carries its token and nothing else: it leads to
// its tenant (docs/interface/mail.md#links).

// VerifyEmail spends the token of a verification mail, or returns
// apierr.NotFound.
func (s *Service) VerifyEmail(ctx context.Context, token secure.Secret) (directoryapi.Account, error) {
	return s.peers.Directory.VerifyEmail(ctx, directoryapi.VerifyEmail{Token: token})
}

// Reset returns the account of the token of a reset mail, or apierr.NotFound.
func (s *Service) Reset(ctx context.Context, token secure.Secret) (directoryapi.Account, error) {
	reset, err := s.peers.Directory.Reset(ctx, directoryapi.ResetToken{Token: token})
	return reset.Account, err
}

// SetPassword spends the token of a reset mail on a new password. It returns
// apierr.NotFound as Reset does, and the errors of a new password, which spend
// nothing.
func (s *Service) SetPassword(ctx context.Context, token secure.Secret, password field.Text) error {
	_, err := s.peers.Directory.ResetPassword(ctx, directoryapi.ResetPassword{ResetToken: directoryapi.ResetToken{Token: token},
		Password: password})
	return err
}

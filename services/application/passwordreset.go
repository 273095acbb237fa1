package application

import (
	"context"
	"errors"
	"log/slog"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/secure"
)

// maxLogin bounds a user name or email, in characters.
const maxLogin = 255

// NewPasswordReset is the body that requests a password reset (forgot password).
type NewPasswordReset struct {
	Email        field.Text                             `json:"email"` // or user name
	AccountStore field.Nullable[directoryapi.StoreName] `json:"accountStore"`
	Anonymous    bool                                   `json:"-"` // whether the caller has no API key
}

// NewPassword is the body that consumes a password reset token.
type NewPassword struct {
	Password field.Text `json:"password"`
}

// CreatePasswordReset creates a password reset token for the account of a login name, and has
// it mailed (docs/interface/accounts.md#password-reset; the rules are in
// services/directory/reset.go). It returns apierr.NoSuchResource for an unknown login name.
// Beyond the limit of mails an anonymous caller gets no mail, and no error.
func (s *Service) CreatePasswordReset(
	ctx context.Context, application directoryapi.Ref, in NewPasswordReset,
) (directoryapi.PasswordReset, error) {
	login, err := field.Required(in.Email, "email", maxLogin)
	if err != nil {
		return directoryapi.PasswordReset{}, err
	}
	stores, err := s.loginStoresOf(ctx, application, in.AccountStore)
	if err != nil {
		return directoryapi.PasswordReset{}, err
	}
	return s.directories.RequestReset(ctx, directoryapi.RequestReset{
		Tenant: application.Tenant, Application: application.ID, Stores: stores, Login: login, Anonymous: in.Anonymous,
	})
}

// loginStoresOf returns the account stores in which the login name of a password reset or a
// verification mail is looked up. It returns none, and no error, for a disabled application, a
// disabled organization, and one without account stores.
func (s *Service) loginStoresOf(
	ctx context.Context, application directoryapi.Ref, in field.Nullable[directoryapi.StoreName],
) ([]directoryapi.Store, error) {
	where, err := directoryapi.ReadStoreName(in, "accountStore")
	if err != nil {
		return nil, err
	}
	order, err := s.loginOrder(ctx, application, where)
	switch {
	case errors.Is(err, apierr.NoStores), errors.Is(err, apierr.OrgNoStores),
		errors.Is(err, apierr.OrganizationDisabled):
		return nil, nil
	case errors.Is(err, apierr.NotMapped):
		return nil, apierr.From(err).Saying("The account store does not belong to the application.")
	}
	return order.EnabledStores(), err
}

// PasswordReset returns the password reset of a token, which stays valid, or apierr.NotFound. A
// token is valid for every enabled application of its tenant.
func (s *Service) PasswordReset(
	ctx context.Context, application directoryapi.Ref, token secure.Secret,
) (directoryapi.PasswordReset, error) {
	if err := s.checkApplicationEnabled(ctx, application); err != nil {
		return directoryapi.PasswordReset{}, err
	}
	return s.directories.Reset(ctx, directoryapi.ResetToken{Tenant: application.Tenant, Token: token})
}

// ConsumePasswordReset sets the password of the account of a token, which is valid once. The
// client address is recorded as known for the login names of the account, and their lockout at
// this address ends (package throttle). It returns apierr.NotFound as PasswordReset does, and the
// errors of a new password.
func (s *Service) ConsumePasswordReset(
	ctx context.Context, application directoryapi.Ref, token secure.Secret, in NewPassword,
) (directoryapi.PasswordReset, error) {
	if err := s.checkApplicationEnabled(ctx, application); err != nil {
		return directoryapi.PasswordReset{}, err
	}
	used, err := s.directories.ResetPassword(ctx, directoryapi.ResetPassword{
		ResetToken: directoryapi.ResetToken{Tenant: application.Tenant, Token: token}, Password: in.Password,
	})
	if err != nil {
		return used, err
	}
	username, email := s.throttle.NewAttempt(ctx, application, used.Account.Username),
		s.throttle.NewAttempt(ctx, application, used.Account.Email)
	if err := s.throttle.RecordSuccess(ctx, username, email); err != nil {
		slog.WarnContext(ctx, "recording the address of a password reset as known failed", "error", err.Error())
	}
	return used, nil
}

// checkApplicationEnabled returns apierr.NotFound unless the tenant has the application and the
// application is enabled.
func (s *Service) checkApplicationEnabled(ctx context.Context, application directoryapi.Ref) error {
	a, err := s.store.Application(ctx, application.Tenant, application.ID)
	if err == nil && a.Status != directoryapi.Enabled {
		err = apierr.NotFound.Because("the application is disabled")
	}
	return err
}

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

// NewVerification is the body that asks for another verification mail.
type NewVerification struct {
	Login            field.Text                       `json:"login"` // user name or email
	AccountStore     field.Of[directoryapi.StoreName] `json:"accountStore"`
	AccountStoreHref field.Text                       `json:"account_store"` // another name of accountStore, for its href
	Anonymous        bool                             `json:"-"`             // whether the caller has no API key
}

// NewReset is the body that asks for a password reset.
type NewReset struct {
	Email        field.Text                       `json:"email"` // or user name
	AccountStore field.Of[directoryapi.StoreName] `json:"accountStore"`
	Anonymous    bool                             `json:"-"` // whether the caller has no API key
}

// NewPassword is the body that consumes a password reset token.
type NewPassword struct {
	Password field.Text `json:"password"`
}

// AskVerification lets another verification mail go to the account of a login
// (docs/interface/accounts.md#email-verification). It returns apierr.NoSuchResource
// for an unknown login and VerificationDisabled where the directory's workflow is
// off. An anonymous caller gets no mail beyond the limit, and no error.
func (s *Service) AskVerification(ctx context.Context, application directoryapi.Ref, in NewVerification) error {
	login, err := field.Required(in.Login, "login", maxLogin)
	if errors.Is(err, apierr.Required) {
		return apierr.From(err).Saying("login property is required; it cannot be null, empty, or blank.") // a literal that clients compare
	}
	if err != nil {
		return err
	}
	if in.AccountStoreHref.Given() && !in.AccountStore.Given() {
		in.AccountStore = field.Some(directoryapi.StoreName{Href: in.AccountStoreHref.Value})
	}
	stores, err := s.asked(ctx, application, in.AccountStore)
	if err != nil {
		return err
	}
	_, err = s.directories.RequestVerification(ctx, directoryapi.RequestVerification{
		Tenant: application.Tenant, Application: application.ID, Stores: stores, Login: login, Anonymous: in.Anonymous,
	})
	return err
}

// AskReset makes a password reset for the account of a login
// (docs/interface/accounts.md#password-reset). It returns apierr.NoSuchResource for
// an unknown login. An anonymous caller gets none beyond the limit, and no error.
func (s *Service) AskReset(ctx context.Context, application directoryapi.Ref, in NewReset) (directoryapi.PasswordReset, error) {
	login, err := field.Required(in.Email, "email", maxLogin)
	if err != nil {
		return directoryapi.PasswordReset{}, err
	}
	stores, err := s.asked(ctx, application, in.AccountStore)
	if err != nil {
		return directoryapi.PasswordReset{}, err
	}
	return s.directories.RequestReset(ctx, directoryapi.RequestReset{
		Tenant: application.Tenant, Application: application.ID, Stores: stores, Login: login, Anonymous: in.Anonymous,
	})
}

// asked returns the stores in which a workflow looks for a login. An application or
// an organization without stores, or behind what is disabled, has no account of that
// login.
func (s *Service) asked(
	ctx context.Context, application directoryapi.Ref, in field.Of[directoryapi.StoreName],
) ([]directoryapi.Store, error) {
	where, err := directoryapi.ReadStoreName(in, "accountStore")
	if err != nil {
		return nil, err
	}
	order, err := s.loginOrder(ctx, application, where)
	switch {
	case errors.Is(err, apierr.NoStores), errors.Is(err, apierr.OrgNoStores), errors.Is(err, apierr.OrganizationDisabled):
		return nil, nil
	case errors.Is(err, apierr.NotMapped):
		return nil, apierr.From(err).Saying("The account store does not belong to the application.")
	}
	return order.Open(), err
}

// Reset returns the password reset of a token, or apierr.NotFound. A token is its
// tenant's: every enabled application takes it.
func (s *Service) Reset(ctx context.Context, application directoryapi.Ref, token secure.Secret) (directoryapi.PasswordReset, error) {
	if err := s.wantEnabled(ctx, application); err != nil {
		return directoryapi.PasswordReset{}, err
	}
	return s.directories.Reset(ctx, directoryapi.ResetToken{Tenant: application.Tenant, Token: token})
}

// ConsumeReset sets the password of the account of a token, once. The address that
// it comes from is known for the account's logins from then on: its owner gets
// in, whatever has failed before. It returns apierr.NotFound as Reset does, and
// the errors of a new password.
func (s *Service) ConsumeReset(
	ctx context.Context, application directoryapi.Ref, token secure.Secret, in NewPassword,
) (directoryapi.PasswordReset, error) {
	if err := s.wantEnabled(ctx, application); err != nil {
		return directoryapi.PasswordReset{}, err
	}
	used, err := s.directories.ResetPassword(ctx, directoryapi.ResetPassword{
		ResetToken: directoryapi.ResetToken{Tenant: application.Tenant, Token: token}, Password: in.Password,
	})
	if err != nil {
		return used, err
	}
	username, email := s.newAttempt(
		ctx, application.Tenant, used.Account.Username,
	), s.newAttempt(
		ctx, application.Tenant, used.Account.Email,
	)
	if err := s.recordSuccess(ctx, username, email); err != nil {
		slog.WarnContext(ctx, "recording the address of a password reset as known failed", "error", err.Error())
	}
	return used, nil
}

// wantEnabled returns apierr.NotFound unless the tenant has the application and it
// is enabled: a disabled one admits no account.
func (s *Service) wantEnabled(ctx context.Context, application directoryapi.Ref) error {
	a, err := s.store.Application(ctx, application.Tenant, application.ID)
	if err == nil && a.Status != directoryapi.Enabled {
		err = apierr.NotFound.Because("the application is disabled")
	}
	return err
}

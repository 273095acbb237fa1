package application

import (
	"context"
	"errors"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
)

// NewVerification is the body that requests another verification mail.
type NewVerification struct {
	Login        field.Text                             `json:"login"` // user name or email
	AccountStore field.Nullable[directoryapi.StoreName] `json:"accountStore"`
	// the href of accountStore; an alternative to it
	AccountStoreHref field.Text `json:"account_store"`
	Anonymous        bool       `json:"-"` // whether the caller has no API key
}

// SendVerificationMail sends another verification mail to the account of a login name (email
// verification, docs/interface/accounts.md#email-verification; the rules are in
// services/directory/verification.go). It returns apierr.NoSuchResource for an unknown login
// name, and VerificationDisabled where the directory verifies no emails. Beyond the limit of
// mails an anonymous caller gets no mail, and no error.
func (s *Service) SendVerificationMail(ctx context.Context, application directoryapi.Ref, in NewVerification) error {
	login, err := field.Required(in.Login, "login", maxLogin)
	if errors.Is(err, apierr.Required) {
		// a literal that clients compare
		return apierr.From(err).Saying("login property is required; it cannot be null, empty, or blank.")
	}
	if err != nil {
		return err
	}
	if in.AccountStoreHref.Given() && !in.AccountStore.Given() {
		in.AccountStore = field.Some(directoryapi.StoreName{Href: in.AccountStoreHref.Value})
	}
	stores, err := s.loginStoresOf(ctx, application, in.AccountStore)
	if err != nil {
		return err
	}
	_, err = s.directories.RequestVerification(ctx, directoryapi.RequestVerification{
		Tenant: application.Tenant, Application: application.ID, Stores: stores, Login: login, Anonymous: in.Anonymous,
	})
	return err
}

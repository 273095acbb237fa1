package application

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/services/application/store"
)

// The methods below are called by the hosted login and the Client API, for users without an API
// key: look-up of applications and login directories, registration, verification mails and
// password resets.

// ApplicationByDNSLabel returns the application whose Client API has the label.
func (s *Service) ApplicationByDNSLabel(ctx context.Context,
	in applicationapi.DNSLabel) (applicationapi.Application, error) {
	return s.store.ApplicationByDNSLabel(ctx, strings.ToLower(in.Label))
}

// LoginDirectories returns the directories in which a login name is looked up, in the order of
// login, and, unless the request is Brief, the directory of the default account store.
func (s *Service) LoginDirectories(ctx context.Context,
	in applicationapi.LoginTarget) (applicationapi.LoginDirectories, error) {
	application, where := refOf(in), storeName(in)
	order, err := s.store.CachedLoginOrder(ctx, application.Tenant, application.ID)
	if err != nil {
		return applicationapi.LoginDirectories{}, err
	}
	out := applicationapi.LoginDirectories{Status: order.Status, HasOrganizations: slices.ContainsFunc(order.Mapped,
		func(mapped store.MappedStore) bool { return !mapped.OrganizationID.IsZero() })}
	order, err = s.narrowIfEnabled(ctx, application, order, where)
	if errors.Is(err, apierr.NoStores) || errors.Is(err, apierr.OrgNoStores) {
		return out, nil
	}
	if err != nil {
		return applicationapi.LoginDirectories{}, err
	}
	if in.DirectOnly && order.NamedOrganization.IsZero() {
		order = order.Filter(func(mapped store.MappedStore) bool { return mapped.OrganizationID.IsZero() })
	}
	out.Organization = order.NamedOrganization
	for _, mapped := range order.Mapped {
		if mapped.OrganizationID == order.NamedOrganization {
			out.NameKey = mapped.NameKey
		}
	}
	for _, accountStore := range order.EnabledStores() {
		if accountStore.Kind == directoryapi.Directories && !slices.Contains(out.Directories, accountStore.ID) {
			out.Directories = append(out.Directories, accountStore.ID)
		}
	}
	if in.Brief {
		return out, nil
	}
	owner := application
	rule := applicationOwner.accounts
	if !order.NamedOrganization.IsZero() {
		owner.ID, rule = order.NamedOrganization, organizationOwner.accounts
	}
	found, err := s.findDefaultStore(ctx, owner, rule)
	if apierr.IsRefusal(err) {
		return out, nil
	}
	out.Default = found.directory.ID
	return out, err
}

// Register creates an account for a user without an API key (self-service registration on the
// hosted pages and the Client API).
func (s *Service) Register(ctx context.Context, in applicationapi.Register) (directoryapi.Account, error) {
	application, where := refOf(in.LoginTarget), storeName(in.LoginTarget)
	if err := s.checkApplicationEnabled(ctx, application); err != nil {
		return directoryapi.Account{}, err
	}
	in.Account.Status, in.Account.EmailVerificationStatus = field.Text{}, field.Text{}
	account := directoryapi.CreateAccount{Application: application.ID, Account: in.Account, Workflow: true,
		SelfService: true}
	if where == (directoryapi.StoreName{}) {
		return s.createAccount(ctx, application, applicationOwner.accounts, account)
	}
	order, err := s.loginOrder(ctx, application, where)
	if err != nil {
		return directoryapi.Account{}, err
	}
	if !order.NamedOrganization.IsZero() {
		return s.createAccount(ctx, id.Ref{Tenant: in.Tenant, ID: order.NamedOrganization}, organizationOwner.accounts,
			account)
	}
	found, err := s.findAccountStore(ctx, in.Tenant, order.Mapped[0].Store())
	if err != nil {
		return directoryapi.Account{}, err
	}
	if !found.enabled {
		return directoryapi.Account{}, apierr.AccountStoreDisabled.Because("the account store is disabled")
	}
	account.Tenant, account.ID, account.Directory, account.Group = in.Tenant, id.New(s.now()), found.directory.ID,
		found.group()
	return s.directories.CreateAccount(ctx, account)
}

// RequestVerification sends another verification mail, for a user without an API key.
func (s *Service) RequestVerification(ctx context.Context, in applicationapi.LoginName) (directoryapi.Empty, error) {
	return directoryapi.Empty{}, s.SendVerificationMail(
		ctx, refOf(in.LoginTarget),
		NewVerification{Login: field.Some(in.Login), AccountStore: optionalStoreName(storeName(in.LoginTarget)),
			Anonymous: true},
	)
}

// RequestReset sends a password reset mail (forgot password), for a user without an API key.
func (s *Service) RequestReset(ctx context.Context, in applicationapi.LoginName) (directoryapi.Empty, error) {
	_, err := s.CreatePasswordReset(ctx, refOf(in.LoginTarget), NewPasswordReset{
		Email: field.Some(in.Login), AccountStore: optionalStoreName(storeName(in.LoginTarget)), Anonymous: true,
	})
	return directoryapi.Empty{}, err
}

// LoginAccount returns the account whose password a login compares, for a caller that has verified it.
func (s *Service) LoginAccount(ctx context.Context, in applicationapi.LoginName) (directoryapi.Account, error) {
	stores, err := s.loginStoresOf(ctx, refOf(in.LoginTarget), optionalStoreName(storeName(in.LoginTarget)))
	if err != nil {
		return directoryapi.Account{}, err
	}
	explained, err := s.directories.ExplainLogin(ctx,
		directoryapi.ExplainLogin{Tenant: in.Tenant, Stores: stores, Login: in.Login})
	if err == nil && explained.Found == nil {
		err = apierr.NotFound
	}
	if err != nil {
		return directoryapi.Account{}, err
	}
	return explained.Found.Account, nil
}

// CheckReset returns the password reset of a token, which stays valid.
func (s *Service) CheckReset(ctx context.Context, in applicationapi.ResetToken) (directoryapi.PasswordReset, error) {
	return s.PasswordReset(ctx, id.Ref{Tenant: in.Tenant, ID: in.Application}, in.Token)
}

// ResetPassword sets a new password by a token, which is valid once.
func (s *Service) ResetPassword(ctx context.Context,
	in applicationapi.ResetPassword) (directoryapi.PasswordReset, error) {
	return s.ConsumePasswordReset(
		ctx, id.Ref{Tenant: in.Tenant, ID: in.Application}, in.Token,
		NewPassword{Password: field.Some(in.Password.Reveal())},
	)
}

// AccountApplications returns the applications that have an account in their account stores, at
// most list.MaxLimit.
func (s *Service) AccountApplications(ctx context.Context,
	account directoryapi.Ref) (applicationapi.Applications, error) {
	page, err := s.ListAccountApplications(ctx, account, list.Query{Limit: list.MaxLimit})
	return applicationapi.Applications{Items: page.Items}, err
}

// Homes returns the enabled applications of a tenant that have a HomeURL of their own, the oldest first.
func (s *Service) Homes(ctx context.Context, in applicationapi.Homes) (applicationapi.Applications, error) {
	items, err := s.store.Homes(ctx, in.Tenant, applicationapi.MaxHomes)
	return applicationapi.Applications{Items: items}, err
}

// refOf returns the reference to the application.
func refOf(in applicationapi.LoginTarget) id.Ref {
	return id.Ref{Tenant: in.Tenant, ID: in.Application}
}

func storeName(in applicationapi.LoginTarget) directoryapi.StoreName {
	return directoryapi.StoreName{Href: in.AccountStore.Href, NameKey: in.NameKey}
}

func optionalStoreName(where directoryapi.StoreName) field.Nullable[directoryapi.StoreName] {
	if where == (directoryapi.StoreName{}) {
		return field.Nullable[directoryapi.StoreName]{}
	}
	return field.Some(where)
}

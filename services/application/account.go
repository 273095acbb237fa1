package application

import (
	"context"
	"errors"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
)

// ListAccounts returns a page of the accounts in all the stores of an application,
// each once, or apierr.NotFound for the application.
func (s *Service) ListAccounts(ctx context.Context, application id.Ref, query list.Query) (list.Page[directoryapi.Account], error) {
	owner, err := s.Application(ctx, application)
	if err != nil {
		return list.Page[directoryapi.Account]{}, err
	}
	order, err := s.store.LoginOrder(ctx, application.Tenant, application.ID)
	if err != nil {
		return list.Page[directoryapi.Account]{}, err
	}
	query = query.Of(owner.CreatedAt, owner.ModifiedAt)
	return s.directories.ListAccounts(ctx, directoryapi.ListAccounts{Tenant: application.Tenant, Stores: order.Stores(), Query: query})
}

// ListOrganizationAccounts returns a page of the accounts in all the stores of an
// organization, each once, or apierr.NotFound for the organization.
func (s *Service) ListOrganizationAccounts(
	ctx context.Context, organization id.Ref, query list.Query,
) (list.Page[directoryapi.Account], error) {
	owner, err := s.Organization(ctx, organization)
	if err != nil {
		return list.Page[directoryapi.Account]{}, err
	}
	stores, err := s.store.OrganizationStores(ctx, organization.Tenant, organization.ID)
	if err != nil {
		return list.Page[directoryapi.Account]{}, err
	}
	query = query.Of(owner.CreatedAt, owner.ModifiedAt)
	return s.directories.ListAccounts(ctx, directoryapi.ListAccounts{Tenant: organization.Tenant, Stores: stores, Query: query})
}

// NewAccount makes an account, from a client's body, in the default account
// store of an application. It returns apierr.NoAccountStore when there is none,
// apierr.AccountStoreDisabled when it is disabled, OrgWithoutAccountStore or
// OrgDisabledAccountStore when an organization is the default store and has
// none, and the errors of a body.
func (s *Service) NewAccount(ctx context.Context, application id.Ref, in directoryapi.CreateAccount) (directoryapi.Account, error) {
	if _, err := s.Application(ctx, application); err != nil {
		return directoryapi.Account{}, err
	}
	in.Application = application.ID
	return s.newAccount(ctx, application, applications.accounts, in)
}

// NewOrganizationAccount makes an account in the default account store of an
// organization. It returns apierr.OrgNoAccountStore when there is none,
// OrgAccountStoreDisabled when it is disabled, and the errors of a body.
func (s *Service) NewOrganizationAccount(
	ctx context.Context, organization id.Ref, in directoryapi.CreateAccount,
) (directoryapi.Account, error) {
	if _, err := s.Organization(ctx, organization); err != nil {
		return directoryapi.Account{}, err
	}
	return s.newAccount(ctx, organization, organizations.accounts, in)
}

func (s *Service) newAccount(
	ctx context.Context, through id.Ref, want defaultStore, in directoryapi.CreateAccount,
) (directoryapi.Account, error) {
	at, err := s.defaultStoreOf(ctx, through, want)
	if err != nil {
		return directoryapi.Account{}, err
	}
	in.Tenant, in.ID, in.Directory, in.Group = through.Tenant, id.New(s.now()), at.directory.ID, at.group()
	account, err := s.directories.CreateAccount(ctx, in)
	if errors.Is(err, apierr.NotFound) {
		err = want.gone()
	}
	return account, err
}

package application

import (
	"context"
	"errors"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/services/application/store"
)

// AccountLister returns the function that lists the accounts in all account stores of an
// application, or of an organization, each account once; an unknown owner is apierr.NotFound.
func (s *Service) AccountLister(kind store.OwnerKind) func(context.Context, id.Ref,
	list.Query) (list.Page[directoryapi.Account], error) {
	return func(ctx context.Context, owner id.Ref, query list.Query) (list.Page[directoryapi.Account], error) {
		stores, query, err := s.accountStoresOf(ctx, kind, owner, query)
		if err != nil {
			return list.Page[directoryapi.Account]{}, err
		}
		return s.directories.ListAccounts(ctx,
			directoryapi.ListAccounts{Tenant: owner.Tenant, Stores: stores, Query: query})
	}
}

// AccountCreator returns the function that creates an account, from a client's body, in the
// default account store of an application, or of an organization. For an application it
// returns apierr.NoAccountStore where there is no default account store, AccountStoreDisabled
// where the default account store is disabled, OrgWithoutAccountStore or
// OrgDisabledAccountStore where it is an organization whose own default account store is
// missing or disabled, and the errors of a body; for an organization OrgNoAccountStore and
// OrgAccountStoreDisabled.
func (s *Service) AccountCreator(
	kind store.OwnerKind,
) func(context.Context, id.Ref, directoryapi.CreateAccount) (directoryapi.Account, error) {
	return func(ctx context.Context, owner id.Ref, in directoryapi.CreateAccount) (directoryapi.Account, error) {
		if _, err := s.findOwner(ctx, kind, owner); err != nil {
			return directoryapi.Account{}, err
		}
		if kind == store.ApplicationKind {
			in.Application = owner.ID
		}
		return s.createAccount(ctx, owner, mappingOwners[kind].accounts, in)
	}
}

func (s *Service) createAccount(
	ctx context.Context, owner id.Ref, rule defaultStoreRule, in directoryapi.CreateAccount,
) (directoryapi.Account, error) {
	found, err := s.findDefaultStore(ctx, owner, rule)
	if err != nil {
		return directoryapi.Account{}, err
	}
	in.Tenant, in.ID, in.Directory, in.Group = owner.Tenant, id.New(s.now()), found.directory.ID, found.group()
	account, err := s.directories.CreateAccount(ctx, in)
	if errors.Is(err, apierr.NotFound) {
		err = rule.deletedError()
	}
	return account, err
}

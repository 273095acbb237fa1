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

// ListAccounts returns a function that lists the accounts in all the stores of an
// owner of that kind, each once; an unknown owner is apierr.NotFound.
func (s *Service) ListAccounts(kind store.OwnerKind) func(context.Context, id.Ref, list.Query) (list.Page[directoryapi.Account], error) {
	return func(ctx context.Context, of id.Ref, query list.Query) (list.Page[directoryapi.Account], error) {
		stores, query, err := s.storesOf(ctx, kind, of, query)
		if err != nil {
			return list.Page[directoryapi.Account]{}, err
		}
		return s.directories.ListAccounts(ctx, directoryapi.ListAccounts{Tenant: of.Tenant, Stores: stores, Query: query})
	}
}

// NewAccount returns a function that makes an account, from a client's body, in the
// default account store of an owner of that kind. Of an application it returns
// apierr.NoAccountStore when there is none, AccountStoreDisabled when it is disabled,
// OrgWithoutAccountStore or OrgDisabledAccountStore when an organization is the default
// store and has none, and the errors of a body; of an organization OrgNoAccountStore
// and OrgAccountStoreDisabled.
func (s *Service) NewAccount(kind store.OwnerKind) func(context.Context, id.Ref, directoryapi.CreateAccount) (directoryapi.Account, error) {
	return func(ctx context.Context, through id.Ref, in directoryapi.CreateAccount) (directoryapi.Account, error) {
		if _, err := s.ownerOf(ctx, kind, through); err != nil {
			return directoryapi.Account{}, err
		}
		if kind == store.ApplicationKind {
			in.Application = through.ID
		}
		return s.newAccount(ctx, through, owners[kind].accounts, in)
	}
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

package application

import (
	"context"
	"errors"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
)

// ListAccounts gives a page of the accounts in all the stores of an
// application, or apierr.NotFound for the application.
func (s *Service) ListAccounts(ctx context.Context, application directoryapi.Ref, query list.Query) (list.Page[directoryapi.Account], error) {
	reach, err := s.store.Reach(ctx, application.Tenant, application.ID)
	if err != nil {
		return list.Page[directoryapi.Account]{}, err
	}
	return s.directories.ListAccounts(ctx, directoryapi.ListAccounts{Tenant: application.Tenant, Stores: reach.Stores(), Query: query})
}

// NewAccount makes an account, from a client's body, in the default account
// store of in.Application. It returns apierr.NoAccountStore when there is none,
// apierr.AccountStoreDisabled when it is disabled, and the errors of a body.
func (s *Service) NewAccount(ctx context.Context, in directoryapi.CreateAccount) (directoryapi.Account, error) {
	a, err := s.store.Application(ctx, in.Tenant, in.Application)
	if err != nil {
		return directoryapi.Account{}, err
	}
	if a.DefaultAccountStore.IsZero() {
		return directoryapi.Account{}, apierr.NoAccountStore.Because("the application %q has no default account store", a.Name)
	}
	gone := apierr.NoAccountStore.Because("the default account store of the application %q was deleted", a.Name)
	m, err := s.store.Mapping(ctx, in.Tenant, a.DefaultAccountStore)
	if err == nil {
		in.ID, in.Directory = id.New(s.now()), m.StoreID
		var account directoryapi.Account
		if account, err = s.directories.CreateAccount(ctx, in); err == nil {
			return account, nil
		}
	}
	if errors.Is(err, apierr.NotFound) {
		err = gone
	}
	return directoryapi.Account{}, err
}

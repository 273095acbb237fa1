package directory

import (
	"context"
	"errors"
	"slices"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/changefeed"
	"github.com/doorward/doorward/services/directory/store"
)

// CheckAccess reports whether an account may act now, through one of the account stores of an
// application (authorization at every use of a token). A disabled account keeps its tokens, and
// they are refused here at their next use: apierr.TokenAccountDisabled. Its caller is
// services/application/access.go; the answers are cached in store/access.go.
func (s *Service) CheckAccess(ctx context.Context, in directoryapi.CheckAccess) (directoryapi.Access, error) {
	found, err := s.access(ctx, in)
	switch {
	case errors.Is(err, apierr.NotFound):
		return directoryapi.Access{}, apierr.TokenAccountDisabled.Because("the account was deleted")
	case err != nil:
		return directoryapi.Access{}, err
	case found.Status != directoryapi.Enabled:
		return directoryapi.Access{Account: found.Account}, apierr.TokenAccountDisabled.Because("the account has the status %s", found.Status)
	}
	membership, err := s.storeMembership(ctx, found.Account, in.Stores)
	access := directoryapi.Access{Account: found.Account, Direct: membership.direct}
	switch {
	case err != nil:
		return access, err
	case !membership.isMember:
		return access, apierr.TokenAccountUnreachable.Because("the account is in no account store of the application")
	case !membership.isEnabled || found.DirectoryStatus != directoryapi.Enabled:
		return access, apierr.TokenStoreDisabled.Because(
			"the directory of the account, or each group through which it is reached, is disabled")
	}
	access.Account, err = s.WithVerificationToken(found.Account)
	return access, err
}

// AccessChanges returns the accounts and directories whose access has changed since a position
// (changefeed), so that other services can invalidate what they have cached.
func (s *Service) AccessChanges(_ context.Context, after changefeed.Position) (changefeed.Page, error) {
	return s.store.AccessChanges(after), nil
}

// access reads as much of an account as CheckAccess returns, or apierr.NotFound.
func (s *Service) access(ctx context.Context, in directoryapi.CheckAccess) (store.AccountWithDirectory, error) {
	var a store.Access
	var err error
	switch {
	case !in.Brief:
		return s.store.AccountWithDirectory(ctx, in.Tenant, in.Account)
	case in.Recent:
		a, err = s.store.RecentAccess(ctx, in.Tenant, in.Account)
	default:
		a, err = s.store.Access(ctx, in.Tenant, in.Account)
	}
	account := directoryapi.Account{TenantID: in.Tenant, ID: in.Account, DirectoryID: a.DirectoryID, Status: a.Status,
		PasswordModifiedAt: a.PasswordModifiedAt, CreatedAt: a.CreatedAt}
	return store.AccountWithDirectory{Account: account, DirectoryStatus: a.DirectoryStatus}, err
}

// storeMembership says how some account stores contain an account.
type storeMembership struct {
	isMember  bool // at least one store contains the account
	isEnabled bool // at least one such store is no disabled group
	direct    bool // the account's directory is one of the stores
}

// storeMembership returns how the account stores contain an account. Groups matter only where the
// directory of the account is not among the stores.
func (s *Service) storeMembership(ctx context.Context, a directoryapi.Account, stores []directoryapi.Store) (storeMembership, error) {
	directories, groups := splitStores(stores)
	if slices.Contains(directories, a.DirectoryID) {
		return storeMembership{true, true, true}, nil
	}
	if len(groups) == 0 {
		return storeMembership{}, nil
	}
	count, err := s.store.CountMemberships(ctx, a.TenantID, a.ID, groups)
	return storeMembership{isMember: count.Groups > 0, isEnabled: count.Enabled > 0}, err
}

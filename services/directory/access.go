package directory

import (
	"context"
	"errors"
	"slices"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/id"
)

// CheckAccess reports whether an account may act now, through one of the account stores of an
// application (authorization at every use of a token). A disabled account keeps its tokens, and
// they are refused here at their next use: apierr.TokenAccountDisabled. Its caller is
// services/application/access.go; the answers are cached in store/access.go.
func (s *Service) CheckAccess(ctx context.Context, in directoryapi.CheckAccess) (directoryapi.Access, error) {
	found, err := s.store.Access(ctx, in.Tenant, in.Account)
	switch {
	case errors.Is(err, apierr.NotFound):
		return directoryapi.Access{}, apierr.TokenAccountDisabled.Because("the account was deleted")
	case err != nil:
		return directoryapi.Access{}, err
	case found.Status != directoryapi.Enabled:
		return directoryapi.Access{}, apierr.TokenAccountDisabled.Because("the account has the status %s", found.Status)
	}
	access := directoryapi.Access{DependsOn: []id.ID{in.Account, found.DirectoryID}, Account: directoryapi.Account{
		TenantID: in.Tenant, ID: in.Account, DirectoryID: found.DirectoryID, Status: found.Status,
		PasswordModifiedAt: found.PasswordModifiedAt, CreatedAt: found.CreatedAt,
	}}
	membership, err := s.storeMembership(ctx, &access, in.Stores)
	switch {
	case err != nil:
		return access, err
	case !membership.isMember:
		return access, apierr.TokenAccountUnreachable.Because("the account is in no account store of the application")
	case !membership.isEnabled || found.DirectoryStatus != directoryapi.Enabled:
		return access, apierr.TokenStoreDisabled.Because(
			"the directory of the account, or each group through which it is reached, is disabled")
	}
	return access, nil
}

// AccessChanges returns what has changed of the access of accounts since a position, so that other
// services can invalidate the answers that they keep (cache.Answers).
func (s *Service) AccessChanges(_ context.Context, after cache.Position) (cache.Page, error) {
	return s.store.AccessChanges(after), nil
}

// storeMembership says how some account stores contain an account.
type storeMembership struct {
	isMember  bool // at least one store contains the account
	isEnabled bool // at least one such store is no disabled group
}

// storeMembership returns how the account stores contain an account. Groups matter only where the
// directory of the account is not among the stores: then the access depends on them, too.
func (s *Service) storeMembership(ctx context.Context, a *directoryapi.Access,
	stores []directoryapi.Store) (storeMembership, error) {
	directories, groups := splitStores(stores)
	if slices.Contains(directories, a.DirectoryID) {
		return storeMembership{true, true}, nil
	}
	if len(groups) == 0 {
		return storeMembership{}, nil
	}
	a.DependsOn = append(a.DependsOn, groups...)
	count, err := s.store.CountMemberships(ctx, a.TenantID, a.ID, groups)
	return storeMembership{isMember: count.Groups > 0, isEnabled: count.Enabled > 0}, err
}

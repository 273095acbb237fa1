package application

import (
	"context"
	"errors"
	"slices"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/application/store"
)

// CheckAccess checks at each use of a token whether its account may act through the
// application now. The tokens of a disabled account are not deleted: they are refused at
// their next use, by this check, until the account is enabled again. So are those of a
// disabled directory, group, organization or application, and after the removal of a mapping.
// The check that the token itself is valid and not revoked is in services/oauth/token.go.
//
// A disabled application is reported after a disabled account and before a disabled account
// store (docs/interface/errors.md#failed-validation).
func (s *Service) CheckAccess(ctx context.Context, in applicationapi.CheckAccess) (directoryapi.Access, error) {
	order, err := s.store.CachedLoginOrder(ctx, in.Tenant, in.Application)
	if err != nil {
		return directoryapi.Access{}, err
	}
	return s.checkAccessInOrder(ctx, in, order)
}

// AccessChanges returns the applications and organizations that have changed since a position, so that other
// services can invalidate the answers that they keep (cache.Answers).
func (s *Service) AccessChanges(_ context.Context, after cache.Position) (cache.Page, error) {
	return s.store.LoginOrderChanges(after), nil
}

// checkAccessInOrder is CheckAccess with the application's login order. For an account whose
// login named an organization, only the account stores of that organization are searched,
// though the account may be in other stores of the application.
func (s *Service) checkAccessInOrder(
	ctx context.Context, in applicationapi.CheckAccess, order store.LoginOrder,
) (directoryapi.Access, error) {
	searched := order
	if !in.Organization.IsZero() {
		searched = order.Filter(func(m store.MappedStore) bool { return m.OrganizationID == in.Organization })
	}
	access, err := s.checkAccess(ctx, in, searched)
	if errors.Is(err, apierr.TokenAccountUnreachable) && !in.Organization.IsZero() {
		err = apierr.TokenAccountUnreachable.Because(
			"the account is no longer in the organization that the login named, or the application no longer reaches " +
				"that")
	}
	known := err == nil || errors.Is(err, apierr.TokenStoreDisabled) || errors.Is(err, apierr.TokenAccountUnreachable)
	if known && order.Status != directoryapi.Enabled {
		return directoryapi.Access{}, apierr.TokenApplicationDisabled.Because("the application is disabled")
	}
	return access, err
}

// checkAccess looks for the account in the account stores of enabled organizations and in those
// that are mapped to the application itself. An account that only a disabled organization has
// is apierr.TokenStoreDisabled.
func (s *Service) checkAccess(ctx context.Context, in applicationapi.CheckAccess,
	order store.LoginOrder) (directoryapi.Access, error) {
	enabled := order.EnabledStores()
	request := directoryapi.CheckAccess{Tenant: in.Tenant, Account: in.Account, Stores: enabled}
	access, err := s.directories.CheckAccess(ctx, request)
	access.DependsOn = slices.Concat(access.DependsOn, order.Organizations(), []id.ID{order.Application})
	if !errors.Is(err, apierr.TokenAccountUnreachable) {
		return access, err
	}
	if request.Stores = order.Stores(); len(enabled) == len(request.Stores) {
		return access, err
	}
	if _, err := s.directories.CheckAccess(ctx, request); err != nil {
		return directoryapi.Access{}, err
	}
	return directoryapi.Access{}, apierr.TokenStoreDisabled.Because(
		"the organization through which the account is reached is disabled")
}

// Administrator returns an account if it is an administrator of its tenant: an account of the
// built-in application, the console (docs/interface/authentication.md#what-a-key-may-do).
func (s *Service) Administrator(ctx context.Context, in directoryapi.Ref) (directoryapi.Access, error) {
	order, err := s.store.BuiltinLoginOrder(ctx, in.Tenant)
	if err != nil {
		return directoryapi.Access{}, err
	}
	return s.checkAccess(ctx, applicationapi.CheckAccess{Tenant: in.Tenant, Account: in.ID}, order)
}

// HasAccount reports whether an account is in an account store of the application, whatever the
// status of the account, the store and the application.
func (s *Service) HasAccount(ctx context.Context,
	in applicationapi.HasAccountRequest) (applicationapi.HasAccountAnswer, error) {
	order, err := s.store.LoginOrder(ctx, in.Tenant, in.Application)
	if err != nil {
		return applicationapi.HasAccountAnswer{}, err
	}
	storesOfAccount, err := s.directories.StoresOf(ctx, directoryapi.Ref{Tenant: in.Tenant, ID: in.Account})
	if errors.Is(err, apierr.NotFound) {
		return applicationapi.HasAccountAnswer{}, nil
	}
	stores := order.Stores()
	isMapped := func(store directoryapi.Store) bool { return slices.Contains(stores, store) }
	return applicationapi.HasAccountAnswer{Reached: slices.ContainsFunc(storesOfAccount.Stores, isMapped)}, err
}

package application

import (
	"context"
	"errors"
	"slices"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/changefeed"
	"github.com/doorward/doorward/services/application/store"
)

// maxOrganizations is the most organizations of an application whose answers may be kept:
// each answer depends on all of them.
const maxOrganizations = 32

// CheckAccess is the check of an account's status at each use of a token: it reports whether
// the account may act through the application now. A disabled application is reported after
// the account's own state and before that of its store
// (docs/interface/errors.md#failed-validation).
func (s *Service) CheckAccess(ctx context.Context, in applicationapi.CheckAccess) (applicationapi.Access, error) {
	read := s.store.CachedLoginOrder
	if in.Keep {
		read = s.store.LoginOrder
	}
	order, err := read(ctx, in.Tenant, in.Application)
	if err != nil {
		return applicationapi.Access{}, err
	}
	found, err := s.checkAccessIn(ctx, in, order)
	access := applicationapi.Access{Account: found.Account}
	if organizations := order.Organizations(); err == nil && in.Keep && found.Direct && len(organizations) <= maxOrganizations {
		access.DependsOn = append(organizations, in.Application, found.ID, found.DirectoryID)
	}
	return access, err
}

// AccessChanges returns the applications and organizations that have changed.
func (s *Service) AccessChanges(_ context.Context, after changefeed.Position) (changefeed.Page, error) {
	return s.store.LoginOrderChanges(after), nil
}

// checkAccessIn is CheckAccess for the application's login order. An account whose login
// named an organization acts as one of it: that it is reached otherwise too does not count.
func (s *Service) checkAccessIn(ctx context.Context, in applicationapi.CheckAccess, order store.LoginOrder) (directoryapi.Access, error) {
	within := order
	if !in.Organization.IsZero() {
		within = order.Within(func(p store.MappedStore) bool { return p.OrganizationID == in.Organization })
	}
	account, err := s.checkAccess(ctx, in, within)
	if errors.Is(err, apierr.TokenAccountUnreachable) && !in.Organization.IsZero() {
		err = apierr.TokenAccountUnreachable.Because(
			"the account is no longer in the organization that the login named, or the application no longer reaches that")
	}
	known := err == nil || errors.Is(err, apierr.TokenStoreDisabled) || errors.Is(err, apierr.TokenAccountUnreachable)
	if known && order.Status != directoryapi.Enabled {
		return directoryapi.Access{}, apierr.TokenApplicationDisabled.Because("the application is disabled")
	}
	return account, err
}

// checkAccess looks for the account in the stores that are open. One that only a
// disabled organization reaches is in a disabled store.
func (s *Service) checkAccess(ctx context.Context, in applicationapi.CheckAccess, order store.LoginOrder) (directoryapi.Access, error) {
	open := order.Open()
	asked := directoryapi.CheckAccess{Tenant: in.Tenant, Account: in.Account, Stores: open, Brief: in.Brief, Recent: in.Recent}
	account, err := s.directories.CheckAccess(ctx, asked)
	if !errors.Is(err, apierr.TokenAccountUnreachable) {
		return account, err
	}
	if asked.Stores = order.Stores(); len(open) == len(asked.Stores) {
		return account, err
	}
	asked.Brief = true
	_, err = s.directories.CheckAccess(ctx, asked)
	if err == nil {
		err = apierr.TokenStoreDisabled.Because("the organization through which the account is reached is disabled")
	}
	return directoryapi.Access{}, err
}

// Administrator returns an account that administers its tenant
// (docs/interface/authentication.md#what-a-key-may-do). It does not use the cache,
// so that a change of the built-in application's mappings shows at once.
func (s *Service) Administrator(ctx context.Context, in directoryapi.Ref) (directoryapi.Account, error) {
	order, err := s.store.BuiltinLoginOrder(ctx, in.Tenant)
	if err != nil {
		return directoryapi.Account{}, err
	}
	access, err := s.checkAccess(ctx, applicationapi.CheckAccess{Tenant: in.Tenant, Account: in.ID}, order)
	return access.Account, err
}

// Reaches reports whether an account store of the application holds an account.
func (s *Service) Reaches(ctx context.Context, in applicationapi.Reaches) (applicationapi.Reached, error) {
	order, err := s.store.LoginOrder(ctx, in.Tenant, in.Application)
	if err != nil {
		return applicationapi.Reached{}, err
	}
	of, err := s.directories.StoresOf(ctx, directoryapi.Ref{Tenant: in.Tenant, ID: in.Account})
	if errors.Is(err, apierr.NotFound) {
		return applicationapi.Reached{}, nil
	}
	stores := order.Stores()
	holds := func(store directoryapi.Store) bool { return slices.Contains(stores, store) }
	return applicationapi.Reached{Reached: slices.ContainsFunc(of.Stores, holds)}, err
}

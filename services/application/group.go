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

// GroupLister returns the function that lists the groups of an application, or of an
// organization: the groups in its directories, and the groups that are its account stores. An
// unknown owner is apierr.NotFound.
func (s *Service) GroupLister(kind store.OwnerKind) func(context.Context, id.Ref,
	list.Query) (list.Page[directoryapi.Group], error) {
	return func(ctx context.Context, owner id.Ref, query list.Query) (list.Page[directoryapi.Group], error) {
		stores, query, err := s.accountStoresOf(ctx, kind, owner, query)
		if err != nil {
			return list.Page[directoryapi.Group]{}, err
		}
		return s.directories.ListGroups(ctx,
			directoryapi.ListGroups{Tenant: owner.Tenant, Stores: stores, Query: query})
	}
}

// GroupCreator returns the function that creates a group in the default group store of an
// application, or of an organization. For an application it returns apierr.NoGroupStore where
// there is no default group store, GroupStoreDisabled where the default group store is
// disabled, OrgWithoutGroupStore or OrgDisabledGroupStore where it is an organization whose own
// default group store is missing or disabled, and the errors of a body; for an organization
// OrgNoGroupStore and OrgGroupStoreDisabled.
func (s *Service) GroupCreator(kind store.OwnerKind) func(context.Context, id.Ref,
	directoryapi.NewGroup) (directoryapi.Group, error) {
	return func(ctx context.Context, owner id.Ref, in directoryapi.NewGroup) (directoryapi.Group, error) {
		if _, err := s.findOwner(ctx, kind, owner); err != nil {
			return directoryapi.Group{}, err
		}
		rule := mappingOwners[kind].groups
		found, err := s.findDefaultStore(ctx, owner, rule)
		if err != nil {
			return directoryapi.Group{}, err
		}
		g, err := s.directories.CreateGroup(
			ctx, directoryapi.CreateGroup{Tenant: owner.Tenant, ID: id.New(s.now()), Directory: found.directory.ID,
				Group: in},
		)
		if errors.Is(err, apierr.NotFound) {
			err = rule.deletedError()
		}
		return g, err
	}
}

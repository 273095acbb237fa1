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

// ListGroups returns a function that lists the groups of an owner of that kind: those of
// its directories, and the groups that are its stores. An unknown owner is
// apierr.NotFound.
func (s *Service) ListGroups(kind store.OwnerKind) func(context.Context, id.Ref, list.Query) (list.Page[directoryapi.Group], error) {
	return func(ctx context.Context, of id.Ref, query list.Query) (list.Page[directoryapi.Group], error) {
		stores, query, err := s.storesOf(ctx, kind, of, query)
		if err != nil {
			return list.Page[directoryapi.Group]{}, err
		}
		return s.directories.ListGroups(ctx, directoryapi.ListGroups{Tenant: of.Tenant, Stores: stores, Query: query})
	}
}

// NewGroup returns a function that makes a group in the default group store of an owner
// of that kind. Of an application it returns apierr.NoGroupStore when there is none,
// GroupStoreDisabled when it is disabled, OrgWithoutGroupStore or OrgDisabledGroupStore
// when an organization is the default store and has none, and the errors of a body; of
// an organization OrgNoGroupStore and OrgGroupStoreDisabled.
func (s *Service) NewGroup(kind store.OwnerKind) func(context.Context, id.Ref, directoryapi.NewGroup) (directoryapi.Group, error) {
	return func(ctx context.Context, through id.Ref, in directoryapi.NewGroup) (directoryapi.Group, error) {
		if _, err := s.ownerOf(ctx, kind, through); err != nil {
			return directoryapi.Group{}, err
		}
		want := owners[kind].groups
		at, err := s.defaultStoreOf(ctx, through, want)
		if err != nil {
			return directoryapi.Group{}, err
		}
		g, err := s.directories.CreateGroup(
			ctx, directoryapi.CreateGroup{Tenant: through.Tenant, ID: id.New(s.now()), Directory: at.directory.ID, Group: in},
		)
		if errors.Is(err, apierr.NotFound) {
			err = want.gone()
		}
		return g, err
	}
}

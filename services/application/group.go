package application

import (
	"context"
	"errors"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
)

// ListGroups returns a page of the groups of an application: those of its
// directories, and the groups that are its stores.
func (s *Service) ListGroups(ctx context.Context, application id.Ref, query list.Query) (list.Page[directoryapi.Group], error) {
	owner, err := s.Application(ctx, application)
	if err != nil {
		return list.Page[directoryapi.Group]{}, err
	}
	order, err := s.store.LoginOrder(ctx, application.Tenant, application.ID)
	if err != nil {
		return list.Page[directoryapi.Group]{}, err
	}
	query = query.Of(owner.CreatedAt, owner.ModifiedAt)
	return s.directories.ListGroups(ctx, directoryapi.ListGroups{Tenant: application.Tenant, Stores: order.Stores(), Query: query})
}

// ListOrganizationGroups returns a page of the groups of an organization, as
// ListGroups does for an application.
func (s *Service) ListOrganizationGroups(
	ctx context.Context, organization id.Ref, query list.Query,
) (list.Page[directoryapi.Group], error) {
	owner, err := s.Organization(ctx, organization)
	if err != nil {
		return list.Page[directoryapi.Group]{}, err
	}
	stores, err := s.store.OrganizationStores(ctx, organization.Tenant, organization.ID)
	if err != nil {
		return list.Page[directoryapi.Group]{}, err
	}
	query = query.Of(owner.CreatedAt, owner.ModifiedAt)
	return s.directories.ListGroups(ctx, directoryapi.ListGroups{Tenant: organization.Tenant, Stores: stores, Query: query})
}

// NewGroup makes a group in the default group store of an application. It
// returns apierr.NoGroupStore when there is none, GroupStoreDisabled when it is
// disabled, OrgWithoutGroupStore or OrgDisabledGroupStore when an organization
// is the default store and has none, and the errors of a body.
func (s *Service) NewGroup(ctx context.Context, application id.Ref, in directoryapi.NewGroup) (directoryapi.Group, error) {
	if _, err := s.Application(ctx, application); err != nil {
		return directoryapi.Group{}, err
	}
	return s.newGroup(ctx, application, applications.groups, in)
}

// NewOrganizationGroup makes a group in the default group store of an
// organization. It returns apierr.OrgNoGroupStore when there is none,
// OrgGroupStoreDisabled when it is disabled, and the errors of a body.
func (s *Service) NewOrganizationGroup(ctx context.Context, organization id.Ref, in directoryapi.NewGroup) (directoryapi.Group, error) {
	if _, err := s.Organization(ctx, organization); err != nil {
		return directoryapi.Group{}, err
	}
	return s.newGroup(ctx, organization, organizations.groups, in)
}

func (s *Service) newGroup(ctx context.Context, through id.Ref, want defaultStore, in directoryapi.NewGroup) (directoryapi.Group, error) {
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

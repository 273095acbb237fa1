package application

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/services/application/store"
)

// owner is a kind of resource that account stores are mapped to, with the
// interface's refusals for it.
type owner struct {
	kind store.OwnerKind
	noun string

	alreadyMapped      *apierr.Error
	mirrorAccountStore *apierr.Error
	mirrorGroupAsStore *apierr.Error
	mirrorGroupStore   *apierr.Error
	groupAsGroupStore  *apierr.Error
	directoryTaken     *apierr.Error
	socialMapped       *apierr.Error
	accounts, groups   defaultStore
}

// defaultStore is what an owner's default store is asked for, with the refusals
// when there is none or it is disabled.
type defaultStore struct {
	flag           store.Default
	none, disabled *apierr.Error
	// within is that of an organization which is the default store itself.
	within *defaultStore
}

var applications = owner{
	kind: store.ApplicationKind, noun: "application",
	alreadyMapped: apierr.AlreadyMapped, directoryTaken: apierr.DirectoryTaken, socialMapped: apierr.DirectoryTypeMapped,
	mirrorAccountStore: apierr.MirrorAccountStore, mirrorGroupAsStore: apierr.MirrorGroupAsStore,
	mirrorGroupStore: apierr.MirrorGroupStore, groupAsGroupStore: apierr.GroupAsGroupStore,
	accounts: defaultStore{store.ForAccounts, apierr.NoAccountStore, apierr.AccountStoreDisabled,
		&defaultStore{store.ForAccounts, apierr.OrgWithoutAccountStore, apierr.OrgDisabledAccountStore, nil}},
	groups: defaultStore{store.ForGroups, apierr.NoGroupStore, apierr.GroupStoreDisabled,
		&defaultStore{store.ForGroups, apierr.OrgWithoutGroupStore, apierr.OrgDisabledGroupStore, nil}},
}

var organizations = owner{
	kind: store.OrganizationKind, noun: "organization",
	alreadyMapped: apierr.OrgAlreadyMapped, directoryTaken: apierr.OrgDirectoryTaken, socialMapped: apierr.OrgDirectoryTypeMapped,
	mirrorAccountStore: apierr.OrgMirrorAccountStore, mirrorGroupAsStore: apierr.OrgMirrorGroupAsStore,
	mirrorGroupStore: apierr.OrgMirrorGroupStore, groupAsGroupStore: apierr.OrgGroupAsGroupStore,
	accounts: defaultStore{store.ForAccounts, apierr.OrgNoAccountStore, apierr.OrgAccountStoreDisabled, nil},
	groups:   defaultStore{store.ForGroups, apierr.OrgNoGroupStore, apierr.OrgGroupStoreDisabled, nil},
}

var owners = map[store.OwnerKind]owner{applications.kind: applications, organizations.kind: organizations}

// name is the kind as it stands in an href.
func (o owner) name() string { return string(o.kind) }

// ownerOf returns an owner of that kind, or apierr.NotFound.
func (s *Service) ownerOf(ctx context.Context, kind store.OwnerKind, at id.Ref) (list.Parent, error) {
	if kind == store.OrganizationKind {
		return s.Organization(ctx, at)
	}
	return s.Application(ctx, at)
}

// storesOf returns the stores of an owner in the order of login, with a query as one of
// a collection of the owner. An unknown owner is apierr.NotFound.
func (s *Service) storesOf(ctx context.Context, kind store.OwnerKind, at id.Ref, query list.Query) ([]directoryapi.Store, list.Query,
	error) {
	owner, err := s.ownerOf(ctx, kind, at)
	if err != nil {
		return nil, query, err
	}
	query = query.Of(owner.Times())
	if kind == store.OrganizationKind {
		stores, err := s.store.OrganizationStores(ctx, at.Tenant, at.ID)
		return stores, query, err
	}
	order, err := s.store.LoginOrder(ctx, at.Tenant, at.ID)
	return order.Stores(), query, err
}

// admits refuses the flags of a mapping that its store cannot have: the accounts
// and groups of a mirror are made in its source, and a group holds no groups.
func (o owner) admits(at accountStore, in MappingChange) error {
	isGroup, isMirror := at.isGroup(), at.isMirror()
	switch forAccounts, forGroups := in.IsDefaultAccountStore.Or(false), in.IsDefaultGroupStore.Or(false); {
	case forAccounts && isMirror && isGroup:
		return o.mirrorGroupAsStore.Because("a group of a mirror directory cannot be the default account store of an %s", o.noun)
	case forAccounts && isMirror:
		return o.mirrorAccountStore.Because("a mirror directory cannot be the default account store of an %s", o.noun)
	case forGroups && isGroup:
		return o.groupAsGroupStore.Because("a group cannot be the default group store of an %s", o.noun)
	case forGroups && isMirror:
		return o.mirrorGroupStore.Because("a mirror directory cannot be the default group store of an %s", o.noun)
	}
	return nil
}

package application

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/services/application/store"
)

// mappingOwner describes one of the two kinds of resource that account stores are mapped to,
// applications and organizations, with the errors of each kind.
type mappingOwner struct {
	kind store.OwnerKind
	noun string

	alreadyMapped      *apierr.Error
	mirrorAccountStore *apierr.Error
	mirrorGroupAsStore *apierr.Error
	mirrorGroupStore   *apierr.Error
	groupAsGroupStore  *apierr.Error
	directoryTaken     *apierr.Error
	socialMapped       *apierr.Error
	accounts, groups   defaultStoreRule
}

// defaultStoreRule says by which flag the default account store, or default group store, of
// an owner is found, with the errors where there is none or where it is disabled.
type defaultStoreRule struct {
	flag                     store.DefaultFlag
	noneError, disabledError *apierr.Error
	// organizationRule is used where the default store of an application is an organization.
	organizationRule *defaultStoreRule
}

var applicationOwner = mappingOwner{
	kind: store.ApplicationKind, noun: "application",
	alreadyMapped: apierr.AlreadyMapped, directoryTaken: apierr.DirectoryTaken,
	socialMapped:       apierr.DirectoryTypeMapped,
	mirrorAccountStore: apierr.MirrorAccountStore, mirrorGroupAsStore: apierr.MirrorGroupAsStore,
	mirrorGroupStore: apierr.MirrorGroupStore, groupAsGroupStore: apierr.GroupAsGroupStore,
	accounts: defaultStoreRule{store.ForAccounts, apierr.NoAccountStore, apierr.AccountStoreDisabled,
		&defaultStoreRule{store.ForAccounts, apierr.OrgWithoutAccountStore, apierr.OrgDisabledAccountStore, nil}},
	groups: defaultStoreRule{store.ForGroups, apierr.NoGroupStore, apierr.GroupStoreDisabled,
		&defaultStoreRule{store.ForGroups, apierr.OrgWithoutGroupStore, apierr.OrgDisabledGroupStore, nil}},
}

var organizationOwner = mappingOwner{
	kind: store.OrganizationKind, noun: "organization",
	alreadyMapped: apierr.OrgAlreadyMapped, directoryTaken: apierr.OrgDirectoryTaken,
	socialMapped:       apierr.OrgDirectoryTypeMapped,
	mirrorAccountStore: apierr.OrgMirrorAccountStore, mirrorGroupAsStore: apierr.OrgMirrorGroupAsStore,
	mirrorGroupStore: apierr.OrgMirrorGroupStore, groupAsGroupStore: apierr.OrgGroupAsGroupStore,
	accounts: defaultStoreRule{store.ForAccounts, apierr.OrgNoAccountStore, apierr.OrgAccountStoreDisabled, nil},
	groups:   defaultStoreRule{store.ForGroups, apierr.OrgNoGroupStore, apierr.OrgGroupStoreDisabled, nil},
}

var mappingOwners = map[store.OwnerKind]mappingOwner{applicationOwner.kind: applicationOwner,
	organizationOwner.kind: organizationOwner}

// hrefKind returns the kind as it stands in an href.
func (o mappingOwner) hrefKind() string { return string(o.kind) }

// findOwner returns an application or an organization, or apierr.NotFound.
func (s *Service) findOwner(ctx context.Context, kind store.OwnerKind, ref id.Ref) (list.Parent, error) {
	if kind == store.OrganizationKind {
		return s.Organization(ctx, ref)
	}
	return s.Application(ctx, ref)
}

// accountStoresOf returns the account stores of an owner in the order of login. It also
// returns the query with the times of the owner, for a collection of the owner. An unknown
// owner is apierr.NotFound.
func (s *Service) accountStoresOf(
	ctx context.Context, kind store.OwnerKind, ref id.Ref, query list.Query,
) ([]directoryapi.Store, list.Query, error) {
	owner, err := s.findOwner(ctx, kind, ref)
	if err != nil {
		return nil, query, err
	}
	query = query.WithParentTimes(owner.Times())
	if kind == store.OrganizationKind {
		stores, err := s.store.OrganizationStores(ctx, ref.Tenant, ref.ID)
		return stores, query, err
	}
	order, err := s.store.LoginOrder(ctx, ref.Tenant, ref.ID)
	return order.Stores(), query, err
}

// checkDefaultFlags refuses to make a store the default where nothing can be created in it:
// the accounts and groups of a mirror directory are created in its source (LDAP, a social or OAuth
// provider, a SAML identity provider), and a group has no groups.
func (o mappingOwner) checkDefaultFlags(at accountStore, in MappingChange) error {
	isGroup, isMirror := at.isGroup(), at.isMirror()
	switch forAccounts, forGroups := in.IsDefaultAccountStore.Or(false), in.IsDefaultGroupStore.Or(false); {
	case forAccounts && isMirror && isGroup:
		return o.mirrorGroupAsStore.Because(
			"a group of a mirror directory cannot be the default account store of an %s",
			o.noun)
	case forAccounts && isMirror:
		return o.mirrorAccountStore.Because("a mirror directory cannot be the default account store of an %s", o.noun)
	case forGroups && isGroup:
		return o.groupAsGroupStore.Because("a group cannot be the default group store of an %s", o.noun)
	case forGroups && isMirror:
		return o.mirrorGroupStore.Because("a mirror directory cannot be the default group store of an %s", o.noun)
	}
	return nil
}

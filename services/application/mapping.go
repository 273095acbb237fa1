package application

import (
	"cmp"
	"context"
	"errors"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/services/application/store"
)

// NewMapping is the body that maps an account store to an application.
type NewMapping struct {
	Application  field.Link `json:"application"`
	AccountStore field.Link `json:"accountStore"`
	MappingChange
}

// NewOrganizationMapping is the body that maps an account store to an
// organization.
type NewOrganizationMapping struct {
	Organization field.Link `json:"organization"`
	AccountStore field.Link `json:"accountStore"`
	MappingChange
}

// MappingChange is the body that updates a mapping. The owner and the account store of a
// mapping cannot be changed.
type MappingChange struct {
	ListIndex             field.Int  `json:"listIndex"`
	IsDefaultAccountStore field.Bool `json:"isDefaultAccountStore"`
	IsDefaultGroupStore   field.Bool `json:"isDefaultGroupStore"`
}

// MappingReader returns the function that reads an account store mapping of an application, or
// of an organization; an unknown mapping is apierr.NotFound.
func (s *Service) MappingReader(kind store.OwnerKind) func(context.Context, id.Ref) (store.Mapping, error) {
	return func(ctx context.Context, in id.Ref) (store.Mapping, error) {
		return s.mapping(ctx, kind, in)
	}
}

// mapping reads a mapping whose account store exists. Where the store was deleted, its mappings go with the answer,
// before the event of the deletion comes: no resource links to one that was just said to be gone.
func (s *Service) mapping(ctx context.Context, kind store.OwnerKind, at id.Ref) (store.Mapping, error) {
	m, err := s.store.Mapping(ctx, at.Tenant, kind, at.ID)
	if err != nil {
		return m, err
	}
	_, err = s.findAccountStore(ctx, m.TenantID, m.Store())
	if !errors.Is(err, apierr.NotFound) {
		return m, err
	}
	err = s.store.Tx(ctx, func(tx *store.Tx) error { return deleteStoreMappings(ctx, tx, m.TenantID, m.StoreID) })
	return m, cmp.Or(err, error(apierr.NotFound))
}

// withoutDeletedStores returns a page of an owner's mappings whose account stores exist.
func (s *Service) withoutDeletedStores(
	ctx context.Context, tenant id.ID, read func() (list.Page[store.Mapping], error),
) (list.Page[store.Mapping], error) {
	storeID := func(m store.Mapping) id.ID { return m.StoreID }
	find := func(m store.Mapping) error {
		_, err := s.findAccountStore(ctx, tenant, m.Store())
		return err
	}
	return list.WithoutDeleted(read, storeID, find, func(deleted []id.ID) error {
		for _, one := range deleted {
			if err := s.store.Tx(ctx, func(tx *store.Tx) error {
				return deleteStoreMappings(ctx, tx, tenant,
					one)
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// ListApplicationMappings returns a page of an application's mappings, or
// apierr.NotFound for the application.
func (s *Service) ListApplicationMappings(ctx context.Context, application id.Ref,
	query list.Query) (list.Page[store.Mapping], error) {
	return s.withoutDeletedStores(ctx, application.Tenant, func() (list.Page[store.Mapping], error) {
		return list.PageOf(ctx, s.Application, s.store.OwnerMappings, application, query)
	})
}

// ListOrganizationMappings returns a page of an organization's mappings, or
// apierr.NotFound for the organization.
func (s *Service) ListOrganizationMappings(ctx context.Context, organization id.Ref,
	query list.Query) (list.Page[store.Mapping], error) {
	return s.withoutDeletedStores(ctx, organization.Tenant, func() (list.Page[store.Mapping], error) {
		return list.PageOf(ctx, s.Organization, s.store.OwnerMappings, organization, query)
	})
}

// DirectoryMappingLister returns the function that lists the mappings of a directory to
// applications, or to organizations; an unknown directory is apierr.NotFound.
func (s *Service) DirectoryMappingLister(kind store.OwnerKind) func(context.Context, id.Ref,
	list.Query) (list.Page[store.Mapping], error) {
	return func(ctx context.Context, directory id.Ref, query list.Query) (list.Page[store.Mapping], error) {
		parent, err := s.directories.Directory(ctx, directory)
		if err != nil {
			return list.Page[store.Mapping]{}, err
		}
		return s.store.StoreMappings(ctx, kind, directory, query.WithParentTimes(parent.CreatedAt, parent.ModifiedAt))
	}
}

// ListGroupMappings returns a page of the mappings of a group to applications, or
// apierr.NotFound for the group.
func (s *Service) ListGroupMappings(ctx context.Context, group id.Ref,
	query list.Query) (list.Page[store.Mapping], error) {
	parent, err := s.directories.Group(ctx, group)
	if err != nil {
		return list.Page[store.Mapping]{}, err
	}
	return s.store.StoreMappings(ctx, store.ApplicationKind, group,
		query.WithParentTimes(parent.CreatedAt, parent.ModifiedAt))
}

// CreateMapping maps an account store to an application
// (docs/interface/applications.md#account-store-mappings). A link that does not lead to an
// application, or an account store, of the tenant is apierr.Reference. A store that is mapped
// to the application already is apierr.AlreadyMapped.
func (s *Service) CreateMapping(ctx context.Context, tenant id.ID, in NewMapping) (store.Mapping, error) {
	return s.createMapping(ctx, tenant, applicationOwner, in.Application, in.AccountStore, in.MappingChange)
}

// CreateOrganizationMapping maps a directory or a group to an organization, as CreateMapping
// does to an application. A mapping of an organization is refused with apierr.OrgInsideOrg.
func (s *Service) CreateOrganizationMapping(ctx context.Context, tenant id.ID,
	in NewOrganizationMapping) (store.Mapping, error) {
	return s.createMapping(ctx, tenant, organizationOwner, in.Organization, in.AccountStore, in.MappingChange)
}

func (s *Service) createMapping(
	ctx context.Context, tenant id.ID, owner mappingOwner, ownerLink, storeLink field.Link, in MappingChange,
) (store.Mapping, error) {
	now := s.now()
	m := store.Mapping{TenantID: tenant, ID: id.New(now), OwnerKind: owner.kind, CreatedAt: now, ModifiedAt: now}
	if err := field.First(requireLink(ownerLink, owner.noun), requireLink(storeLink, "accountStore")); err != nil {
		return m, err
	}
	if err := requireAbsoluteURL(storeLink, "accountStore"); err != nil {
		return m, err
	}
	ownerRef, err := s.ParseReference(ownerLink, owner.noun, string(owner.kind))
	if err != nil {
		return m, err
	}
	storeRef, err := s.ParseReference(storeLink, "accountStore", storeKinds...)
	if err != nil {
		return m, err
	}
	m.OwnerID, m.StoreKind, m.StoreID = ownerRef.ID, storeRef.Kind, storeRef.ID
	if err := s.checkMappedStore(ctx, owner, &m, in); err != nil {
		return m, err
	}
	err = s.store.Tx(ctx, func(tx *store.Tx) error {
		if err := lockMappedOrganization(ctx, tx, m); err != nil {
			return err
		}
		err := tx.LockOwner(ctx, owner.kind, m.Owner())
		if errors.Is(err, apierr.NotFound) {
			return apierr.Reference.Because("%s: there is no %s %q", owner.noun, owner.noun, ownerLink.Value.Href)
		}
		if err != nil {
			return err
		}
		if err := checkSingleProvider(ctx, tx, owner, m); err != nil {
			return err
		}
		m, err = insertMapping(ctx, tx, m, in)
		return err
	})
	if errors.Is(err, apierr.Exists) {
		err = owner.alreadyMapped.Because("the account store is mapped to the %s already", owner.noun)
	}
	if err != nil {
		return m, err
	}
	// The store may have been deleted since the first check, and the event of its deletion may
	// have been handled before the mapping was inserted. The store is therefore read again, and
	// its mappings are deleted if it does not exist.
	if err := s.checkMappedStore(ctx, owner, &m, in); errors.Is(err, apierr.Reference) {
		return m, errors.Join(err, s.store.Tx(ctx,
			func(tx *store.Tx) error { return deleteStoreMappings(ctx, tx, tenant, m.StoreID) }))
	}
	return m, nil
}

// checkMappedStore checks that the account store of a mapping exists and may have the default
// flags of the body, and sets the DirectoryID and the SocialProvider of the mapping.
func (s *Service) checkMappedStore(ctx context.Context, owner mappingOwner, m *store.Mapping, in MappingChange) error {
	if m.StoreKind == organizationOwner.hrefKind() && owner.kind == store.OrganizationKind {
		return apierr.OrgInsideOrg
	}
	found, err := s.findAccountStore(ctx, m.TenantID, m.Store())
	if errors.Is(err, apierr.NotFound) {
		return apierr.Reference.Because("accountStore: there is no account store %q", s.base.To(m.StoreKind, m.StoreID))
	}
	if err != nil {
		return err
	}
	m.DirectoryID, m.SocialProvider = found.directory.ID, found.socialProvider()
	return owner.checkDefaultFlags(found, in)
}

// lockMappedOrganization locks the organization that a mapping maps, so that it is not deleted
// before the transaction ends. Every transaction locks an organization before an application
// (lock order, no deadlock). Other stores are not locked: they are in the directory service.
func lockMappedOrganization(ctx context.Context, tx *store.Tx, m store.Mapping) error {
	if m.StoreKind != organizationOwner.hrefKind() {
		return nil
	}
	err := tx.ShareLockOrganization(ctx, m.TenantID, m.StoreID)
	if errors.Is(err, apierr.NotFound) {
		err = apierr.Reference.Because("accountStore: the organization was deleted")
	}
	return err
}

// checkSingleProvider refuses a second directory of the same social provider for an owner.
func checkSingleProvider(ctx context.Context, tx *store.Tx, owner mappingOwner, m store.Mapping) error {
	if m.SocialProvider == nil {
		return nil
	}
	taken, err := tx.HasSocialMapping(ctx, m)
	if err == nil && taken {
		err = owner.socialMapped.Because("the %s has a directory of the provider %q already", owner.noun,
			*m.SocialProvider)
	}
	return err
}

// insertMapping inserts a mapping after the others of its owner, and then moves it to the
// listIndex of the body.
func insertMapping(ctx context.Context, tx *store.Tx, m store.Mapping, in MappingChange) (store.Mapping, error) {
	count, err := tx.CountMappings(ctx, m.Owner())
	if err != nil {
		return m, err
	}
	m.ListIndex = count
	m.IsDefaultAccountStore, m.IsDefaultGroupStore = in.IsDefaultAccountStore.Or(false),
		in.IsDefaultGroupStore.Or(false)
	if err := tx.ClearOtherDefaults(ctx, m); err != nil {
		return m, err
	}
	if err := tx.InsertMapping(ctx, m); err != nil {
		return m, err
	}
	return moveMapping(ctx, tx, m, in.ListIndex, count+1)
}

// moveMapping moves a mapping to a listIndex among the count mappings of its owner. A negative
// listIndex is taken as 0, and one that is too great as the last.
func moveMapping(ctx context.Context, tx *store.Tx, m store.Mapping, listIndex field.Int, count int) (store.Mapping,
	error) {
	index := min(max(listIndex.Or(m.ListIndex), 0), count-1)
	if index == m.ListIndex {
		return m, nil
	}
	if err := tx.MoveMapping(ctx, m, index); err != nil {
		return m, err
	}
	m.ListIndex = index
	return m, nil
}

// MappingUpdater returns the function that changes the listIndex or the default flags of a
// mapping of an application, or of an organization. A flag that is set is cleared in the other
// mappings of the owner.
func (s *Service) MappingUpdater(kind store.OwnerKind) func(context.Context, id.Ref,
	MappingChange) (store.Mapping, error) {
	return func(ctx context.Context, at id.Ref, in MappingChange) (m store.Mapping, err error) {
		found, err := s.mapping(ctx, kind, at)
		if err != nil {
			return found, err
		}
		if in.IsDefaultAccountStore.Or(false) || in.IsDefaultGroupStore.Or(false) {
			if err := s.checkMappedStore(ctx, mappingOwners[kind], &found, in); err != nil {
				return found, err
			}
		}
		err = s.withLockedMapping(ctx, found, func(tx *store.Tx, locked store.Mapping) error {
			m, err = s.applyMappingChange(ctx, tx, locked, in)
			return err
		})
		return m, err
	}
}

// applyMappingChange writes the members of a body into a mapping. The transaction must have
// the lock on the owner.
func (s *Service) applyMappingChange(ctx context.Context, tx *store.Tx, m store.Mapping,
	in MappingChange) (store.Mapping, error) {
	count, err := tx.CountMappings(ctx, m.Owner())
	if err != nil {
		return m, err
	}
	if m, err = moveMapping(ctx, tx, m, in.ListIndex, count); err != nil {
		return m, err
	}
	if in.IsDefaultAccountStore.Present {
		m.IsDefaultAccountStore = in.IsDefaultAccountStore.Or(false)
	}
	if in.IsDefaultGroupStore.Present {
		m.IsDefaultGroupStore = in.IsDefaultGroupStore.Or(false)
	}
	m.ModifiedAt = s.now()
	if err := tx.ClearOtherDefaults(ctx, m); err != nil {
		return m, err
	}
	return m, tx.UpdateMapping(ctx, m)
}

// MappingDeleter returns the function that deletes a mapping of an application, or of an
// organization. The mappings after it move up by one; a default flag that it had is not given
// to another mapping.
func (s *Service) MappingDeleter(kind store.OwnerKind) func(context.Context, id.Ref) error {
	return func(ctx context.Context, at id.Ref) error {
		found, err := s.store.Mapping(ctx, at.Tenant, kind, at.ID)
		if err != nil {
			return err
		}
		if err := s.checkConsoleMapping(ctx, found); err != nil {
			return err
		}
		return s.withLockedMapping(ctx, found, func(tx *store.Tx, m store.Mapping) error {
			return tx.DeleteMapping(ctx, m)
		})
	}
}

// checkConsoleMapping refuses to delete the mapping of the administrators directory to the
// console application: no API key would be accepted any more, and nobody could undo it.
func (s *Service) checkConsoleMapping(ctx context.Context, m store.Mapping) error {
	if m.OwnerKind != store.ApplicationKind || m.StoreKind != directoryapi.Directories {
		return nil
	}
	owner, err := s.store.Application(ctx, m.TenantID, m.OwnerID)
	if err != nil || !owner.Builtin {
		return err
	}
	d, err := s.directories.Directory(ctx, directoryapi.Ref{Tenant: m.TenantID, ID: m.StoreID})
	if err == nil && d.Builtin {
		err = apierr.BadRequest.Because(
			"the administrators directory stays an account store of the console application")
	}
	return err
}

// withLockedMapping runs fn in a transaction that has locked the mapping's owner, with the
// mapping as it is under the lock.
func (s *Service) withLockedMapping(ctx context.Context, found store.Mapping,
	fn func(*store.Tx, store.Mapping) error) error {
	return s.store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.LockOwner(ctx, found.OwnerKind, found.Owner()); err != nil {
			return err
		}
		m, err := tx.Mapping(ctx, found.TenantID, found.ID)
		if err != nil {
			return err
		}
		return fn(tx, m)
	})
}

// deleteStoreMappings deletes all mappings of an account store, such as after its deletion.
func deleteStoreMappings(ctx context.Context, tx *store.Tx, tenant, storeID id.ID) error {
	owners, err := tx.LockStoreOwners(ctx, tenant, storeID)
	if err != nil {
		return err
	}
	return tx.DeleteStoreMappings(ctx, tenant, storeID, owners...)
}

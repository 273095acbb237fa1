package application

import (
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

// MappingChange is the body that updates a mapping. What it maps is fixed.
type MappingChange struct {
	ListIndex             field.Int  `json:"listIndex"`
	IsDefaultAccountStore field.Bool `json:"isDefaultAccountStore"`
	IsDefaultGroupStore   field.Bool `json:"isDefaultGroupStore"`
}

// Mapping returns a function that reads a mapping of an owner of that kind; an
// unknown one is apierr.NotFound.
func (s *Service) Mapping(kind store.OwnerKind) func(context.Context, id.Ref) (store.Mapping, error) {
	return func(ctx context.Context, in id.Ref) (store.Mapping, error) {
		return s.store.Mapping(ctx, in.Tenant, kind, in.ID)
	}
}

// ApplicationMappings returns a page of an application's mappings, or
// apierr.NotFound for the application.
func (s *Service) ApplicationMappings(ctx context.Context, application id.Ref, query list.Query) (list.Page[store.Mapping], error) {
	return list.PageOf(ctx, s.Application, s.store.OwnerMappings, application, query)
}

// OrganizationMappings returns a page of an organization's mappings, or
// apierr.NotFound for the organization.
func (s *Service) OrganizationMappings(ctx context.Context, organization id.Ref, query list.Query) (list.Page[store.Mapping], error) {
	return list.PageOf(ctx, s.Organization, s.store.OwnerMappings, organization, query)
}

// DirectoryMappings returns a function that lists the mappings of a directory to
// owners of that kind; an unknown directory is apierr.NotFound.
func (s *Service) DirectoryMappings(kind store.OwnerKind) func(context.Context, id.Ref, list.Query) (list.Page[store.Mapping], error) {
	return func(ctx context.Context, directory id.Ref, query list.Query) (list.Page[store.Mapping], error) {
		owner, err := s.directories.Directory(ctx, directory)
		if err != nil {
			return list.Page[store.Mapping]{}, err
		}
		return s.store.StoreMappings(ctx, kind, directory, query.Of(owner.CreatedAt, owner.ModifiedAt))
	}
}

// GroupMappings returns a page of the mappings of a group to applications, or
// apierr.NotFound for the group.
func (s *Service) GroupMappings(ctx context.Context, group id.Ref, query list.Query) (list.Page[store.Mapping], error) {
	owner, err := s.directories.Group(ctx, group)
	if err != nil {
		return list.Page[store.Mapping]{}, err
	}
	return s.store.StoreMappings(ctx, store.ApplicationKind, group, query.Of(owner.CreatedAt, owner.ModifiedAt))
}

// CreateMapping maps an account store to an application
// (docs/interface/applications.md#account-store-mappings). A reference that leads to
// no application or account store of the tenant is apierr.Reference, a store that
// the application has already AlreadyMapped.
func (s *Service) CreateMapping(ctx context.Context, tenant id.ID, in NewMapping) (store.Mapping, error) {
	return s.createMapping(ctx, tenant, applications, in.Application, in.AccountStore, in.MappingChange)
}

// CreateOrganizationMapping maps a directory or a group to an organization, as
// CreateMapping does to an application. An organization is refused with
// apierr.OrgInsideOrg.
func (s *Service) CreateOrganizationMapping(ctx context.Context, tenant id.ID, in NewOrganizationMapping) (store.Mapping, error) {
	return s.createMapping(ctx, tenant, organizations, in.Organization, in.AccountStore, in.MappingChange)
}

func (s *Service) createMapping(
	ctx context.Context, tenant id.ID, to owner, link, what field.Link, in MappingChange,
) (store.Mapping, error) {
	now := s.now()
	m := store.Mapping{TenantID: tenant, ID: id.New(now), OwnerKind: to.kind, CreatedAt: now, ModifiedAt: now}
	if err := field.First(wantLink(link, to.noun), wantLink(what, "accountStore")); err != nil {
		return m, err
	}
	if err := wantAddress(what, "accountStore"); err != nil {
		return m, err
	}
	at, err := s.reference(link, to.noun, string(to.kind))
	if err != nil {
		return m, err
	}
	mapped, err := s.reference(what, "accountStore", storeKinds...)
	if err != nil {
		return m, err
	}
	m.OwnerID, m.StoreKind, m.StoreID = at.ID, mapped.Kind, mapped.ID
	if err := s.wantStore(ctx, to, &m, in); err != nil {
		return m, err
	}
	err = s.store.Tx(ctx, func(tx *store.Tx) error {
		if err := hold(ctx, tx, m); err != nil {
			return err
		}
		err := tx.LockOwner(ctx, to.kind, m.Owner())
		if errors.Is(err, apierr.NotFound) {
			return apierr.Reference.Because("%s: there is no %s %q", to.noun, to.noun, link.Value.Href)
		}
		if err == nil {
			err = wantOneProvider(ctx, tx, to, m)
		}
		if err == nil {
			m, err = insertMapping(ctx, tx, m, in)
		}
		return err
	})
	if errors.Is(err, apierr.Exists) {
		err = to.alreadyMapped.Because("the account store is mapped to the %s already", to.noun)
	}
	if err != nil {
		return m, err
	}
	// A directory or group that was deleted since it was read has left no other trace than the
	// answer to this call: its event may have been handled already.
	if err := s.wantStore(ctx, to, &m, in); errors.Is(err, apierr.Reference) {
		return m, errors.Join(err, s.store.Tx(ctx, func(tx *store.Tx) error { return dropStore(ctx, tx, tenant, m.StoreID) }))
	}
	return m, nil
}

// wantStore checks that the store of a mapping exists and may have the flags
// that a body asks for, and notes its directory.
func (s *Service) wantStore(ctx context.Context, to owner, m *store.Mapping, in MappingChange) error {
	if m.StoreKind == organizations.name() && to.kind == store.OrganizationKind {
		return apierr.OrgInsideOrg
	}
	at, err := s.accountStore(ctx, m.TenantID, m.Store())
	if errors.Is(err, apierr.NotFound) {
		return apierr.Reference.Because("accountStore: there is no account store %q", s.base.To(m.StoreKind, m.StoreID))
	}
	if err != nil {
		return err
	}
	m.DirectoryID, m.SocialProvider = at.directory.ID, at.socialProvider()
	return to.admits(at, in)
}

// hold keeps an organization that is mapped from being deleted meanwhile. It
// comes before the lock on the application, as in every transaction that locks
// both.
func hold(ctx context.Context, tx *store.Tx, m store.Mapping) error {
	if m.StoreKind != organizations.name() {
		return nil
	}
	err := tx.HoldOrganization(ctx, m.TenantID, m.StoreID)
	if errors.Is(err, apierr.NotFound) {
		err = apierr.Reference.Because("accountStore: the organization was deleted")
	}
	return err
}

// wantOneProvider refuses a second directory of a social provider.
func wantOneProvider(ctx context.Context, tx *store.Tx, to owner, m store.Mapping) error {
	if m.SocialProvider == nil {
		return nil
	}
	taken, err := tx.SocialMapping(ctx, m)
	if err == nil && taken {
		err = to.socialMapped.Because("the %s has a directory of the provider %q already", to.noun, *m.SocialProvider)
	}
	return err
}

// insertMapping adds a mapping behind the others and then moves it to the place
// that the body asks for.
func insertMapping(ctx context.Context, tx *store.Tx, m store.Mapping, in MappingChange) (store.Mapping, error) {
	count, err := tx.CountMappings(ctx, m.Owner())
	if err != nil {
		return m, err
	}
	m.ListIndex = count
	m.IsDefaultAccountStore, m.IsDefaultGroupStore = in.IsDefaultAccountStore.Or(false), in.IsDefaultGroupStore.Or(false)
	if err := tx.ClearDefaults(ctx, m); err != nil {
		return m, err
	}
	if err := tx.InsertMapping(ctx, m); err != nil {
		return m, err
	}
	return move(ctx, tx, m, in.ListIndex, count+1)
}

// move puts a mapping to its place among count mappings: one before the first
// is the first, one behind the last is the last.
func move(ctx context.Context, tx *store.Tx, m store.Mapping, to field.Int, count int) (store.Mapping, error) {
	place := min(max(to.Or(m.ListIndex), 0), count-1)
	if place == m.ListIndex {
		return m, nil
	}
	if err := tx.MoveMapping(ctx, m, place); err != nil {
		return m, err
	}
	m.ListIndex = place
	return m, nil
}

// UpdateMapping returns a function that moves a mapping of an owner of that kind or
// changes its flags. A flag that it gains is taken from the owner's other mappings;
// one that it loses goes to none.
func (s *Service) UpdateMapping(kind store.OwnerKind) func(context.Context, id.Ref, MappingChange) (store.Mapping, error) {
	return func(ctx context.Context, at id.Ref, in MappingChange) (m store.Mapping, err error) {
		found, err := s.store.Mapping(ctx, at.Tenant, kind, at.ID)
		if err != nil {
			return found, err
		}
		if in.IsDefaultAccountStore.Or(false) || in.IsDefaultGroupStore.Or(false) {
			if err := s.wantStore(ctx, owners[kind], &found, in); err != nil {
				return found, err
			}
		}
		err = s.locked(ctx, found, func(tx *store.Tx, locked store.Mapping) error {
			m, err = s.change(ctx, tx, locked, in)
			return err
		})
		return m, err
	}
}

func (s *Service) change(ctx context.Context, tx *store.Tx, m store.Mapping, in MappingChange) (store.Mapping, error) {
	count, err := tx.CountMappings(ctx, m.Owner())
	if err != nil {
		return m, err
	}
	if m, err = move(ctx, tx, m, in.ListIndex, count); err != nil {
		return m, err
	}
	if in.IsDefaultAccountStore.Present {
		m.IsDefaultAccountStore = in.IsDefaultAccountStore.Or(false)
	}
	if in.IsDefaultGroupStore.Present {
		m.IsDefaultGroupStore = in.IsDefaultGroupStore.Or(false)
	}
	m.ModifiedAt = s.now()
	if err := tx.ClearDefaults(ctx, m); err != nil {
		return m, err
	}
	return m, tx.UpdateMapping(ctx, m)
}

// DeleteMapping returns a function that removes a mapping of an owner of that kind;
// those behind it close up, and a flag that it had goes to none.
func (s *Service) DeleteMapping(kind store.OwnerKind) func(context.Context, id.Ref) error {
	return func(ctx context.Context, at id.Ref) error {
		found, err := s.store.Mapping(ctx, at.Tenant, kind, at.ID)
		if err != nil {
			return err
		}
		if err := s.checkConsoleMapping(ctx, found); err != nil {
			return err
		}
		return s.locked(ctx, found, func(tx *store.Tx, m store.Mapping) error { return tx.DeleteMapping(ctx, m) })
	}
}

// checkConsoleMapping refuses to take the administrators directory from the console
// application: no API key would be accepted any more, so that nobody could undo it.
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
		err = apierr.BadRequest.Because("the administrators directory stays an account store of the console application")
	}
	return err
}

// locked runs fn in a transaction that holds the lock on the mapping's owner,
// with the mapping as it is under the lock.
func (s *Service) locked(ctx context.Context, found store.Mapping, fn func(*store.Tx, store.Mapping) error) error {
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

// dropStore removes a store from everything that it is mapped to.
func dropStore(ctx context.Context, tx *store.Tx, tenant, gone id.ID) error {
	owners, err := tx.LockStoreOwners(ctx, tenant, gone)
	if err != nil {
		return err
	}
	return tx.DropStore(ctx, tenant, gone, owners...)
}

package directory

import (
	"context"
	"errors"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/services/directory/store"
)

// Group returns a group, or apierr.NotFound.
func (s *Service) Group(ctx context.Context, in directoryapi.Ref) (directoryapi.Group, error) {
	return s.store.Group(ctx, in.Tenant, in.ID)
}

// TenantGroups returns a page of all the groups of a tenant.
func (s *Service) TenantGroups(ctx context.Context, tenant id.Ref,
	query list.Query) (list.Page[directoryapi.Group], error) {
	return list.PageOf(ctx, s.Tenant, s.store.TenantGroups, tenant, query)
}

// DirectoryGroups returns a page of the groups of a directory.
func (s *Service) DirectoryGroups(ctx context.Context, directory id.Ref,
	query list.Query) (list.Page[directoryapi.Group], error) {
	parent, err := s.Directory(ctx, directory)
	if err != nil {
		return list.Page[directoryapi.Group]{}, err
	}
	return s.store.StoreGroups(ctx, directory.Tenant, []id.ID{directory.ID}, nil,
		query.WithParentTimes(parent.CreatedAt, parent.ModifiedAt))
}

// AccountGroups returns a page of the groups that an account is a member of.
func (s *Service) AccountGroups(ctx context.Context, account id.Ref,
	query list.Query) (list.Page[directoryapi.Group], error) {
	return list.PageOf(ctx, s.Account, s.store.AccountGroups, account, query)
}

// ListGroups returns a page of the groups of the account stores, each once: the groups of a
// directory, and a group that is a store itself.
func (s *Service) ListGroups(ctx context.Context, in directoryapi.ListGroups) (list.Page[directoryapi.Group], error) {
	directories, groups := splitStores(in.Stores)
	return s.store.StoreGroups(ctx, in.Tenant, directories, groups, in.Query)
}

// StoresOf returns the account stores that contain an account: its directory, and then its groups.
// It returns apierr.NotFound for the account.
func (s *Service) StoresOf(ctx context.Context, account directoryapi.Ref) (directoryapi.StoresOf, error) {
	stores, err := s.store.StoresOf(ctx, account.Tenant, account.ID)
	if err != nil {
		return directoryapi.StoresOf{}, err
	}
	if len(stores) == 0 {
		return directoryapi.StoresOf{}, apierr.NotFound
	}
	return directoryapi.StoresOf{Stores: stores}, nil
}

// CreateGroupIn creates a group in a directory from the body of a client.
func (s *Service) CreateGroupIn(ctx context.Context, directory id.Ref,
	in directoryapi.NewGroup) (directoryapi.Group, error) {
	return s.CreateGroup(ctx,
		directoryapi.CreateGroup{Tenant: directory.Tenant, ID: id.New(s.now()), Directory: directory.ID, Group: in})
}

// CreateGroup creates a group in a cloud directory. Its name must be unique in the directory:
// apierr.Exists. A repeated call with the same id returns the group that the first created.
func (s *Service) CreateGroup(ctx context.Context, in directoryapi.CreateGroup) (directoryapi.Group, error) {
	now := s.now()
	g := directoryapi.Group{TenantID: in.Tenant, ID: in.ID, DirectoryID: in.Directory, Status: directoryapi.Enabled,
		CreatedAt:  now,
		ModifiedAt: now}
	err := s.store.Tx(ctx, func(tx *store.Tx) error {
		d, err := tx.LockDirectoryShared(ctx, in.Tenant, in.Directory)
		if err != nil {
			return err
		}
		if d.Mirror() {
			return apierr.MirrorReadOnly.Because("the directory %q is a mirror; its groups are made in its source",
				d.Name)
		}
		if err := ApplyGroup(&g, in.Group, true); err != nil {
			return err
		}
		if err := tx.InsertGroup(ctx, g); err != nil {
			return err
		}
		return tx.MergeGroupCustomData(ctx, g.TenantID, g.ID, in.Group.CustomData.Value, now)
	})
	if errors.Is(err, apierr.Exists) {
		if existing, lookupErr := s.store.Group(ctx, in.Tenant, in.ID); lookupErr == nil {
			return existing, nil // the call was repeated
		}
		err = duplicateGroupError(g)
	}
	return g, err
}

// duplicateGroupError is the error for a group name that is not unique in the directory.
func duplicateGroupError(g directoryapi.Group) error {
	return apierr.Exists.Because("the directory has a group with the name %q", g.Name).
		Saying("A group of that name exists.")
}

// ApplyGroup writes the members of a body into a group and validates them. A new group needs a
// name.
func ApplyGroup(g *directoryapi.Group, in directoryapi.NewGroup, isNew bool) error {
	var errs field.Errors
	errs.Name(&g.Name, in.Name, "name", MaxName, isNew)
	errs.Optional(&g.Description, in.Description, "description", maxDescription)
	errs.Enum(&g.Status, in.Status.NullIsAbsent(isNew), "status", directoryapi.Enabled, directoryapi.Disabled)
	return errs.First()
}

// UpdateGroup changes what the body names. Name and description of a group in a mirror directory
// are read-only: another value is apierr.MirroredProperty.
func (s *Service) UpdateGroup(ctx context.Context, at id.Ref, in directoryapi.NewGroup) (directoryapi.Group, error) {
	var g directoryapi.Group
	err := s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		if g, err = tx.LockGroup(ctx, at.Tenant, at.ID); err != nil {
			return err
		}
		former := g
		if err := ApplyGroup(&g, in, false); err != nil {
			return err
		}
		if g.Name != former.Name || !equalTexts(g.Description, former.Description) {
			if err := refuseMirror(ctx, tx, g.TenantID, g.DirectoryID,
				"the name and the description of its groups"); err != nil {
				return err
			}
		}
		if err := tx.MergeGroupCustomData(ctx, g.TenantID, g.ID, in.CustomData.Value, s.now()); err != nil ||
			in.IsCustomDataAlone() {
			return err
		}
		g.ModifiedAt = s.now()
		return tx.UpdateGroup(ctx, former, g)
	})
	if errors.Is(err, apierr.Exists) {
		err = duplicateGroupError(g)
	}
	return g, err
}

// equalTexts reports whether two optional texts are equal.
func equalTexts(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// DeleteGroup deletes a group with its memberships, not its accounts. By its event the other
// services delete what they store of the group.
func (s *Service) DeleteGroup(ctx context.Context, at id.Ref) error {
	return s.store.Tx(ctx, func(tx *store.Tx) error {
		g, err := tx.LockGroup(ctx, at.Tenant, at.ID)
		if err != nil {
			return err
		}
		if err := tx.DeleteGroup(ctx, at.Tenant, at.ID); err != nil {
			return err
		}
		if err := tx.DeleteCustomData(ctx, at.Tenant, at.ID); err != nil {
			return err
		}
		return tx.Emit(ctx, events.GroupDeleted{Tenant: at.Tenant, Group: at.ID, Directory: g.DirectoryID})
	})
}

package directoryfake

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
)

// group returns a group, or apierr.NotFound.
func (d *Service) group(in directoryapi.Ref) (directoryapi.Group, error) {
	for _, g := range d.groups {
		if g.TenantID == in.Tenant && g.ID == in.ID {
			return g, nil
		}
	}
	return directoryapi.Group{}, apierr.NotFound
}

// CreateGroup creates a group.
func (d *Service) CreateGroup(_ context.Context, in directoryapi.CreateGroup) (directoryapi.Group, error) {
	return call(d, "CreateGroup", func() (directoryapi.Group, error) {
		if own, err := d.group(directoryapi.Ref{Tenant: in.Tenant, ID: in.ID}); err == nil {
			return own, nil
		}
		g := directoryapi.Group{TenantID: in.Tenant, ID: in.ID, DirectoryID: in.Directory, CreatedAt: d.now(), ModifiedAt: d.now()}
		directory, err := d.directory(directoryapi.Ref{Tenant: in.Tenant, ID: in.Directory})
		if err != nil {
			return g, err
		}
		if directory.Mirror() {
			return g, apierr.MirrorReadOnly
		}
		if g.Name, err = field.Required(in.Group.Name, "name", 255); err != nil {
			return g, err
		}
		if g.Description, err = field.Optional(in.Group.Description, "description", 1000); err != nil {
			return g, err
		}
		g.Status, err = field.Enum(in.Group.Status.NullIsAbsent(true), "status", directoryapi.Enabled, directoryapi.Enabled,
			directoryapi.Disabled)
		if err != nil {
			return g, err
		}
		for _, other := range d.groups {
			if other.TenantID == g.TenantID && other.DirectoryID == g.DirectoryID && field.Fold(other.Name) == field.Fold(g.Name) {
				return g, apierr.Exists
			}
		}
		d.groups = append(d.groups, g)
		return g, nil
	})
}

// Group returns a group.
func (d *Service) Group(_ context.Context, in directoryapi.Ref) (directoryapi.Group, error) {
	return call(d, "Group", func() (directoryapi.Group, error) { return d.group(in) })
}

// ListGroups returns a page of groups.
func (d *Service) ListGroups(_ context.Context, in directoryapi.ListGroups) (list.Page[directoryapi.Group], error) {
	return call(d, "ListGroups", func() (list.Page[directoryapi.Group], error) {
		stores := map[directoryapi.Store]bool{}
		for _, store := range in.Stores {
			stores[store] = true
		}
		var held []directoryapi.Group
		for _, g := range d.groups {
			inDirectory := stores[directoryapi.Store{Kind: directoryapi.Directories, ID: g.DirectoryID}]
			if g.TenantID == in.Tenant && (inDirectory || stores[directoryapi.Store{Kind: directoryapi.Groups, ID: g.ID}]) {
				held = append(held, g)
			}
		}
		if len(in.Query.Order) == 0 {
			in.Query.Order = []list.Order{{Attribute: "name"}}
		}
		return page(held, groupAttributes, in.Query), nil
	})
}

func groupAttributes(g directoryapi.Group) attributes {
	return attributes{
		texts:  map[string]string{"name": g.Name, "description": orEmpty(g.Description)},
		status: g.Status,
		times:  map[string]time.Time{"createdAt": g.CreatedAt, "modifiedAt": g.ModifiedAt},
	}
}

// DisableGroup sets the status of a group to DISABLED.
func (d *Service) DisableGroup(t *testing.T, at directoryapi.Ref) {
	t.Helper()
	d.SetStatus(t, at, directoryapi.Groups, directoryapi.Disabled)
}

// DeleteGroup deletes a group, not its members.
func (d *Service) DeleteGroup(at directoryapi.Ref) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.groups = slices.DeleteFunc(d.groups, func(g directoryapi.Group) bool { return g.TenantID == at.Tenant && g.ID == at.ID })
	for _, a := range d.accounts {
		a.groups = slices.DeleteFunc(a.groups, func(group id.ID) bool { return group == at.ID })
	}
}

// Join makes an account a member of a group.
func (d *Service) Join(t testing.TB, account directoryapi.Ref, group id.ID) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.findAccount(account.Tenant, account.ID)
	if a == nil {
		t.Fatalf("there is no account %s", account.ID)
	}
	a.groups = append(a.groups, group)
}

// StoresOf returns the account stores that contain an account.
func (d *Service) StoresOf(_ context.Context, in directoryapi.Ref) (directoryapi.StoresOf, error) {
	return call(d, "StoresOf", func() (directoryapi.StoresOf, error) {
		a := d.findAccount(in.Tenant, in.ID)
		if a == nil {
			return directoryapi.StoresOf{}, apierr.NotFound
		}
		stores := []directoryapi.Store{{Kind: directoryapi.Directories, ID: a.DirectoryID}}
		for _, group := range a.groups {
			stores = append(stores, directoryapi.Store{Kind: directoryapi.Groups, ID: group})
		}
		return directoryapi.StoresOf{Stores: stores}, nil
	})
}

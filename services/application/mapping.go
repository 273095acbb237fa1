package application

import (
	"context"
	"errors"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/services/application/store"
)

// directories is the kind of store that is a directory, as it stands in an href.
const directories = "directories"

// NewMapping is the body that maps an account store to an application.
type NewMapping struct {
	Application  field.Link `json:"application"`
	AccountStore field.Link `json:"accountStore"`
	MappingChange
}

// MappingChange is the body that updates a mapping. What it maps is fixed.
type MappingChange struct {
	ListIndex             field.Int  `json:"listIndex"`
	IsDefaultAccountStore field.Bool `json:"isDefaultAccountStore"`
	IsDefaultGroupStore   field.Bool `json:"isDefaultGroupStore"`
}

// Mapping gives a mapping, or apierr.NotFound.
func (s *Service) Mapping(ctx context.Context, in directoryapi.Ref) (store.Mapping, error) {
	return s.store.Mapping(ctx, in.Tenant, in.ID)
}

// ListApplicationMappings gives a page of an application's mappings, or
// apierr.NotFound for the application.
func (s *Service) ListApplicationMappings(ctx context.Context, application directoryapi.Ref, query list.Query) (list.Page[store.Mapping], error) {
	if _, err := s.Application(ctx, application); err != nil {
		return list.Page[store.Mapping]{}, err
	}
	return s.store.ListApplicationMappings(ctx, application.Tenant, application.ID, query)
}

// ListDirectoryMappings gives a page of the mappings of a directory to
// applications, or apierr.NotFound for the directory.
func (s *Service) ListDirectoryMappings(ctx context.Context, directory directoryapi.Ref, query list.Query) (list.Page[store.Mapping], error) {
	if _, err := s.directories.Directory(ctx, directory); err != nil {
		return list.Page[store.Mapping]{}, err
	}
	return s.store.ListStoreMappings(ctx, directory.Tenant, directory.ID, query)
}

// CreateMapping maps a directory to an application (resolutions, section 15). A
// reference that leads to no application or account store of the tenant is
// apierr.Reference, a store that the application has already AlreadyMapped.
func (s *Service) CreateMapping(ctx context.Context, tenant id.ID, in NewMapping) (store.Mapping, error) {
	now := s.now()
	m := store.Mapping{TenantID: tenant, ID: id.New(now), CreatedAt: now, ModifiedAt: now}
	application, err := s.reference(in.Application, "application", "applications")
	if err != nil {
		return m, err
	}
	directory, err := s.reference(in.AccountStore, "accountStore", directories)
	if err != nil {
		return m, err
	}
	m.ApplicationID, m.StoreKind, m.StoreID = application, directories, directory
	if err := s.wantDirectory(ctx, m); err != nil {
		return m, err
	}
	err = s.tx(ctx, func(tx *store.Tx) (err error) {
		if _, err = tx.LockApplication(ctx, tenant, application); errors.Is(err, apierr.NotFound) {
			return apierr.Reference.Because("application: there is no application %q", in.Application.Value.Href)
		}
		if err != nil {
			return err
		}
		m, err = insertMapping(ctx, tx, m, in.MappingChange)
		return err
	})
	if errors.Is(err, apierr.Exists) {
		err = apierr.AlreadyMapped.Because("the account store is mapped to the application already")
	}
	if err != nil {
		return m, err
	}
	// A directory that was deleted since it was asked after has left no other
	// trace here than this question: its event may be digested already.
	if err := s.wantDirectory(ctx, m); errors.Is(err, apierr.Reference) {
		return m, errors.Join(err, s.dropStore(ctx, tenant, directory))
	}
	return m, nil
}

// insertMapping adds a mapping behind the others and then moves it to the place
// that the body asks for.
func insertMapping(ctx context.Context, tx *store.Tx, m store.Mapping, in MappingChange) (store.Mapping, error) {
	count, err := tx.CountMappings(ctx, m.TenantID, m.ApplicationID)
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

// UpdateMapping moves a mapping or changes its flags. A flag that it gains is
// taken from the application's other mappings; one that it loses goes to none.
func (s *Service) UpdateMapping(ctx context.Context, tenant, mapping id.ID, in MappingChange) (store.Mapping, error) {
	var m store.Mapping
	err := s.locked(ctx, tenant, mapping, func(tx *store.Tx, locked store.Mapping) error {
		count, err := tx.CountMappings(ctx, tenant, locked.ApplicationID)
		if err != nil {
			return err
		}
		if m, err = move(ctx, tx, locked, in.ListIndex, count); err != nil {
			return err
		}
		if in.IsDefaultAccountStore.Present {
			m.IsDefaultAccountStore = in.IsDefaultAccountStore.Or(false)
		}
		if in.IsDefaultGroupStore.Present {
			m.IsDefaultGroupStore = in.IsDefaultGroupStore.Or(false)
		}
		m.ModifiedAt = s.now()
		if err := tx.ClearDefaults(ctx, m); err != nil {
			return err
		}
		return tx.UpdateMapping(ctx, m)
	})
	return m, err
}

// DeleteMapping removes a mapping; those behind it close up, and a flag that it
// had goes to none.
func (s *Service) DeleteMapping(ctx context.Context, tenant, mapping id.ID) error {
	return s.locked(ctx, tenant, mapping, func(tx *store.Tx, m store.Mapping) error {
		return tx.DropStore(ctx, tenant, m.StoreID, m.ApplicationID)
	})
}

// locked runs fn in a transaction that holds the lock on the mapping's
// application, with the mapping as it is under the lock.
func (s *Service) locked(ctx context.Context, tenant, mapping id.ID, fn func(*store.Tx, store.Mapping) error) error {
	found, err := s.store.Mapping(ctx, tenant, mapping)
	if err != nil {
		return err
	}
	return s.tx(ctx, func(tx *store.Tx) error {
		if _, err := tx.LockApplication(ctx, tenant, found.ApplicationID); err != nil {
			return err
		}
		m, err := tx.Mapping(ctx, tenant, mapping)
		if err != nil {
			return err
		}
		return fn(tx, m)
	})
}

// DirectoryDeleted drops the mappings of a directory that is gone.
func (s *Service) DirectoryDeleted(ctx context.Context, e events.Envelope, event events.DirectoryDeleted) error {
	return s.tx(ctx, func(tx *store.Tx) error {
		seen, err := tx.Seen(ctx, event.Tenant, e.ID)
		if err != nil || seen {
			return err
		}
		return dropFrom(ctx, tx, event.Tenant, event.Directory)
	})
}

func (s *Service) dropStore(ctx context.Context, tenant, directory id.ID) error {
	return s.tx(ctx, func(tx *store.Tx) error { return dropFrom(ctx, tx, tenant, directory) })
}

// dropFrom removes a store from every application.
func dropFrom(ctx context.Context, tx *store.Tx, tenant, directory id.ID) error {
	applications, err := tx.LockStoreApplications(ctx, tenant, directory)
	if err != nil {
		return err
	}
	return tx.DropStore(ctx, tenant, directory, applications...)
}

// reference reads a required link to a resource of that kind.
func (s *Service) reference(in field.Link, name, kind string) (id.ID, error) {
	if !in.Given() {
		return id.ID{}, apierr.Required.Because("%s is required; it cannot be null", name)
	}
	ref, ok := s.base.Parse(in.Value.Href)
	if !ok || ref.Kind != kind {
		return id.ID{}, apierr.Reference.Because("%s: %q is not the href of one of the %s", name, in.Value.Href, kind)
	}
	return ref.ID, nil
}

// wantDirectory checks that the directory of a mapping exists.
func (s *Service) wantDirectory(ctx context.Context, m store.Mapping) error {
	_, err := s.directories.Directory(ctx, directoryapi.Ref{Tenant: m.TenantID, ID: m.StoreID})
	if errors.Is(err, apierr.NotFound) {
		return apierr.Reference.Because("accountStore: there is no directory %q", s.base.To(directories, m.StoreID))
	}
	return err
}

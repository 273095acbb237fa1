package directory

import (
	"context"
	"errors"
	"log/slog"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/services/directory/store"
)

// Limits of a directory's text (docs/interface/limits.md#field-limits), in characters.
const (
	MaxName        = 255
	maxDescription = 1000
)

// NewDirectory is the body that creates or changes a directory. It may also have a provider
// (provider/directory.go).
type NewDirectory struct {
	Name        field.Text        `json:"name"`
	Description field.Text        `json:"description"`
	Status      field.Text        `json:"status"`
	CustomData  customdata.Change `json:"customData"`
}

// Apply writes the members of a body into a directory and validates them. A new directory needs a
// name.
func (in NewDirectory) Apply(d *directoryapi.Directory, isNew bool) error {
	var errs field.Errors
	errs.Name(&d.Name, in.Name, "name", MaxName, isNew)
	errs.Optional(&d.Description, in.Description, "description", maxDescription)
	errs.Enum(&d.Status, in.Status.NullIsAbsent(isNew), "status", directoryapi.Enabled, directoryapi.Disabled)
	return errs.First()
}

// isCustomDataAlone reports whether a body has custom data and nothing else, which does not change
// modifiedAt of the directory (docs/interface/custom-data.md#endpoints). An empty body has none.
func (in NewDirectory) isCustomDataAlone() bool {
	return in.CustomData.Present && !in.Name.Present && !in.Description.Present && !in.Status.Present
}

// Directory returns a directory, or apierr.NotFound.
func (s *Service) Directory(ctx context.Context, in directoryapi.Ref) (directoryapi.Directory, error) {
	return s.store.Directory(ctx, in.Tenant, in.ID)
}

// TenantDirectories returns a page of the directories of a tenant.
func (s *Service) TenantDirectories(ctx context.Context, tenant id.Ref,
	query list.Query) (list.Page[directoryapi.Directory], error) {
	return list.PageOf(ctx, s.Tenant, s.store.ListDirectories, tenant, query)
}

// CreateDirectory creates a cloud directory for another service.
func (s *Service) CreateDirectory(ctx context.Context,
	in directoryapi.CreateDirectory) (directoryapi.Directory, error) {
	d, err := s.CreateDirectoryWith(ctx, directoryapi.Directory{TenantID: in.Tenant, ID: in.ID, Name: in.Name}, "", nil)
	if errors.Is(err, apierr.Exists) {
		// The call was repeated: the directory of that name is the one that the first call created.
		if existing, lookupErr := s.store.Directory(ctx, in.Tenant, in.ID); lookupErr == nil {
			return existing, nil
		}
	}
	return d, err
}

// CreateDirectoryWith creates a directory with the resources that belong to it, in one transaction.
// insertMore inserts those of a mirror directory; nil for a cloud directory.
func (s *Service) CreateDirectoryWith(ctx context.Context, d directoryapi.Directory, data customdata.Document,
	insertMore func(context.Context, *store.Tx) error) (directoryapi.Directory, error) {
	d.CreatedAt = s.now()
	err := s.store.Tx(ctx, func(tx *store.Tx) error {
		if err := s.insertDirectory(ctx, tx, d); err != nil {
			return err
		}
		if insertMore != nil {
			if err := insertMore(ctx, tx); err != nil {
				return err
			}
		}
		return tx.MergeCustomData(ctx, d.TenantID, d.ID, data, d.CreatedAt)
	})
	if errors.Is(err, apierr.Exists) {
		return d, apierr.Exists.Because("a directory with the name %q exists", d.Name).
			Saying("A directory of that name exists.")
	}
	if err != nil {
		return d, err
	}
	return s.store.Directory(ctx, d.TenantID, d.ID)
}

// insertDirectory inserts a directory with the policies, email templates and schema fields that
// every directory has. CreatedAt must be set.
func (s *Service) insertDirectory(ctx context.Context, tx *store.Tx, d directoryapi.Directory) error {
	if d.Status == "" {
		d.Status = directoryapi.Enabled
	}
	if d.ProviderID == "" {
		d.ProviderID = directoryapi.Native
	}
	d.SchemaID, d.ModifiedAt = id.New(d.CreatedAt), d.CreatedAt
	if err := tx.InsertDirectory(ctx, d); err != nil {
		return err
	}
	return tx.InsertDirectoryDefaults(ctx, d, defaultTemplates(d, d.CreatedAt), newFields(d, d.CreatedAt))
}

// UpdateDirectory changes what the body names. Disabling a directory invalidates no token: tokens
// of its accounts are refused at their next use (access.go).
func (s *Service) UpdateDirectory(ctx context.Context, at id.Ref, in NewDirectory) (directoryapi.Directory, error) {
	var d directoryapi.Directory
	err := s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		if d, err = tx.LockDirectory(ctx, at.Tenant, at.ID); err != nil {
			return err
		}
		if err := tx.MergeCustomData(ctx, at.Tenant, at.ID, in.CustomData.Value, s.now()); err != nil ||
			in.isCustomDataAlone() {
			return err
		}
		before := d
		if err := in.Apply(&d, false); err != nil {
			return err
		}
		if before.Status != d.Status && d.Status == directoryapi.Disabled {
			if d.Builtin {
				return apierr.BadRequest.Because("the administrators directory cannot be disabled")
			}
			if err := tx.Emit(ctx, events.DirectoryDisabled{Tenant: at.Tenant, Directory: at.ID}); err != nil {
				return err
			}
		}
		d.ModifiedAt = s.now()
		return tx.UpdateDirectory(ctx, before, d)
	})
	if errors.Is(err, apierr.Exists) {
		err = apierr.Exists.Because("a directory with the name %q exists", d.Name).Saying(
			"A directory of that name exists.")
	}
	return d, err
}

// DeleteDirectory deletes a directory with its policies, accounts and groups (cascade); by its events
// the other services delete what they store of them. It returns apierr.BadRequest for the built-in
// administrators directory. The first batch of accounts is deleted at once, the others with the
// next purge (purge.go).
func (s *Service) DeleteDirectory(ctx context.Context, in directoryapi.Ref) (directoryapi.Empty, error) {
	err := s.store.Tx(ctx, func(tx *store.Tx) error {
		d, err := tx.LockDirectory(ctx, in.Tenant, in.ID)
		if err != nil {
			return err
		}
		if d.Builtin {
			return apierr.BadRequest.Because("the administrators directory cannot be deleted")
		}
		if err := tx.DeleteDirectory(ctx, in.Tenant, in.ID, s.now()); err != nil {
			return err
		}
		if err := tx.DeleteCustomData(ctx, in.Tenant, in.ID); err != nil {
			return err
		}
		return tx.Emit(ctx, events.DirectoryDeleted{Tenant: in.Tenant, Directory: in.ID})
	})
	if err != nil {
		return directoryapi.Empty{}, err
	}
	err = s.store.Tx(ctx, func(tx *store.Tx) error {
		_, err := s.deleteRemainingAccounts(ctx, tx, store.DirectoryRemoval{TenantID: in.Tenant, DirectoryID: in.ID})
		return err
	})
	if err != nil {
		slog.WarnContext(ctx, "deletion of the accounts of a deleted directory failed, leaving them to the purge",
			"error",
			err.Error())
	}
	return directoryapi.Empty{}, nil
}

package directory

import (
	"context"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/services/directory/store"
)

// FieldChange is the body that updates a field of an account schema.
type FieldChange struct {
	Required field.Bool `json:"required"`
}

// Schema returns an account schema, or apierr.NotFound.
func (s *Service) Schema(ctx context.Context, at id.Ref) (store.Schema, error) {
	return s.store.Schema(ctx, at.Tenant, at.ID)
}

// SchemaFields returns a page of the fields of a schema.
func (s *Service) SchemaFields(ctx context.Context, schema id.Ref, query list.Query) (list.Page[store.Field], error) {
	return list.PageOf(ctx, s.Schema, s.store.ListFields, schema, query)
}

// Field returns a field of a schema, or apierr.NotFound.
func (s *Service) Field(ctx context.Context, at id.Ref) (store.Field, error) {
	return s.store.Field(ctx, at.Tenant, at.ID)
}

// UpdateField changes what the body names. Accounts that exist already are not validated again
// (docs/interface/directories.md#account-schema).
func (s *Service) UpdateField(ctx context.Context, at id.Ref, in FieldChange) (store.Field, error) {
	var f store.Field
	err := s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		if f, err = tx.LockField(ctx, at.Tenant, at.ID); err != nil {
			return err
		}
		if in.Required.Null {
			return apierr.Required.Because("required cannot be null")
		}
		f.Required = in.Required.Or(f.Required)
		f.ModifiedAt = s.now()
		return tx.UpdateField(ctx, f)
	})
	return f, err
}

// newFields returns the fields of a new directory's schema, none of them required.
func newFields(d directoryapi.Directory, now time.Time) []store.Field {
	fields := make([]store.Field, 0, 2)
	for _, name := range []string{store.GivenName, store.Surname} {
		fields = append(fields, store.Field{
			TenantID: d.TenantID, ID: id.New(now), SchemaID: d.SchemaID, DirectoryID: d.ID, Name: name, CreatedAt: now,
			ModifiedAt: now,
		})
	}
	return fields
}

// CheckRequired returns apierr.Required for an account without a name that the schema of its
// directory requires.
func CheckRequired(a directoryapi.Account, givenName, surname bool) error {
	var errs field.Errors
	for _, f := range []struct {
		name     string
		required bool
		value    *string
	}{{store.GivenName, givenName, a.GivenName}, {store.Surname, surname, a.Surname}} {
		if f.required && (f.value == nil || strings.TrimSpace(*f.value) == "") {
			errs.Add(nameRequired(f.name))
		}
	}
	return errs.First()
}

// nameRequired is the error for a name that the account schema requires.
func nameRequired(name string) error {
	return apierr.Required.Because(
		"%s is required by the account schema of the directory; it cannot be null, empty or blank", name)
}

package application

import (
	"context"
	"errors"
	"reflect"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/services/application/store"
)

// maxOrganizationDescription is in characters
// (docs/interface/limits.md#field-limits). A name has the limit of an application's.
const maxOrganizationDescription = 1000

// NewOrganization is the body that creates or updates an organization.
type NewOrganization struct {
	Name        field.Text        `json:"name"`
	NameKey     field.Text        `json:"nameKey"` // a login names the organization by it: narrowByNameKey (login.go)
	Description field.Text        `json:"description"`
	Status      field.Text        `json:"status"`
	CustomData  customdata.Change `json:"customData"`
}

// isCustomDataAlone is NewApplication.isCustomDataAlone for an organization.
func (in NewOrganization) isCustomDataAlone() bool {
	in.CustomData = customdata.Change{}
	return reflect.DeepEqual(in, NewOrganization{})
}

// Organization returns an organization, or apierr.NotFound.
func (s *Service) Organization(ctx context.Context, in id.Ref) (store.Organization, error) {
	return s.store.Organization(ctx, in.Tenant, in.ID)
}

// ListOrganizations returns a page of the organizations of a tenant. Any tenant but the
// caller's own is apierr.NotFound.
func (s *Service) ListOrganizations(ctx context.Context, tenant id.Ref,
	query list.Query) (list.Page[store.Organization], error) {
	return list.PageOf(ctx, s.directories.Tenant, s.store.ListOrganizations, tenant, query)
}

// ListDirectoryOrganizations returns a page of the organizations that a directory is
// mapped to, or apierr.NotFound for the directory.
func (s *Service) ListDirectoryOrganizations(
	ctx context.Context, directory id.Ref, query list.Query,
) (list.Page[store.Organization], error) {
	return list.PageOf(ctx, s.directories.Directory, s.store.ListStoreOrganizations, directory, query)
}

// CreateOrganization creates an organization (B2B customer) from a client's body, with a
// directory as its account store where directory asks for one.
func (s *Service) CreateOrganization(
	ctx context.Context, tenant id.ID, in NewOrganization, directory DirectoryToCreate,
) (store.Organization, error) {
	now := s.now()
	o := store.Organization{
		TenantID: tenant, ID: id.New(now), Status: directoryapi.Enabled, AccountLinkingPolicyID: id.New(now),
		CreatedAt:  now,
		ModifiedAt: now,
	}
	if err := applyOrganization(&o, in, true); err != nil {
		return o, err
	}
	mapping, err := s.createOwner(ctx, newOwner{
		owner: organizationOwner, ref: o.Ref(), name: o.Name,
		nameTaken: func() (bool, error) { return s.store.OrganizationTaken(ctx, o) },
		insert:    func(tx *store.Tx) error { return tx.InsertOrganization(ctx, o, in.CustomData.Value) },
		find:      func() error { _, err := s.Organization(ctx, o.Ref()); return err },
	}, directory)
	o.DefaultAccountStore, o.DefaultGroupStore = mapping, mapping
	return o, explainOrganizationTaken(o, err)
}

// explainOrganizationTaken adds the texts to apierr.Exists, the error of a name or a nameKey
// that another organization of the tenant has. Other errors are returned unchanged.
func explainOrganizationTaken(o store.Organization, err error) error {
	if !errors.Is(err, apierr.Exists) {
		return err
	}
	return apierr.Exists.Because("an organization with the name %q or the nameKey %q exists", o.Name, o.NameKey).
		Saying("An organization of that name or key exists.")
}

// nameKeyRequired is a text that clients compare, as is the message of errNoNameKey
// (docs/interface/errors.md#texts-that-clients-compare).
const nameKeyRequired = "Organization nameKey is required; it cannot be null, empty, or blank."

var errNoNameKey = apierr.Required.Because(nameKeyRequired).Saying(
	"Organization nameKey cannot be null, empty, or blank.")

// applyOrganization writes the members of a body into an organization and checks
// them.
func applyOrganization(o *store.Organization, in NewOrganization, isNew bool) (err error) {
	var errs field.Errors
	before := o.NameKey
	errs.Required(&o.Name, in.Name, "name", maxName, isNew)
	errs.Required(&o.NameKey, in.NameKey, "nameKey", maxHostLabel, isNew)
	errs.Optional(&o.Description, in.Description, "description", maxOrganizationDescription)
	errs.Enum(&o.Status, in.Status.NullIsAbsent(isNew), "status", directoryapi.Enabled, directoryapi.Disabled)
	err = errs.First()
	if errors.Is(err, apierr.Required) && o.NameKey == "" && o.Name != "" {
		return errNoNameKey
	}
	if err != nil || !isNew && o.NameKey == before {
		return err
	}
	o.NameKey, err = hostLabel(field.Some(o.NameKey), "nameKey")
	return err
}

// UpdateOrganization changes the members that the body names. A change of customData alone does
// not change the organization and its modifiedAt.
func (s *Service) UpdateOrganization(ctx context.Context, at id.Ref, in NewOrganization) (store.Organization, error) {
	var o store.Organization
	err := s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		if o, err = tx.LockOrganization(ctx, at.Tenant, at.ID); err != nil {
			return err
		}
		before := o
		if err := applyOrganization(&o, in, false); err != nil {
			return err
		}
		if err := tx.MergeCustomData(ctx, at.Tenant, at.ID, in.CustomData.Value, s.now()); err != nil ||
			in.isCustomDataAlone() {
			return err
		}
		o.ModifiedAt = s.now()
		return tx.UpdateOrganization(ctx, before, o)
	})
	return o, explainOrganizationTaken(o, err)
}

// DeleteOrganization deletes an organization, its own mappings and its mappings to
// applications; the account stores are not deleted.
func (s *Service) DeleteOrganization(ctx context.Context, at id.Ref) error {
	return s.store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.LockOwner(ctx, store.OrganizationKind, at); err != nil {
			return err
		}
		if err := deleteStoreMappings(ctx, tx, at.Tenant, at.ID); err != nil {
			return err
		}
		return tx.DeleteOrganization(ctx, at)
	})
}

// NamedOrganization returns the organization of a body, or apierr.Reference where the tenant
// has no such organization. It need not be mapped to the application: that is checked at the
// login.
func (s *Service) NamedOrganization(ctx context.Context, tenant id.ID, in field.Nullable[directoryapi.StoreName]) (
	store.Organization, error,
) {
	where, err := directoryapi.ReadStoreName(in, "organization")
	if err != nil {
		return store.Organization{}, err
	}
	o, err := s.organizationNamed(ctx, tenant, where)
	if errors.Is(err, apierr.NotFound) {
		err = apierr.Reference.Because("organization: there is no organization %q", where.Href+where.NameKey)
	}
	return o, err
}

// organizationNamed returns the organization of an href or a nameKey, or apierr.NotFound.
func (s *Service) organizationNamed(ctx context.Context, tenant id.ID,
	where directoryapi.StoreName) (store.Organization, error) {
	if where.Href == "" {
		key, err := hostLabel(field.Some(where.NameKey), "nameKey")
		if err != nil {
			return store.Organization{}, apierr.NotFound // no organization has it
		}
		return s.store.OrganizationByNameKey(ctx, tenant, key)
	}
	ref, ok := s.base.Parse(where.Href)
	if !ok || ref.Kind != organizationOwner.hrefKind() {
		return store.Organization{}, apierr.NotFound
	}
	return s.store.Organization(ctx, tenant, ref.ID)
}

package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/list/listsql"
	"github.com/doorward/doorward/pkg/pg"
)

// Organization is a customer of the tenant's own: account stores under one key,
// which are mapped to applications together.
type Organization struct {
	TenantID               id.ID
	ID                     id.ID
	Name                   string
	NameKey                string // lower case
	Description            *string
	Status                 string
	DefaultAccountStore    id.ID // mapping that holds the flag
	DefaultGroupStore      id.ID // mapping that holds the flag
	AccountLinkingPolicyID id.ID
	CreatedAt              time.Time
	ModifiedAt             time.Time
}

// Times returns the times of the collections below the organization.
func (o Organization) Times() (createdAt, modifiedAt time.Time) { return o.CreatedAt, o.ModifiedAt }

// Ref names the organization.
func (o Organization) Ref() id.Ref { return id.Ref{Tenant: o.TenantID, ID: o.ID} }

const organizationColumns = `o.tenant_id, o.id, o.name, o.name_key, o.description, o.status,
	(SELECT m.id FROM account_store_mappings m WHERE m.tenant_id = o.tenant_id AND m.owner_id = o.id
		AND m.is_default_account_store) AS default_account_store,
	(SELECT m.id FROM account_store_mappings m WHERE m.tenant_id = o.tenant_id AND m.owner_id = o.id
		AND m.is_default_group_store) AS default_group_store,
	o.account_linking_policy_id, o.created_at, o.modified_at`

// Organizations are searched and sorted by these attributes.
var Organizations = list.Spec{
	"name":        {Column: "o.name", Folded: "o.name_folded"},
	"nameKey":     {Column: "o.name_key", Folded: "o.name_key"},
	"description": {Column: "o.description", Folded: "o.description_folded"},
	"status":      {Column: "o.status", Kind: list.Enum, Values: []string{directoryapi.Enabled, directoryapi.Disabled}},
	"createdAt":   {Column: "o.created_at", Kind: list.Time},
	"modifiedAt":  {Column: "o.modified_at", Kind: list.Time},
}

// Organization returns an organization, or apierr.NotFound.
func (s *Store) Organization(ctx context.Context, tenant, organization id.ID) (Organization, error) {
	return pg.One[Organization](ctx, s.db, `SELECT `+organizationColumns+` FROM organizations o WHERE o.tenant_id = $1 AND o.id = $2`,
		tenant, organization)
}

// OrganizationOfKey returns the organization of a key in lower case, or
// apierr.NotFound.
func (s *Store) OrganizationOfKey(ctx context.Context, tenant id.ID, key string) (Organization, error) {
	return pg.One[Organization](ctx, s.db, `SELECT `+organizationColumns+` FROM organizations o WHERE o.tenant_id = $1 AND o.name_key = $2`,
		tenant, key)
}

// ListOrganizations returns a page of the tenant's organizations.
func (s *Store) ListOrganizations(ctx context.Context, tenant id.Ref, query list.Query) (list.Page[Organization], error) {
	return listsql.Select[Organization](ctx, s.db, Organizations, query, organizationColumns,
		`FROM organizations o WHERE o.tenant_id = $1`, "o.id", tenant.Tenant)
}

// ListStoreOrganizations returns a page of the organizations that a store is mapped
// to.
func (s *Store) ListStoreOrganizations(ctx context.Context, store id.Ref, query list.Query) (list.Page[Organization], error) {
	return listsql.Select[Organization](ctx, s.db, Organizations, query, organizationColumns,
		`FROM organizations o WHERE o.tenant_id = $1 AND o.id IN (
			SELECT m.owner_id FROM account_store_mappings m WHERE m.tenant_id = $1 AND m.store_id = $2)`, "o.id", store.Tenant, store.ID)
}

// OrganizationTaken reports whether the tenant has an organization of that name or
// that key.
func (s *Store) OrganizationTaken(ctx context.Context, o Organization) (bool, error) {
	return pg.Value[bool](ctx, s.db, `SELECT EXISTS (SELECT FROM organizations WHERE tenant_id = $1 AND (name_folded = $2 OR name_key = $3))`,
		o.TenantID, field.Fold(o.Name), o.NameKey)
}

// LockOrganization reads an organization that the transaction will change. Its
// mappings stay as they are until the transaction ends.
func (tx *Tx) LockOrganization(ctx context.Context, tenant, organization id.ID) (Organization, error) {
	return pg.One[Organization](ctx, tx, `SELECT `+organizationColumns+` FROM organizations o
		WHERE o.tenant_id = $1 AND o.id = $2 FOR UPDATE OF o`, tenant, organization)
}

// HoldOrganization keeps an organization from being deleted until the
// transaction ends. One that is not there is apierr.NotFound.
func (tx *Tx) HoldOrganization(ctx context.Context, tenant, organization id.ID) error {
	_, err := pg.Value[id.ID](ctx, tx, `SELECT id FROM organizations WHERE tenant_id = $1 AND id = $2 FOR KEY SHARE`, tenant, organization)
	return err
}

// InsertOrganization adds an organization with its customData and its linking
// policy. A name or a key that is taken is apierr.Exists.
func (tx *Tx) InsertOrganization(ctx context.Context, o Organization, data customdata.Document) error {
	tx.changes(o.TenantID, o.ID)
	_, err := pg.Exec(ctx, tx, `INSERT INTO organizations (tenant_id, id, name, name_folded, name_key, description, description_folded, status,
		account_linking_policy_id, created_at, modified_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
		o.TenantID, o.ID, o.Name, field.Fold(o.Name), o.NameKey, o.Description, field.FoldOptional(o.Description), o.Status,
		o.AccountLinkingPolicyID, o.CreatedAt, o.ModifiedAt)
	if err != nil {
		return err
	}
	return tx.insertBelongings(ctx, OrganizationKind, o.Ref(), o.AccountLinkingPolicyID, data, o.CreatedAt)
}

// UpdateOrganization writes what a client can change.
func (tx *Tx) UpdateOrganization(ctx context.Context, o Organization) error {
	tx.changes(o.TenantID, o.ID)
	return pg.MustChange(ctx, tx, `UPDATE organizations
		SET name = $3, name_folded = $4, name_key = $5, description = $6, description_folded = $7,
		status = $8, modified_at = $9 WHERE tenant_id = $1 AND id = $2`,
		o.TenantID, o.ID, o.Name, field.Fold(o.Name), o.NameKey, o.Description, field.FoldOptional(o.Description), o.Status, o.ModifiedAt)
}

// DeleteOrganization removes an organization with what belongs to it.
func (tx *Tx) DeleteOrganization(ctx context.Context, organization id.Ref) error {
	return tx.deleteOwner(ctx, OrganizationKind, organization)
}

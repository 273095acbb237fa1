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

// Organization is a customer of a tenant (B2B, multi-tenancy): a group of account stores with a
// nameKey, which are mapped to applications together.
type Organization struct {
	TenantID               id.ID
	ID                     id.ID
	Name                   string
	NameKey                string // lower case
	Description            *string
	Status                 string
	DefaultAccountStore    id.ID // mapping with the flag
	DefaultGroupStore      id.ID // mapping with the flag
	AccountLinkingPolicyID id.ID
	CreatedAt              time.Time
	ModifiedAt             time.Time
}

// Times returns the times that collections of the organization show.
func (o Organization) Times() (createdAt, modifiedAt time.Time) { return o.CreatedAt, o.ModifiedAt }

// Ref returns the tenant and the id of the organization.
func (o Organization) Ref() id.Ref { return id.Ref{Tenant: o.TenantID, ID: o.ID} }

const organizationRow = `o.tenant_id, o.id, o.name, o.name_key, o.description, o.status,
	o.account_linking_policy_id, o.created_at, o.modified_at`

const organizationColumns = organizationRow + `,
	(SELECT m.id FROM account_store_mappings m WHERE m.tenant_id = o.tenant_id AND m.owner_id = o.id
		AND m.is_default_account_store) AS default_account_store,
	(SELECT m.id FROM account_store_mappings m WHERE m.tenant_id = o.tenant_id AND m.owner_id = o.id
		AND m.is_default_group_store) AS default_group_store`

// Organizations has the attributes by which organizations are searched and sorted.
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
	return pg.One[Organization](ctx, s.db, `SELECT `+organizationColumns+` FROM organizations o
		WHERE o.tenant_id = $1 AND o.id = $2`, tenant, organization)
}

// OrganizationByNameKey returns the organization with a nameKey, in lower case, or
// apierr.NotFound.
func (s *Store) OrganizationByNameKey(ctx context.Context, tenant id.ID, key string) (Organization, error) {
	return pg.One[Organization](ctx, s.db, `SELECT `+organizationColumns+` FROM organizations o
		WHERE o.tenant_id = $1 AND o.name_key = $2`, tenant, key)
}

// ListOrganizations returns a page of the tenant's organizations.
func (s *Store) ListOrganizations(ctx context.Context, tenant id.Ref,
	query list.Query) (list.Page[Organization], error) {
	return listsql.Select[Organization](ctx, s.db, Organizations, query, organizationColumns,
		`FROM organizations o WHERE o.tenant_id = $1`, "o.id", tenant.Tenant)
}

// ListStoreOrganizations returns a page of the organizations that a store is mapped
// to.
func (s *Store) ListStoreOrganizations(ctx context.Context, store id.Ref,
	query list.Query) (list.Page[Organization], error) {
	return listsql.Select[Organization](ctx, s.db, Organizations, query, organizationColumns,
		`FROM organizations o WHERE o.tenant_id = $1 AND o.id IN (
			SELECT m.owner_id FROM account_store_mappings m WHERE m.tenant_id = $1 AND m.store_id = $2)`, "o.id",
		store.Tenant, store.ID)
}

// OrganizationTaken reports whether the tenant has an organization with the name or the nameKey
// of o.
func (s *Store) OrganizationTaken(ctx context.Context, o Organization) (bool, error) {
	return pg.Value[bool](ctx, s.db, `SELECT EXISTS (SELECT 1 FROM organizations
			WHERE tenant_id = $1 AND (name_folded = $2 OR name_key = $3))`,
		o.TenantID, field.Fold(o.Name), o.NameKey)
}

// LockOrganization reads and locks an organization that the transaction will change. Until the
// transaction ends no other one changes its mappings.
func (tx *Tx) LockOrganization(ctx context.Context, tenant, organization id.ID) (Organization, error) {
	return pg.One[Organization](ctx, tx, `SELECT `+organizationColumns+` FROM organizations o
		WHERE o.tenant_id = $1 AND o.id = $2 FOR UPDATE OF o`, tenant, organization)
}

// ShareLockOrganization locks an organization against its deletion until the transaction ends
// (FOR KEY SHARE). An unknown organization is apierr.NotFound.
func (tx *Tx) ShareLockOrganization(ctx context.Context, tenant, organization id.ID) error {
	_, err := pg.Value[id.ID](ctx, tx, `SELECT id FROM organizations WHERE tenant_id = $1 AND id = $2 FOR KEY SHARE`,
		tenant, organization)
	return err
}

// InsertOrganization inserts an organization with its customData and its linking policy. A name
// or a nameKey that is taken is apierr.Exists.
func (tx *Tx) InsertOrganization(ctx context.Context, o Organization, data customdata.Document) error {
	tx.invalidateLoginOrders(o.TenantID, o.ID)
	_, err := pg.Exec(ctx, tx, pg.Insert("organizations", organizationRow+", name_folded, description_folded"),
		o.args())
	if err != nil {
		return err
	}
	return tx.insertOwnerResources(ctx, OrganizationKind, o.Ref(), o.AccountLinkingPolicyID, data, o.CreatedAt)
}

// UpdateOrganization writes the members that a client can change.
func (tx *Tx) UpdateOrganization(ctx context.Context, before, o Organization) error {
	if before.Status != o.Status || before.NameKey != o.NameKey {
		tx.invalidateLoginOrders(o.TenantID, o.ID)
	}
	return pg.MustChange(ctx, tx,
		`UPDATE organizations SET `+pg.Set(`name, name_folded, name_key, description, description_folded,
		status, modified_at`)+` WHERE tenant_id = @tenant_id AND id = @id`, o.args())
}

// args are the values of the columns by their names.
func (o Organization) args() pg.NamedArgs {
	return pg.Named(o, pg.Args{"name_folded": field.Fold(o.Name),
		"description_folded": field.FoldOptional(o.Description)})
}

// DeleteOrganization deletes an organization with its mappings, its linking policy and its
// customData.
func (tx *Tx) DeleteOrganization(ctx context.Context, organization id.Ref) error {
	return tx.deleteOwner(ctx, OrganizationKind, organization)
}

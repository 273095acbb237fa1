package store

import (
	"context"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/list/listsql"
	"github.com/doorward/doorward/pkg/pg"
)

// applicationRow are the stored columns, applicationColumns all. These read the ids of the default mappings
// by their flags, which at most one mapping of an application has.
const applicationRow = `a.tenant_id, a.id, a.name, a.description, a.status, a.builtin, a.dns_label, a.created_by,
	a.authorized_callback_uris, a.authorized_origin_uris, a.home_url, a.saml_policy_id, a.web_config_id,
	a.account_linking_policy_id, a.created_at, a.modified_at`

const applicationColumns = applicationRow + `,
	(SELECT m.id FROM account_store_mappings m WHERE m.tenant_id = a.tenant_id AND m.owner_id = a.id
		AND m.is_default_account_store) AS default_account_store,
	(SELECT m.id FROM account_store_mappings m WHERE m.tenant_id = a.tenant_id AND m.owner_id = a.id
		AND m.is_default_group_store) AS default_group_store`

const applicationQuery = `SELECT ` + applicationColumns + ` FROM applications a WHERE a.tenant_id = $1 AND a.id = $2`

// Applications has the attributes by which applications are searched and sorted.
var Applications = list.Spec{
	"name":        {Column: "a.name", Folded: "a.name_folded"},
	"description": {Column: "a.description"},
	"status":      {Column: "a.status", Kind: list.Enum, Values: []string{directoryapi.Enabled, directoryapi.Disabled}},
	"createdAt":   {Column: "a.created_at", Kind: list.Time},
	"modifiedAt":  {Column: "a.modified_at", Kind: list.Time},
}

// Application returns an application, or apierr.NotFound.
func (s *Store) Application(ctx context.Context, tenant, application id.ID) (applicationapi.Application, error) {
	return pg.One[applicationapi.Application](ctx, s.db, applicationQuery, tenant, application)
}

// ApplicationOfName returns the application of a tenant with a name, or apierr.NotFound.
func (s *Store) ApplicationOfName(ctx context.Context, tenant id.ID, name string) (applicationapi.Application, error) {
	return pg.One[applicationapi.Application](ctx, s.db, `SELECT `+applicationColumns+` FROM applications a
		WHERE a.tenant_id = $1 AND a.name_folded = $2`, tenant, field.Fold(name))
}

// ApplicationsOfName returns the applications of all tenants with a name, at most two.
func (s *Store) ApplicationsOfName(ctx context.Context, name string) ([]applicationapi.Application, error) {
	return pg.All[applicationapi.Application](ctx, s.db, `SELECT `+applicationColumns+` FROM applications a
		WHERE a.name_folded = $1 LIMIT 2`, field.Fold(name))
}

// FindApplication returns an application of any tenant, or apierr.NotFound.
func (s *Store) FindApplication(ctx context.Context, application id.ID) (applicationapi.Application, error) {
	return pg.One[applicationapi.Application](ctx, s.db, `SELECT `+applicationColumns+` FROM applications a
		WHERE a.id = $1`, application)
}

// ApplicationOfWebConfig returns the application whose web config has an id, or apierr.NotFound.
func (s *Store) ApplicationOfWebConfig(ctx context.Context, tenant, config id.ID) (applicationapi.Application, error) {
	return pg.One[applicationapi.Application](ctx, s.db,
		`SELECT `+applicationColumns+` FROM applications a WHERE a.tenant_id = $1 AND a.web_config_id = $2`, tenant,
		config)
}

// ApplicationOfSAMLPolicy returns the application whose SAML policy has an id, or
// apierr.NotFound.
func (s *Store) ApplicationOfSAMLPolicy(ctx context.Context, tenant, policy id.ID) (applicationapi.Application, error) {
	return pg.One[applicationapi.Application](ctx, s.db,
		`SELECT `+applicationColumns+` FROM applications a WHERE a.tenant_id = $1 AND a.saml_policy_id = $2`, tenant,
		policy)
}

// ListApplications returns a page of the tenant's applications.
func (s *Store) ListApplications(ctx context.Context, tenant id.Ref,
	query list.Query) (list.Page[applicationapi.Application], error) {
	return listsql.Select[applicationapi.Application](ctx, s.db, Applications, query, applicationColumns,
		`FROM applications a WHERE a.tenant_id = $1`, "a.id", tenant.Tenant)
}

// ListStoreApplications returns a page of the applications that a store is mapped
// to.
func (s *Store) ListStoreApplications(ctx context.Context, store id.Ref,
	query list.Query) (list.Page[applicationapi.Application], error) {
	return listsql.Select[applicationapi.Application](ctx, s.db, Applications, query, applicationColumns,
		`FROM applications a WHERE a.tenant_id = $1 AND a.id IN (
			SELECT m.owner_id FROM account_store_mappings m WHERE m.tenant_id = $1 AND m.store_id = $2)`, "a.id",
		store.Tenant, store.ID)
}

// ListReachingApplications returns a page of the applications that one of the account stores is
// mapped to, directly or through an organization.
func (s *Store) ListReachingApplications(ctx context.Context, tenant id.ID, stores []id.ID,
	query list.Query) (list.Page[applicationapi.Application], error) {
	return listsql.Select[applicationapi.Application](ctx, s.db, Applications, query, applicationColumns,
		`FROM applications a WHERE a.tenant_id = $1 AND a.id IN (
			WITH direct AS (SELECT m.owner_id FROM account_store_mappings m WHERE m.tenant_id = $1
			AND m.store_id = ANY ($2))
			SELECT owner_id FROM direct
			UNION SELECT m.owner_id FROM account_store_mappings m JOIN direct ON m.store_id = direct.owner_id
				WHERE m.tenant_id = $1)`, "a.id", tenant, stores)
}

// Homes returns the first enabled applications of the tenant that have a home_url, but for the built-in one. Ids are
// in the order of creation.
func (s *Store) Homes(ctx context.Context, tenant id.ID, limit int) ([]applicationapi.Application, error) {
	return pg.All[applicationapi.Application](ctx, s.db, `SELECT `+applicationColumns+` FROM applications a
		WHERE a.tenant_id = $1 AND a.home_url IS NOT NULL AND a.status = $2 AND NOT a.builtin
		ORDER BY a.id LIMIT $3`, tenant, directoryapi.Enabled, limit)
}

// NameTaken reports whether the tenant has an application of that name.
func (s *Store) NameTaken(ctx context.Context, tenant id.ID, name string) (bool, error) {
	return pg.Value[bool](ctx, s.db,
		`SELECT EXISTS (SELECT 1 FROM applications WHERE tenant_id = $1 AND name_folded = $2)`, tenant,
		field.Fold(name))
}

// LockApplication reads and locks an application that the transaction will change. Until the
// transaction ends no other one changes its mappings.
func (tx *Tx) LockApplication(ctx context.Context, tenant, application id.ID) (applicationapi.Application, error) {
	return pg.One[applicationapi.Application](ctx, tx, `SELECT `+applicationColumns+` FROM applications a
		WHERE a.tenant_id = $1 AND a.id = $2 FOR UPDATE OF a`, tenant, application)
}

// InsertApplication inserts an application with its customData and its linking policy. A name
// that is taken is apierr.Exists.
func (tx *Tx) InsertApplication(ctx context.Context, a applicationapi.Application, data customdata.Document) error {
	tx.invalidateLoginOrders(a.TenantID, a.ID)
	_, err := pg.Exec(ctx, tx, pg.Insert("applications", applicationRow+", name_folded"),
		pg.Named(a, pg.Args{"name_folded": field.Fold(a.Name)}))
	if err != nil {
		return err
	}
	return tx.insertOwnerResources(ctx, ApplicationKind, id.Ref{Tenant: a.TenantID, ID: a.ID}, a.AccountLinkingPolicyID,
		data, a.CreatedAt)
}

// UpdateApplication writes the members that can change.
func (tx *Tx) UpdateApplication(ctx context.Context, before, a applicationapi.Application) error {
	tx.store.applications.InvalidateAfter(tx, id.Ref{Tenant: a.TenantID, ID: a.ID})
	if before.Status != a.Status {
		tx.invalidateLoginOrders(a.TenantID, a.ID)
	}
	return pg.MustChange(ctx, tx, `UPDATE applications SET `+pg.Set(`name, name_folded, description, status,
		authorized_callback_uris, authorized_origin_uris, modified_at, dns_label, home_url`)+`
		WHERE tenant_id = @tenant_id AND id = @id`, pg.Named(a, pg.Args{"name_folded": field.Fold(a.Name)}))
}

// DeleteApplication deletes an application with its mappings, its linking policy and its
// customData, and releases its DNS label. Its SAML identity provider and the registrations with
// that are deleted by their foreign keys (ON DELETE CASCADE).
func (tx *Tx) DeleteApplication(ctx context.Context, a applicationapi.Application) error {
	tx.releaseDNSLabel(a)
	return tx.deleteOwner(ctx, ApplicationKind, id.Ref{Tenant: a.TenantID, ID: a.ID})
}

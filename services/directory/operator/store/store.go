// Package store has the SQL about the tenants of the deployment that operators read. What one tenant reads and writes
// is in services/directory/store.
package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/list/listsql"
	"github.com/doorward/doorward/pkg/operatorlog"
	"github.com/doorward/doorward/pkg/pg"
)

// Store reads the tables of the directory service.
type Store struct{ db *pg.DB }

// New makes the store.
func New(db *pg.DB) Store { return Store{db} }

const tenantColumns = `t.tenant_id, t.key, t.name, t.status, t.status_reason, t.suspended_at, t.delete_after,
	t.created_at, t.modified_at`

// Tenants are the attributes by which operators search and sort tenants.
var Tenants = list.Spec{
	"status": {Column: "t.status", Kind: list.Enum,
		Values: []string{directoryapi.Enabled, directoryapi.Suspended, directoryapi.Deleting}},
	"key": {Column: "t.key"}, "name": {Column: "t.name"},
	"createdAt": {Column: "t.created_at", Kind: list.Time}, "modifiedAt": {Column: "t.modified_at", Kind: list.Time},
}

// ListTenants returns a page of the tenants of the deployment.
func (s Store) ListTenants(ctx context.Context, query list.Query) (list.Page[directoryapi.Tenant], error) {
	return listsql.Select[directoryapi.Tenant](ctx, s.db, Tenants, query, tenantColumns,
		`FROM tenants t WHERE t.status <> 'DELETED'`, "t.tenant_id")
}

// TenantOfResource returns the tenant with an id, or that of the directory, group, account or agent which has it, or
// apierr.NotFound. Without the tenant it is a look-up in each primary key for each tenant of the deployment.
func (s Store) TenantOfResource(ctx context.Context, resource id.ID) (directoryapi.Tenant, error) {
	return pg.One[directoryapi.Tenant](ctx, s.db,
		`SELECT `+tenantColumns+` FROM tenants t WHERE t.tenant_id = $1 AND t.status <> 'DELETED'
		OR EXISTS (SELECT 1 FROM directories d WHERE d.tenant_id = t.tenant_id AND d.id = $1)
		OR EXISTS (SELECT 1 FROM groups g WHERE g.tenant_id = t.tenant_id AND g.id = $1)
		OR EXISTS (SELECT 1 FROM accounts a WHERE a.tenant_id = t.tenant_id AND a.id = $1)
		OR EXISTS (SELECT 1 FROM agents a WHERE a.tenant_id = t.tenant_id AND a.id = $1) LIMIT 1`, resource)
}

// EndedGraces returns the tenants whose deletion is due, at most 100.
func (s Store) EndedGraces(ctx context.Context, now time.Time) ([]id.ID, error) {
	return pg.Values[id.ID](ctx, s.db,
		`SELECT t.tenant_id FROM tenants t WHERE t.status = 'DELETING' AND t.delete_after <= $1
		LIMIT 100`, now)
}

// DeletedTenants returns the tenants that were deleted.
func (s Store) DeletedTenants(ctx context.Context) ([]id.ID, error) {
	return pg.Values[id.ID](ctx, s.db, `SELECT t.tenant_id FROM tenants t WHERE t.status = 'DELETED'`)
}

// Empty clears what the row of a deleted tenant has besides its key, its id and its times.
func Empty(ctx context.Context, tx pg.Querier, tenant id.ID) error {
	return pg.MustChange(ctx, tx, `UPDATE tenants SET name = '', reset_key_sealed = NULL WHERE tenant_id = $1`, tenant)
}

// OperatorEvents returns a page of the record of operators (operatorlog.Page).
func (s Store) OperatorEvents(ctx context.Context, query list.Query, tenant, after *id.ID,
) (list.Page[directoryapi.OperatorEvent], error) {
	return operatorlog.Page(ctx, s.db, query, tenant, after)
}

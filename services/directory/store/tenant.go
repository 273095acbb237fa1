package store

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

const tenantColumns = `tenant_id, key, name, status, status_reason, suspended_at, delete_after, created_at,
	modified_at`

// Tenant returns a tenant, or apierr.NotFound.
func (s *Store) Tenant(ctx context.Context, tenant id.ID) (directoryapi.Tenant, error) {
	return pg.One[directoryapi.Tenant](ctx, s.db, `SELECT `+tenantColumns+` FROM tenants WHERE tenant_id = $1`, tenant)
}

// TenantByKey returns the tenant with a key, or apierr.NotFound.
func (s *Store) TenantByKey(ctx context.Context, key string) (directoryapi.Tenant, error) {
	return pg.One[directoryapi.Tenant](ctx, s.db, `SELECT `+tenantColumns+` FROM tenants WHERE key = $1`, key)
}

// InsertTenant inserts a tenant. A key that is not unique is apierr.Exists.
func (tx *Tx) InsertTenant(ctx context.Context, t directoryapi.Tenant) error {
	_, err := pg.Exec(ctx, tx, `INSERT INTO tenants (tenant_id, key, name, created_at, modified_at)
		VALUES ($1, $2, $3, $4, $5)`, t.ID, t.Key, t.Name, t.CreatedAt, t.ModifiedAt)
	return err
}

// LockTenant reads a tenant and locks it for a change.
func (tx *Tx) LockTenant(ctx context.Context, tenant id.ID) (directoryapi.Tenant, error) {
	return pg.One[directoryapi.Tenant](ctx, tx, `SELECT `+tenantColumns+` FROM tenants WHERE tenant_id = $1 FOR UPDATE`,
		tenant)
}

// SetTenantStatus writes the status of a tenant, with its reason and times, and reports the change to the other
// services (directoryapi.TenantGate) when the transaction commits.
func (tx *Tx) SetTenantStatus(ctx context.Context, t directoryapi.Tenant) error {
	tx.invalidateAccess(t.ID, t.ID)
	return pg.MustChange(ctx, tx,
		`UPDATE tenants SET status = $2, status_reason = $3, suspended_at = $4, delete_after = $5
		WHERE tenant_id = $1`, t.ID, t.Status, t.StatusReason, t.SuspendedAt, t.DeleteAfter)
}

// UpdateTenant updates what a client can change.
func (tx *Tx) UpdateTenant(ctx context.Context, t directoryapi.Tenant) error {
	return pg.MustChange(ctx, tx, `UPDATE tenants SET name = $2, modified_at = $3 WHERE tenant_id = $1`, t.ID, t.Name,
		t.ModifiedAt)
}

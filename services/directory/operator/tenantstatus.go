// Package operator has what the operators of a deployment decide about tenants, outside of the interface.
package operator

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/operatorlog"
	"github.com/doorward/doorward/services/directory/store"
)

// SuspendTenant suspends a tenant, for the reason of the event, and records the event with it: all of its doors are
// closed within 100 ms (directoryapi.TenantGate). One that is suspended or being deleted stays as it is. It works on
// the database, whether the service runs or not.
func SuspendTenant(ctx context.Context, data *store.Store, tenant directoryapi.Tenant,
	e operatorlog.Event) (directoryapi.Tenant, error) {
	return changeTenant(ctx, data, tenant, e, func(t *directoryapi.Tenant) {
		if t.Status == directoryapi.Enabled {
			t.Status, t.StatusReason, t.SuspendedAt = directoryapi.Suspended, e.Reason, &e.At
		}
	})
}

// ResumeTenant ends the suspension of a tenant, also of one that is being deleted, and records the event with that.
func ResumeTenant(ctx context.Context, data *store.Store, tenant directoryapi.Tenant,
	e operatorlog.Event) (directoryapi.Tenant, error) {
	return changeTenant(ctx, data, tenant, e, func(t *directoryapi.Tenant) {
		t.Status, t.StatusReason, t.SuspendedAt, t.DeleteAfter = directoryapi.Enabled, nil, nil, nil
	})
}

func changeTenant(ctx context.Context, data *store.Store, tenant directoryapi.Tenant, e operatorlog.Event,
	change func(*directoryapi.Tenant)) (directoryapi.Tenant, error) {
	e.Tenant, e.Outcome = &tenant.ID, operatorlog.Done
	err := data.Tx(ctx, func(tx *store.Tx) (err error) {
		if tenant, err = tx.LockTenant(ctx, tenant.ID); err != nil {
			return err
		}
		before := tenant.Status
		change(&tenant)
		if err := operatorlog.Record(ctx, tx, e); err != nil || tenant.Status == before {
			return err
		}
		return tx.SetTenantStatus(ctx, tenant)
	})
	if err != nil {
		return tenant, err
	}
	operatorlog.Audit(ctx, e)
	return tenant, nil
}

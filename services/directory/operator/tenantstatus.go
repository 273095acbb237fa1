// Package operator has what the operators of a deployment decide about tenants, outside of the interface.
package operator

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/operatorlog"
	operatorstore "github.com/doorward/doorward/services/directory/operator/store"
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

// isOfBootstrap reports whether a tenant is one that the bootstrap makes, again at each start where it is not there
// (services/idsite/signup): such an id alone is a UUID of version 8.
func isOfBootstrap(tenant id.ID) bool { return tenant[6]>>4 == 8 }

// DeleteTenant suspends a tenant, for the reason of the event, and deletes all of it after a grace, until which
// ResumeTenant ends that; it records the event with it. One that is being deleted stays as it is. The tenant of the
// bootstrap is apierr.Conflict, and recorded as refused.
func DeleteTenant(ctx context.Context, data *store.Store, tenant directoryapi.Tenant, e operatorlog.Event,
	grace time.Duration) (directoryapi.Tenant, error) {
	if isOfBootstrap(tenant.ID) {
		e.Tenant = &tenant.ID
		return tenant, errors.Join(RecordRefused(ctx, data, e),
			apierr.Conflict.Because("the tenant of the bootstrap is not deleted: the next start would make it again"))
	}
	return changeTenant(ctx, data, tenant, e, func(t *directoryapi.Tenant) {
		if t.Status == directoryapi.Deleting {
			return
		}
		deleteAfter := e.At.Add(grace)
		t.Status, t.StatusReason, t.DeleteAfter = directoryapi.Deleting, e.Reason, &deleteAfter
		if t.SuspendedAt == nil {
			t.SuspendedAt = &e.At
		}
	})
}

// EndGraces deletes the tenants whose grace has ended: their rows are left with key and id alone, and the purges of all
// services delete the others (package tenantpurge). Each is an event of the record, whose operator is the product.
func (s *Service) EndGraces(ctx context.Context) error {
	due, err := s.tenants.EndedGraces(ctx, s.now())
	if err != nil {
		return err
	}
	for _, tenant := range due {
		if err := s.endGrace(caller.WithTenant(ctx, tenant), tenant); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) endGrace(ctx context.Context, tenant id.ID) error {
	now := s.now()
	e := operatorlog.Event{ID: id.New(now), At: now, Command: "tenant purge", Operator: "doorward", Tenant: &tenant,
		Outcome: operatorlog.Done}
	err := s.store.Tx(ctx, func(tx *store.Tx) error {
		t, err := tx.LockTenant(ctx, tenant)
		if err != nil {
			return err
		}
		if t.Status != directoryapi.Deleting || t.DeleteAfter == nil || t.DeleteAfter.After(now) {
			return apierr.NotFound // it was resumed
		}
		t.Status = directoryapi.Deleted
		if err := tx.SetTenantStatus(ctx, t); err != nil {
			return err
		}
		return errors.Join(operatorstore.Empty(ctx, tx, tenant), operatorlog.Record(ctx, tx, e))
	})
	if errors.Is(err, apierr.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	operatorlog.Audit(ctx, e)
	return nil
}

func changeTenant(ctx context.Context, data *store.Store, tenant directoryapi.Tenant, e operatorlog.Event,
	change func(*directoryapi.Tenant)) (directoryapi.Tenant, error) {
	e.Tenant, e.Outcome = &tenant.ID, operatorlog.Done
	err := data.Tx(ctx, func(tx *store.Tx) (err error) {
		if tenant, err = tx.LockTenant(ctx, tenant.ID); err != nil {
			return err
		}
		if tenant.Status == directoryapi.Deleted {
			return apierr.NotFound
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

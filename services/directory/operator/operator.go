package operator

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/operatorlog"
	operatorstore "github.com/doorward/doorward/services/directory/operator/store"
	"github.com/doorward/doorward/services/directory/store"
)

// Service is what operators do through the gateway (gateway/operator).
type Service struct {
	store   *store.Store
	tenants operatorstore.Store
	now     func() time.Time
}

var _ directoryapi.Operator = (*Service)(nil)

// New makes the service.
func New(s *store.Store, now func() time.Time) *Service {
	return &Service{s, operatorstore.New(s.DB()), now}
}

// FindTenant returns the tenant with a key or an id, or apierr.NotFound.
func (s *Service) FindTenant(ctx context.Context, in directoryapi.TenantName) (directoryapi.Tenant, error) {
	return FindTenant(ctx, s.store, in.Name)
}

// FindTenant returns the tenant with a key or an id, or apierr.NotFound.
func FindTenant(ctx context.Context, data *store.Store, name string) (directoryapi.Tenant, error) {
	found, err := data.TenantByKey(ctx, name)
	if tenant, idErr := id.Parse(name); errors.Is(err, apierr.NotFound) && idErr == nil {
		found, err = data.Tenant(caller.WithTenant(ctx, tenant), tenant)
	}
	if err == nil && found.Status == directoryapi.Deleted {
		return directoryapi.Tenant{}, apierr.NotFound
	}
	return found, err
}

// ListTenants returns a page of the tenants of the deployment, or the error of the query.
func (s *Service) ListTenants(ctx context.Context,
	in directoryapi.ListTenants) (list.Page[directoryapi.Tenant], error) {
	query, err := list.Parse(in.Query, operatorstore.Tenants)
	if err != nil {
		return list.Page[directoryapi.Tenant]{}, err
	}
	return s.tenants.ListTenants(ctx, query)
}

// TenantOfResource returns the tenant of a resource by its id alone, or apierr.NotFound.
func (s *Service) TenantOfResource(ctx context.Context, in directoryapi.ResourceID) (directoryapi.Tenant, error) {
	return s.tenants.TenantOfResource(ctx, in.ID)
}

// SuspendTenant suspends a tenant, and records that.
func (s *Service) SuspendTenant(ctx context.Context, in directoryapi.OperatorChange) (directoryapi.Tenant, error) {
	return s.changeTenant(ctx, "tenant suspend", in, SuspendTenant)
}

// ResumeTenant ends the suspension or the deletion of a tenant, and records that.
func (s *Service) ResumeTenant(ctx context.Context, in directoryapi.OperatorChange) (directoryapi.Tenant, error) {
	return s.changeTenant(ctx, "tenant resume", in, ResumeTenant)
}

// DeleteTenant suspends a tenant and deletes all of it after a grace, and records that.
func (s *Service) DeleteTenant(ctx context.Context, in directoryapi.DeleteTenant) (directoryapi.Tenant, error) {
	return s.changeTenant(ctx, "tenant delete", in.OperatorChange,
		func(ctx context.Context, data *store.Store, t directoryapi.Tenant, e operatorlog.Event) (directoryapi.Tenant,
			error) {
			return DeleteTenant(ctx, data, t, e, in.Grace)
		})
}

// DeletedTenants returns the tenants whose rows each service deletes.
func (s *Service) DeletedTenants(ctx context.Context,
	_ directoryapi.Empty) (out directoryapi.DeletedTenants, err error) {
	out.IDs, err = s.tenants.DeletedTenants(ctx)
	return out, err
}

// RecordOperatorEvent records what an operator has done elsewhere.
func (s *Service) RecordOperatorEvent(ctx context.Context, e directoryapi.OperatorEvent) (directoryapi.Empty, error) {
	err := s.store.Tx(ctx, func(tx *store.Tx) error { return operatorlog.Record(ctx, tx, e) })
	if err != nil {
		return directoryapi.Empty{}, err
	}
	operatorlog.Audit(ctx, e)
	return directoryapi.Empty{}, nil
}

// Change changes a tenant, and records the event with that.
type Change func(context.Context, *store.Store, directoryapi.Tenant, operatorlog.Event) (directoryapi.Tenant, error)

func (s *Service) changeTenant(ctx context.Context, command string, in directoryapi.OperatorChange,
	change Change) (directoryapi.Tenant, error) {
	now := s.now()
	e := operatorlog.Event{ID: id.New(now), At: now, Command: command, Operator: in.Operator, Reason: in.Reason}
	tenant, err := FindTenant(ctx, s.store, in.Tenant)
	if err != nil {
		return tenant, errors.Join(err, RecordRefused(ctx, s.store, e))
	}
	return change(caller.WithTenant(ctx, tenant.ID), s.store, tenant, e)
}

// RecordRefused records an event that has changed nothing.
func RecordRefused(ctx context.Context, data *store.Store, e operatorlog.Event) error {
	e.Outcome = operatorlog.Refused
	if err := data.Tx(ctx, func(tx *store.Tx) error { return operatorlog.Record(ctx, tx, e) }); err != nil {
		return err
	}
	operatorlog.Audit(ctx, e)
	return nil
}

// OperatorEvents returns a page of what operators have done, the newest first, or the error of the query.
func (s *Service) OperatorEvents(ctx context.Context, in directoryapi.ListOperatorEvents,
) (list.Page[directoryapi.OperatorEvent], error) {
	var none list.Page[directoryapi.OperatorEvent]
	query, err := list.Parse(in.Query, operatorlog.Attributes)
	if err != nil {
		return none, err
	}
	var of, after *id.ID
	if in.Tenant != "" {
		tenant, err := FindTenant(ctx, s.store, in.Tenant)
		if err != nil {
			return none, err
		}
		of = &tenant.ID
	}
	if !in.After.IsZero() {
		after = &in.After
	}
	return s.tenants.OperatorEvents(ctx, query, of, after)
}

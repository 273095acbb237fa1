package directoryapi

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
)

// Operator is what the operators of a deployment do through the gateway (gateway/operator). Its requests name no
// tenant of a caller: they are about all tenants.
type Operator interface {
	// FindTenant returns the tenant with a key or an id, or apierr.NotFound.
	FindTenant(context.Context, TenantName) (Tenant, error)

	// ListTenants returns a page of the tenants of the deployment, or the error of the query.
	ListTenants(context.Context, ListTenants) (list.Page[Tenant], error)

	// TenantOfResource returns the tenant with an id, or that of the directory, group, account or agent that has it,
	// or apierr.NotFound.
	TenantOfResource(context.Context, ResourceID) (Tenant, error)

	// SuspendTenant suspends a tenant and records that: all of its doors are closed within 100 ms (TenantGate). One
	// that is suspended or being deleted stays as it is. It returns apierr.NotFound, which is recorded too.
	SuspendTenant(context.Context, OperatorChange) (Tenant, error)

	// ResumeTenant ends the suspension or the deletion of a tenant, as SuspendTenant begins it.
	ResumeTenant(context.Context, OperatorChange) (Tenant, error)

	// DeleteTenant suspends a tenant and deletes all of it after a grace, until which ResumeTenant ends that, and
	// records it. One that is being deleted stays as it is. It returns apierr.Conflict for the tenant of the bootstrap,
	// which the next start would make again, and apierr.NotFound; both are recorded too.
	DeleteTenant(context.Context, DeleteTenant) (Tenant, error)

	// RecordOperatorEvent records what an operator has done elsewhere than in the directory service.
	RecordOperatorEvent(context.Context, OperatorEvent) (Empty, error)

	// OperatorEvents returns a page of what operators have done, the newest first, or the error of the query.
	OperatorEvents(context.Context, ListOperatorEvents) (list.Page[OperatorEvent], error)
}

// TenantName is the key or the id of a tenant.
type TenantName struct {
	Name string `json:"name"`
}

// ListTenants is the request for a page of tenants.
type ListTenants struct {
	Query string `json:"query"` // of the URL: filters by status, key and name, q, orderBy, offset, limit
}

// ResourceID is the id of a resource of any tenant.
type ResourceID struct {
	ID id.ID `json:"id"`
}

// OperatorChange is what an operator does to a tenant.
type OperatorChange struct {
	Tenant   string  `json:"tenant"`   // its key or id
	Operator string  `json:"operator"` // for the record
	Reason   *string `json:"reason"`   // likewise
}

// MaxGrace is the longest grace of a deletion.
const MaxGrace = 400 * 24 * time.Hour

// DeleteTenant is the request to delete a tenant.
type DeleteTenant struct {
	OperatorChange
	Grace time.Duration `json:"grace"` // from now on
}

// DeletedTenants are the tenants that are Deleted.
type DeletedTenants struct {
	IDs []id.ID `json:"ids"`
}

// ListOperatorEvents is the request for a page of the record of operators.
type ListOperatorEvents struct {
	Query  string `json:"query"`  // of the URL: offset, limit, filters
	Tenant string `json:"tenant"` // key or id of the tenant that the events are about; empty for all
	// After is the id of an event: the page has those that were recorded after it, the oldest first. All events are
	// after one that is not there.
	After id.ID `json:"after,omitzero"`
}

// OperatorEvent is one command of an operator.
type OperatorEvent struct {
	ID      id.ID     `json:"id"`
	At      time.Time `json:"at"`
	Command string    `json:"command"` // such as tenant suspend
	// DOORWARD_OPERATOR, the user of the system, or the name of a key of the gateway
	Operator string  `json:"operator"`
	Reason   *string `json:"reason"`
	Tenant   *id.ID  `json:"tenant" db:"of_tenant"` // nil: it is about no tenant, or none was found
	Outcome  string  `json:"outcome"`               // operatorlog.Done or Refused
}

package directoryapi

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
)

// TenantGate refuses the requests of suspended tenants
// (docs/interface/authentication.md#suspended-tenants). It keeps the status of a tenant while the directory
// service reports no change of it (cache.Answers), so that a request costs no call.
//
// Each door has one, where it knows the tenant: the gateway for requests with an API key, the OAuth service for
// OpenID providers, the idsite service for browsers, the notification service for what it sends.
type TenantGate struct {
	directory API
	answers   *cache.Answers[id.ID, Tenant]
}

// tenantGateSize counts tenants twice: the answer, and the tenant that it depends on.
const tenantGateSize = 1 << 15

// NewTenantGate returns a gate. The name is the label of its metrics.
func NewTenantGate(name string, directory API, now func() time.Time) *TenantGate {
	changes := func(ctx context.Context, after cache.Position) (cache.Page, error) {
		return directory.AccessChanges(ctx, after)
	}
	return &TenantGate{directory, cache.NewAnswers[id.ID, Tenant](cache.AnswersConfig{
		Name: name, Size: tenantGateSize, Now: now, Feeds: []cache.Source{changes},
	})}
}

// Check returns apierr.TenantSuspended for a tenant that is suspended or being deleted, and apierr.NotFound for one
// that was deleted and of which rows and cached answers may be left, as of at most 100 ms ago. A
// tenant that is not there is none of them: what follows finds nothing.
func (g *TenantGate) Check(ctx context.Context, tenant id.ID) error {
	found, kept := g.answers.Peek(ctx, tenant)
	if !kept {
		var err error
		if found, err = g.ask(ctx, tenant); err != nil {
			return err
		}
	}
	switch found.Status {
	case Suspended, Deleting:
		return errSuspended
	case Deleted:
		return apierr.NotFound.Because("the tenant was deleted")
	}
	return nil
}

var errSuspended = apierr.TenantSuspended.Because("the operator of this deployment has suspended the tenant")

func (g *TenantGate) ask(ctx context.Context, tenant id.ID) (Tenant, error) {
	return g.answers.Ask(caller.WithTenant(ctx, tenant), tenant, func(ctx context.Context) (Tenant, []id.ID, error) {
		found, err := g.directory.Tenant(ctx, Ref{Tenant: tenant, ID: tenant})
		if errors.Is(err, apierr.NotFound) {
			err = nil
		}
		return found, []id.ID{tenant}, err
	})
}

package signup

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/idsiteapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
)

// CreateTenant creates a tenant for an operator, with its owner, who has no password until it is reset by mail, and the
// owner's API key. It returns apierr.Exists for a tenant key that is taken, or was once.
func (t *Tenants) CreateTenant(ctx context.Context, in idsiteapi.CreateTenant) (idsiteapi.Tenant, error) {
	tenant, err := t.createTenant(ctx, in.ID.String(),
		directoryapi.SignUp{Tenant: in.ID, Key: in.Key, Name: in.Name, Email: in.OwnerEmail},
		oauthapi.EnsureKey{ID: in.KeyID, Secret: in.KeySecret})
	return idsiteapi.Tenant{ID: tenant.ID}, err
}

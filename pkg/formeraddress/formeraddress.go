// Package formeraddress keeps the base addresses that tenants had in the deployments from which they were imported
// (docs/operations.md#a-tenant-moves-to-another-deployment). Like those of DOORWARD_FORMER_BASE_URLS they stay valid in
// bodies and as issuers of tokens.
package formeraddress

import (
	"context"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// Add keeps the former address of a tenant in the schema of a service.
func Add(ctx context.Context, db pg.Querier, tenant id.ID, address string) error {
	_, err := pg.Exec(ctx, db,
		`INSERT INTO former_addresses (tenant_id, address) VALUES ($1, $2) ON CONFLICT DO NOTHING`, tenant, address)
	return err
}

// All returns the former addresses of all tenants. One that is accepted for another tenant too gives that tenant
// nothing: an address leads to a resource by its id, and a token is signed by a key of its own tenant.
func All(ctx context.Context, db pg.Querier) ([]string, error) {
	return pg.Values[string](ctx, db, `SELECT DISTINCT address FROM former_addresses`)
}

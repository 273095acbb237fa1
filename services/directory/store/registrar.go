package store

import (
	"context"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// Registrar is what decides about the accounts of a directory.
type Registrar struct {
	CreationPolicy
	Required
	Name       string // of the directory
	Status     string
	ProviderID string
}

const registrarQuery = `SELECT d.name, d.status, d.provider_id, p.tenant_id, p.directory_id,
	p.verification_email_status, p.verification_success_email_status, p.welcome_email_status,
	p.email_domain_whitelist, p.email_domain_blacklist, p.created_at, p.modified_at, ` + requiredColumns + `
	FROM directories d JOIN account_creation_policies p ON p.tenant_id = d.tenant_id AND p.directory_id = d.id` + requiredFields + `
	WHERE d.tenant_id = $1 AND d.id = $2`

// Registrar returns what decides about the accounts of a directory, or
// apierr.NotFound.
func (s *Store) Registrar(ctx context.Context, tenant, directory id.ID) (Registrar, error) {
	return pg.One[Registrar](ctx, s.db, registrarQuery, tenant, directory)
}

package store

import (
	"context"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// RegistrationPolicy is what an account of a directory is validated against when it is created or
// updated: the account creation policy, the required names of the account schema, and status and
// type of the directory.
type RegistrationPolicy struct {
	CreationPolicy
	RequiredNames
	Name       string // of the directory
	Status     string
	ProviderID string
}

const registrationPolicyQuery = `SELECT d.name, d.status, d.provider_id, p.tenant_id, p.directory_id,
	p.verification_email_status, p.verification_success_email_status, p.welcome_email_status,
	p.email_domain_whitelist, p.email_domain_blacklist, p.registration_custom_data, p.created_at, p.modified_at, ` +
	requiredColumns + `
	FROM directories d JOIN account_creation_policies p ON p.tenant_id = d.tenant_id AND p.directory_id = d.id` +
	requiredFields + `
	WHERE d.tenant_id = $1 AND d.id = $2`

// RegistrationPolicy returns what accounts of a directory are validated against, or
// apierr.NotFound.
func (s *Store) RegistrationPolicy(ctx context.Context, tenant, directory id.ID) (RegistrationPolicy, error) {
	return pg.One[RegistrationPolicy](ctx, s.db, registrationPolicyQuery, tenant, directory)
}

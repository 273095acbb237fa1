package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/list/listsql"
	"github.com/doorward/doorward/pkg/pg"
)

// SAMLRegistration allows a registered service provider to request logins of a SAML identity
// provider.
type SAMLRegistration struct {
	TenantID           id.ID
	ID                 id.ID
	IdentityProviderID id.ID
	ServiceProviderID  id.ID
	Status             string
	DefaultRelayState  *string // is sent where the request of the service provider has no RelayState
	CreatedAt          time.Time
	ModifiedAt         time.Time
}

const (
	registrationColumns = `r.tenant_id, r.id, r.identity_provider_id, r.service_provider_id, r.status,
		r.default_relay_state, r.created_at, r.modified_at`
	registrationQuery = `SELECT ` + registrationColumns + ` FROM saml_registrations r WHERE r.tenant_id = $1
		AND r.id = $2`
)

// SAMLRegistrations has the attributes by which registrations are searched and sorted.
var SAMLRegistrations = list.Spec{
	"status": {Column: "r.status", Kind: list.Enum,
		Values: []string{directoryapi.Enabled, directoryapi.Disabled}},
	"defaultRelayState": {Column: "r.default_relay_state"},
	"createdAt":         {Column: "r.created_at", Kind: list.Time},
	"modifiedAt":        {Column: "r.modified_at", Kind: list.Time},
}

// SAMLRegistration returns a registration, or apierr.NotFound.
func (s *Store) SAMLRegistration(ctx context.Context, at id.Ref) (SAMLRegistration, error) {
	return pg.One[SAMLRegistration](ctx, s.db, registrationQuery, at.Tenant, at.ID)
}

// SAMLRegistrationOf returns the registration of a service provider with an identity
// provider, or apierr.NotFound.
func (s *Store) SAMLRegistrationOf(ctx context.Context, identity id.Ref, service id.ID) (SAMLRegistration, error) {
	return pg.One[SAMLRegistration](ctx, s.db, `SELECT `+registrationColumns+` FROM saml_registrations r
		WHERE r.tenant_id = $1 AND r.identity_provider_id = $2 AND r.service_provider_id = $3`, identity.Tenant,
		identity.ID, service)
}

// ListSAMLRegistrations returns a page of the registrations with an identity
// provider.
func (s *Store) ListSAMLRegistrations(ctx context.Context, provider id.Ref,
	query list.Query) (list.Page[SAMLRegistration], error) {
	return listsql.Select[SAMLRegistration](ctx, s.db, SAMLRegistrations, query, registrationColumns,
		`FROM saml_registrations r WHERE r.tenant_id = $1 AND r.identity_provider_id = $2`, "r.id", provider.Tenant,
		provider.ID)
}

// ListSAMLServiceProvidersOfIdentityProvider returns a page of the service providers that are
// registered with an identity provider.
func (s *Store) ListSAMLServiceProvidersOfIdentityProvider(
	ctx context.Context, provider id.Ref, query list.Query,
) (list.Page[SAMLServiceProvider], error) {
	return listsql.Select[SAMLServiceProvider](ctx, s.db, SAMLServiceProviders, query, serviceProviderColumns,
		`FROM saml_service_providers p WHERE p.tenant_id = $1 AND p.id IN (
			SELECT r.service_provider_id FROM saml_registrations r WHERE r.tenant_id = $1
				AND r.identity_provider_id = $2)`, "p.id", provider.Tenant, provider.ID)
}

// LockSAMLRegistration reads and locks a registration that the transaction will change.
func (tx *Tx) LockSAMLRegistration(ctx context.Context, at id.Ref) (SAMLRegistration, error) {
	return pg.One[SAMLRegistration](ctx, tx, registrationQuery+` FOR UPDATE`, at.Tenant, at.ID)
}

// InsertSAMLRegistration inserts a registration. A second registration of the same two providers
// is apierr.Exists; a provider that was deleted is apierr.NotFound.
func (tx *Tx) InsertSAMLRegistration(ctx context.Context, r SAMLRegistration) error {
	_, err := pg.Exec(ctx, tx, pg.Insert("saml_registrations", registrationColumns), pg.Named(r))
	return err
}

// UpdateSAMLRegistration writes the members that a client can change.
func (tx *Tx) UpdateSAMLRegistration(ctx context.Context, r SAMLRegistration) error {
	return pg.MustChange(ctx, tx, `UPDATE saml_registrations SET status = $3, default_relay_state = $4, modified_at = $5
		WHERE tenant_id = $1 AND id = $2`,
		r.TenantID, r.ID, r.Status, r.DefaultRelayState, r.ModifiedAt)
}

// DeleteSAMLRegistration deletes a registration, or returns apierr.NotFound.
func (tx *Tx) DeleteSAMLRegistration(ctx context.Context, at id.Ref) error {
	return pg.MustChange(ctx, tx, `DELETE FROM saml_registrations WHERE tenant_id = $1 AND id = $2`, at.Tenant, at.ID)
}

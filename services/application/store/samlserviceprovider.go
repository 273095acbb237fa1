package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/list/listsql"
	"github.com/doorward/doorward/pkg/pg"
)

// The formats of the NameID in a SAML assertion.
const (
	EmailNameID      = "EMAIL"
	PersistentNameID = "PERSISTENT"
	TransientNameID  = "TRANSIENT"
)

// SAMLServiceProvider is a registered SAML service provider (SP): a program whose users log in
// with an application as the SAML identity provider.
type SAMLServiceProvider struct {
	TenantID                    id.ID
	ID                          id.ID
	Name                        *string
	Description                 *string
	AssertionConsumerServiceURL string  `db:"assertion_consumer_service_url"`
	EntityID                    string  `db:"entity_id"`
	NameIDFormat                string  `db:"name_id_format"`
	EncodedX509Certificate      *string `db:"encoded_x509_certificate"`
	RequestsMustBeSigned        *bool   `db:"requests_must_be_signed"` // nil: if there is a certificate
	CreatedAt                   time.Time
	ModifiedAt                  time.Time
}

// MustSignRequests reports whether a request without a signature is refused.
func (p SAMLServiceProvider) MustSignRequests() bool {
	if p.RequestsMustBeSigned != nil {
		return *p.RequestsMustBeSigned
	}
	return p.EncodedX509Certificate != nil
}

const serviceProviderColumns = `p.tenant_id, p.id, p.name, p.description, p.assertion_consumer_service_url, p.entity_id,
	p.name_id_format, p.encoded_x509_certificate, p.requests_must_be_signed, p.created_at, p.modified_at`

// SAMLServiceProviders has the attributes by which service providers are searched and sorted.
var SAMLServiceProviders = list.Spec{
	"name":                        {Column: "p.name", Folded: "p.name_folded"},
	"description":                 {Column: "p.description", Folded: "p.description_folded"},
	"assertionConsumerServiceUrl": {Column: "p.assertion_consumer_service_url"},
	"entityId":                    {Column: "p.entity_id"},
	"nameIdFormat":                {Column: "p.name_id_format"},
	"encodedX509Certificate":      {Column: "p.encoded_x509_certificate"},
	"createdAt":                   {Column: "p.created_at", Kind: list.Time},
	"modifiedAt":                  {Column: "p.modified_at", Kind: list.Time},
}

// SAMLServiceProvider returns a service provider, or apierr.NotFound.
func (s *Store) SAMLServiceProvider(ctx context.Context, tenant, provider id.ID) (SAMLServiceProvider, error) {
	return pg.One[SAMLServiceProvider](ctx, s.db, `SELECT `+serviceProviderColumns+` FROM saml_service_providers p
		WHERE p.tenant_id = $1 AND p.id = $2`, tenant, provider)
}

// SAMLServiceProviderOfEntity returns the service provider with an entity id, which is compared
// byte for byte, or apierr.NotFound.
func (s *Store) SAMLServiceProviderOfEntity(ctx context.Context, tenant id.ID,
	entity string) (SAMLServiceProvider, error) {
	return pg.One[SAMLServiceProvider](ctx, s.db, `SELECT `+serviceProviderColumns+` FROM saml_service_providers p
		WHERE p.tenant_id = $1 AND p.entity_id = $2`, tenant, entity)
}

// ListSAMLServiceProviders returns a page of the tenant's service providers.
func (s *Store) ListSAMLServiceProviders(ctx context.Context, tenant id.Ref,
	query list.Query) (list.Page[SAMLServiceProvider], error) {
	return listsql.Select[SAMLServiceProvider](ctx, s.db, SAMLServiceProviders, query, serviceProviderColumns,
		`FROM saml_service_providers p WHERE p.tenant_id = $1`, "p.id", tenant.Tenant)
}

// LockSAMLServiceProvider reads and locks a service provider that the transaction will change.
func (tx *Tx) LockSAMLServiceProvider(ctx context.Context, tenant, provider id.ID) (SAMLServiceProvider, error) {
	return pg.One[SAMLServiceProvider](ctx, tx, `SELECT `+serviceProviderColumns+` FROM saml_service_providers p
		WHERE p.tenant_id = $1 AND p.id = $2 FOR UPDATE`, tenant, provider)
}

// InsertSAMLServiceProvider inserts a service provider. An entity id that is taken is
// apierr.Exists.
func (tx *Tx) InsertSAMLServiceProvider(ctx context.Context, p SAMLServiceProvider) error {
	_, err := pg.Exec(ctx, tx, pg.Insert("saml_service_providers", serviceProviderColumns+
		", name_folded, description_folded"), p.args())
	return err
}

// UpdateSAMLServiceProvider writes the members that a client can change. An entity id that is
// taken is apierr.Exists.
func (tx *Tx) UpdateSAMLServiceProvider(ctx context.Context, p SAMLServiceProvider) error {
	return pg.MustChange(ctx, tx, `UPDATE saml_service_providers SET `+pg.Set(`name, name_folded, description,
		description_folded,
		assertion_consumer_service_url, entity_id, name_id_format, encoded_x509_certificate, requests_must_be_signed,
		modified_at`)+` WHERE tenant_id = @tenant_id AND id = @id`, p.args())
}

// args are the values of the columns by their names.
func (p SAMLServiceProvider) args() pg.NamedArgs {
	return pg.Named(p, pg.Args{"name_folded": field.FoldOptional(p.Name),
		"description_folded": field.FoldOptional(p.Description)})
}

// DeleteSAMLServiceProvider deletes a service provider with its registrations, or returns
// apierr.NotFound.
func (tx *Tx) DeleteSAMLServiceProvider(ctx context.Context, at id.Ref) error {
	return pg.MustChange(ctx, tx, `DELETE FROM saml_service_providers WHERE tenant_id = $1 AND id = $2`, at.Tenant,
		at.ID)
}

// SAMLCertificates returns the certificates of at most limit service providers of all tenants, in the order
// of tenants and ids, after that of another one.
func (s *Store) SAMLCertificates(ctx context.Context, after SAMLServiceProvider,
	limit int) ([]SAMLServiceProvider, error) {
	return pg.All[SAMLServiceProvider](ctx, s.db, `SELECT `+serviceProviderColumns+` FROM saml_service_providers p
		WHERE ($1::uuid IS NULL OR (tenant_id, id) > ($1, $2)) AND p.encoded_x509_certificate IS NOT NULL
		ORDER BY tenant_id, id LIMIT $3`, after.TenantID, after.ID, limit)
}

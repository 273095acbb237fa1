package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// SAMLServiceProvider is a SAML directory as the service provider that its identity provider
// knows.
type SAMLServiceProvider struct {
	TenantID         id.ID
	ID               id.ID // of its metadata
	DirectoryID      id.ID
	CertificateID    id.ID
	Certificate      string // PEM
	PrivateKeySealed []byte // PKCS #8
	CreatedAt        time.Time
	ModifiedAt       time.Time
}

const (
	samlServiceProviderColumns = `tenant_id, id, directory_id, certificate_id, certificate, private_key_sealed, created_at,
		modified_at`
	samlServiceProviderQuery = `SELECT ` + samlServiceProviderColumns + ` FROM saml_service_providers
		WHERE tenant_id = $1 AND `
)

// SAMLServiceProvider returns the service provider with a metadata id, or apierr.NotFound.
func (s *Store) SAMLServiceProvider(ctx context.Context, tenant, metadata id.ID) (SAMLServiceProvider, error) {
	return pg.One[SAMLServiceProvider](ctx, s.db, samlServiceProviderQuery+`id = $2`, tenant, metadata)
}

// SAMLTenant returns the tenant of a SAML directory, or apierr.NotFound: the identity provider
// names the directory alone.
func (s *Store) SAMLTenant(ctx context.Context, directory id.ID) (id.ID, error) {
	return pg.Value[id.ID](ctx, s.db, `SELECT tenant_id FROM saml_service_providers WHERE directory_id = $1`, directory)
}

// Certificate returns a certificate in PEM, or apierr.NotFound.
func (s *Store) Certificate(ctx context.Context, tenant, certificate id.ID) (string, error) {
	return pg.Value[string](ctx, s.db, `SELECT certificate FROM saml_service_providers
		WHERE tenant_id = $1 AND certificate_id = $2`, tenant, certificate)
}

// InsertSAMLServiceProvider inserts the service provider of a new directory.
func (tx *Tx) InsertSAMLServiceProvider(ctx context.Context, p SAMLServiceProvider) error {
	_, err := pg.Exec(ctx, tx, pg.Insert("saml_service_providers", samlServiceProviderColumns), pg.Named(p))
	return err
}

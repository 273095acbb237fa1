package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/purge/purgesql"
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
	samlServiceProviderColumns = `tenant_id, id, directory_id, certificate_id, certificate, private_key_sealed,
		created_at, modified_at`
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

// SAMLAssertion is an assertion that was used.
type SAMLAssertion struct {
	Digest []byte // SHA-256 of its id
}

// UseSAMLAssertion queues the record of the use of an assertion. After the next query or the
// commit, used has one element, or none where the assertion was used before (replay).
func (tx *Tx) UseSAMLAssertion(_ context.Context, tenant, directory id.ID, of SAMLAssertion,
	expiresAt time.Time) (used *[]SAMLAssertion) {
	used = new([]SAMLAssertion)
	pg.QueueReturning(tx, used, `INSERT INTO saml_assertions (tenant_id, directory_id, digest, expires_at)
		VALUES ($1, $2, $3, $4)
		ON CONFLICT DO NOTHING RETURNING digest`, tenant, directory, of.Digest, expiresAt)
	return used
}

// ExpiringSAMLAssertions are the assertions, for the purge.
var ExpiringSAMLAssertions = purgesql.Rows{Table: "saml_assertions", Time: "expires_at"}

// SAMLCertificate are the signing certificates of an identity provider.
type SAMLCertificate struct {
	TenantID    id.ID
	DirectoryID id.ID
	Settings    ProviderSettings
}

// SAMLCertificates returns the certificates of at most limit directories of all tenants, in the
// order of tenants and directories, after those of another one.
func (s *Store) SAMLCertificates(ctx context.Context, after SAMLCertificate, limit int) ([]SAMLCertificate, error) {
	return pg.All[SAMLCertificate](ctx, s.db, `SELECT tenant_id, directory_id, settings FROM providers
		WHERE ($1::uuid IS NULL OR (tenant_id, directory_id) > ($1, $2)) AND settings ? 'encodedX509SigningCert'
		ORDER BY tenant_id, directory_id LIMIT $3`,
		after.TenantID, after.DirectoryID, limit)
}

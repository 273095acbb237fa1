package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/purge/purgesql"
)

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

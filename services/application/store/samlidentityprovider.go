package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/mappingrule"
	"github.com/doorward/doorward/pkg/pg"
)

// SAMLIdentityProvider is an application as a SAML identity provider (IdP): the accounts of the
// application log in to the service providers that are registered with it. Its id is that of
// the application's SAML policy.
type SAMLIdentityProvider struct {
	TenantID           id.ID
	ID                 id.ID
	ApplicationID      id.ID
	Status             string
	SignatureAlgorithm string // saml.SHA256 or saml.SHA1
	CertificateID      id.ID  // the id of the provider, until the key pair is replaced
	Certificate        string // PEM
	PrivateKeySealed   []byte // PKCS #8
	CreatedAt          time.Time
	ModifiedAt         time.Time
}

// Times returns the times that collections of the identity provider show.
func (p SAMLIdentityProvider) Times() (createdAt, modifiedAt time.Time) {
	return p.CreatedAt, p.ModifiedAt
}

const (
	identityProviderColumns = `tenant_id, id, application_id, status, signature_algorithm, certificate_id, certificate,
		private_key_sealed, created_at, modified_at`
	fromIdentityProviders = `SELECT ` + identityProviderColumns + ` FROM saml_identity_providers`
	identityProviderQuery = fromIdentityProviders + ` WHERE tenant_id = $1 AND id = $2`
	samlRulesQuery        = `SELECT tenant_id, id, '` + string(mappingrule.AttributeStatement) +
		`' AS kind, mapping_rules AS items, created_at, rules_modified_at AS modified_at
		FROM saml_identity_providers WHERE tenant_id = $1 AND id = $2`
)

// SAMLIdentityProvider returns an identity provider, or apierr.NotFound for one that was not
// created yet.
func (s *Store) SAMLIdentityProvider(ctx context.Context, at id.Ref) (SAMLIdentityProvider, error) {
	return pg.One[SAMLIdentityProvider](ctx, s.db, identityProviderQuery, at.Tenant, at.ID)
}

// SAMLIdentityProviderOfCertificate returns the identity provider that signs with the key of
// a certificate, or apierr.NotFound.
func (s *Store) SAMLIdentityProviderOfCertificate(ctx context.Context, at id.Ref) (SAMLIdentityProvider, error) {
	return pg.One[SAMLIdentityProvider](ctx, s.db,
		fromIdentityProviders+` WHERE tenant_id = $1 AND certificate_id = $2`,
		at.Tenant, at.ID)
}

// SAMLRules returns the attribute statement mapping rules of an identity provider.
func (s *Store) SAMLRules(ctx context.Context, at id.Ref) (mappingrule.Rules, error) {
	return pg.One[mappingrule.Rules](ctx, s.db, samlRulesQuery, at.Tenant, at.ID)
}

// InsertSAMLIdentityProviderIfAbsent inserts an identity provider unless it exists already. It
// returns apierr.NotFound when the application was deleted.
func (tx *Tx) InsertSAMLIdentityProviderIfAbsent(ctx context.Context, p SAMLIdentityProvider) error {
	_, err := pg.Exec(ctx, tx, pg.Insert("saml_identity_providers", identityProviderColumns+", rules_modified_at")+
		` ON CONFLICT DO NOTHING`, pg.Named(p, pg.Args{"rules_modified_at": p.CreatedAt}))
	return err
}

// LockSAMLIdentityProvider reads and locks an identity provider that the transaction will change.
func (tx *Tx) LockSAMLIdentityProvider(ctx context.Context, at id.Ref) (SAMLIdentityProvider, error) {
	return pg.One[SAMLIdentityProvider](ctx, tx, identityProviderQuery+` FOR UPDATE`, at.Tenant, at.ID)
}

// LockSAMLRules reads and locks rules that the transaction will change.
func (tx *Tx) LockSAMLRules(ctx context.Context, at id.Ref) (mappingrule.Rules, error) {
	return pg.One[mappingrule.Rules](ctx, tx, samlRulesQuery+` FOR UPDATE`, at.Tenant, at.ID)
}

// UpdateSAMLIdentityProvider writes the members that a client can change, and the key pair.
func (tx *Tx) UpdateSAMLIdentityProvider(ctx context.Context, p SAMLIdentityProvider) error {
	return pg.MustChange(ctx, tx, `UPDATE saml_identity_providers SET `+pg.Set(`status, signature_algorithm,
		certificate_id,
		certificate, private_key_sealed, modified_at`)+` WHERE tenant_id = @tenant_id AND id = @id`, pg.Named(p))
}

// UpdateSAMLRules writes the rules.
func (tx *Tx) UpdateSAMLRules(ctx context.Context, r mappingrule.Rules) error {
	return pg.MustChange(ctx, tx, `UPDATE saml_identity_providers SET mapping_rules = $3, rules_modified_at = $4
		WHERE tenant_id = $1 AND id = $2`, r.TenantID, r.ID, r.Items, r.ModifiedAt)
}

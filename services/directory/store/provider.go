package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/mappingrule"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
)

// Provider is where the users of a directory are managed (social provider, identity provider, LDAP
// server), and how to connect to it.
type Provider struct {
	TenantID           id.ID
	DirectoryID        id.ID
	ProviderID         string // of the directory
	DirectoryStatus    string
	ProviderType       string // oauth or oauth2 for generic OAuth, otherwise the ProviderID
	Settings           ProviderSettings
	ClientSecretSealed []byte
	AgentID            id.ID // of an LDAP or Active Directory one; zero for others
	MappingRulesID     id.ID // zero where the type has none
	MappingRulesKind   mappingrule.Kind
	MetadataID         id.ID      // of a SAML one; zero for others
	MetadataDueAt      *time.Time // when the metadata of the identity provider are read again; nil: there is no address
	CreatedAt          time.Time
	ModifiedAt         time.Time

	// ClientSecret is the opened ClientSecretSealed, where it is shown.
	ClientSecret secure.Secret `db:"-"`
	// CertificateStatus is the state of the signing certificates of a SAML one, where it is shown
	// (pkg/saml/certificate.go).
	CertificateStatus string `db:"-"`
}

// ProviderSettings are what a client can change of a provider; each type has some of them. Their
// JSON is that of the HTTP interface.
type ProviderSettings struct {
	ClientID                   *string  `json:"clientId,omitempty"`
	Scope                      []string `json:"scope,omitzero"`
	RedirectURI                *string  `json:"redirectUri,omitempty"`
	HD                         *string  `json:"hd,omitempty"`
	Display                    *string  `json:"display,omitempty"`
	AccessType                 *string  `json:"accessType,omitempty"`
	AuthorizationEndpoint      *string  `json:"authorizationEndpoint,omitempty"`
	TokenEndpoint              *string  `json:"tokenEndpoint,omitempty"`
	ResourceEndpoint           *string  `json:"resourceEndpoint,omitempty"`
	IntrospectionEndpoint      *string  `json:"introspectionEndpoint,omitempty"`
	AcceptForeignTokens        *bool    `json:"acceptForeignTokens,omitempty"`
	DiscoveryURL               *string  `json:"discoveryUrl,omitempty"`
	IDField                    *string  `json:"idField,omitempty"`
	AccessTokenType            *string  `json:"accessTokenType,omitempty"`
	SSOLoginURL                *string  `json:"ssoLoginUrl,omitempty"`
	SSOLogoutURL               *string  `json:"ssoLogoutUrl,omitempty"`
	EncodedX509SigningCert     *string  `json:"encodedX509SigningCert,omitempty"`
	EncodedX509SigningCertNext *string  `json:"encodedX509SigningCertNext,omitempty"`
	RequestSignatureAlgorithm  *string  `json:"requestSignatureAlgorithm,omitempty"`
	ForceAuthn                 *bool    `json:"forceAuthn,omitempty"`
	EntityID                   *string  `json:"entityId,omitempty"`
	Metadata                   *string  `json:"metadata,omitempty"`
	MetadataURL                *string  `json:"metadataUrl,omitempty"`
	// MetadataCertificates are further signing certificates that the metadata name, besides the two above.
	MetadataCertificates []string `json:"metadataCertificates,omitempty"`
	ClockSkew            *int     `json:"clockSkew,omitempty"` // seconds
	TrustsReusedEmails   *bool    `json:"trustsReusedEmails,omitempty"`
}

// SigningCertificates returns the certificates of a SAML identity provider. A signature by any of them is
// valid.
func (s ProviderSettings) SigningCertificates() (all []string) {
	for _, certificate := range []*string{s.EncodedX509SigningCert, s.EncodedX509SigningCertNext} {
		if certificate != nil {
			all = append(all, *certificate)
		}
	}
	return append(all, s.MetadataCertificates...)
}

// selectProvider also selects a provider for a cloud directory, which has no row and never changes.
const selectProvider = `SELECT d.tenant_id, d.id AS directory_id, d.provider_id, d.status AS directory_status,
	coalesce(p.provider_type, d.provider_id) AS provider_type,
	coalesce(p.settings, '{}') AS settings, p.client_secret_sealed, a.id AS agent_id, r.id AS mapping_rules_id,
		coalesce(r.kind, '') AS mapping_rules_kind, s.id AS metadata_id, p.metadata_due_at,
	coalesce(p.created_at, d.created_at) AS created_at, coalesce(p.modified_at, d.created_at) AS modified_at
	FROM directories d
	LEFT JOIN providers p ON p.tenant_id = d.tenant_id AND p.directory_id = d.id
	LEFT JOIN agents a ON a.tenant_id = d.tenant_id AND a.directory_id = d.id
	LEFT JOIN mapping_rules r ON r.tenant_id = d.tenant_id AND r.directory_id = d.id
	LEFT JOIN saml_service_providers s ON s.tenant_id = d.tenant_id AND s.directory_id = d.id
	WHERE d.tenant_id = $1 AND d.id = $2`

// Provider returns the provider of a directory, or apierr.NotFound.
func (s *Store) Provider(ctx context.Context, tenant, directory id.ID) (Provider, error) {
	return pg.One[Provider](ctx, s.db, selectProvider, tenant, directory)
}

// AccountProvider is a provider with what decides about logins and accounts of its users.
type AccountProvider struct {
	Provider
	Rules              []mappingrule.Rule // empty for a type without mapping rules
	RegistrationPolicy RegistrationPolicy
	SAML               SAMLServiceProvider // zero for another type than SAML
}

// AccountProvider returns the provider of a directory in one round trip, or
// apierr.NotFound.
func (s *Store) AccountProvider(ctx context.Context, tenant, directory id.ID) (AccountProvider, error) {
	var batch pg.Batch
	var providers []Provider
	var rules []mappingrule.Rules
	var policies []RegistrationPolicy
	var serviceProviders []SAMLServiceProvider
	pg.QueueAll(&batch, &providers, selectProvider, tenant, directory)
	pg.QueueAll(&batch, &rules, `SELECT tenant_id, id, kind, items, created_at, modified_at FROM mapping_rules
		WHERE tenant_id = $1 AND directory_id = $2`, tenant, directory)
	pg.QueueAll(&batch, &policies, registrationPolicyQuery, tenant, directory)
	pg.QueueAll(&batch, &serviceProviders, samlServiceProviderQuery+`directory_id = $2`, tenant, directory)
	if err := pg.ExecBatch(ctx, s.db, &batch); err != nil {
		return AccountProvider{}, err
	}
	if len(providers) == 0 || len(policies) == 0 {
		return AccountProvider{}, apierr.NotFound
	}
	p := AccountProvider{Provider: providers[0], RegistrationPolicy: policies[0]}
	if len(rules) > 0 {
		p.Rules = rules[0].Items
	}
	if len(serviceProviders) > 0 {
		p.SAML = serviceProviders[0]
	}
	return p, nil
}

// LoginProvider is a directory with what a hosted login page shows of its provider.
type LoginProvider struct {
	ID           id.ID
	Name         string
	Status       string
	ProviderID   string
	ProviderType string
	Settings     ProviderSettings
}

// LoginProviders returns those of the directories that exist, in the order of their ids in the
// request.
func (s *Store) LoginProviders(ctx context.Context, tenant id.ID, directories []id.ID) ([]LoginProvider, error) {
	return pg.All[LoginProvider](ctx, s.db, `SELECT d.id, d.name, d.status, d.provider_id,
		coalesce(p.provider_type, d.provider_id) AS provider_type, coalesce(p.settings, '{}') AS settings
		FROM directories d LEFT JOIN providers p ON p.tenant_id = d.tenant_id AND p.directory_id = d.id
		WHERE d.tenant_id = $1 AND d.id = ANY ($2) ORDER BY array_position($2, d.id)`, tenant, directories)
}

// LockProvider reads a provider and locks its directory for a change.
func (tx *Tx) LockProvider(ctx context.Context, tenant, directory id.ID) (Provider, error) {
	return pg.One[Provider](ctx, tx, selectProvider+` FOR UPDATE OF d`, tenant, directory)
}

// InsertProvider adds the provider of a new mirror directory.
func (tx *Tx) InsertProvider(ctx context.Context, p Provider) error {
	_, err := pg.Exec(ctx, tx, pg.Insert("providers", `tenant_id, directory_id, provider_type, settings,
		client_secret_sealed, metadata_due_at, created_at, modified_at`), pg.Named(p))
	return err
}

// UpdateProvider updates what a client can change.
func (tx *Tx) UpdateProvider(ctx context.Context, p Provider) error {
	return pg.MustChange(ctx, tx, `UPDATE providers SET `+pg.Set(`provider_type, settings, client_secret_sealed,
		metadata_due_at, modified_at`)+` WHERE tenant_id = @tenant_id AND directory_id = @directory_id`, pg.Named(p))
}

// ProviderRef names the provider of a directory.
type ProviderRef struct {
	TenantID    id.ID
	DirectoryID id.ID
}

// TakeDueMetadata returns at most limit providers whose metadata are due to be read again before a time, and
// sets when they are due next: no other worker takes them until then.
func (tx *Tx) TakeDueMetadata(ctx context.Context, now, next time.Time, limit int) ([]ProviderRef, error) {
	return pg.All[ProviderRef](ctx, tx, `UPDATE providers SET metadata_due_at = $2 WHERE (tenant_id, directory_id) IN (
		SELECT tenant_id, directory_id FROM providers WHERE metadata_due_at <= $1 ORDER BY metadata_due_at LIMIT $3
		FOR UPDATE SKIP LOCKED)
		RETURNING tenant_id, directory_id`, now, next, limit)
}

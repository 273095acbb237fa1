package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/customdata/customdatastore"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/list/listsql"
	"github.com/doorward/doorward/pkg/pg"
)

// OpenIDProvider is the OpenID provider that an application is.
type OpenIDProvider struct {
	TenantID      id.ID
	ApplicationID id.ID
	Settings      OpenIDProviderSettings
	Issuer        string `db:"-"` // the iss of its tokens
	CreatedAt     time.Time
	ModifiedAt    time.Time
}

// OpenIDProviderSettings are the members of a provider that a client may change, as the interface names them.
type OpenIDProviderSettings struct {
	Status                    string         `json:"status"`
	IssuerDomain              string         `json:"issuerDomain"`       // "": HOST
	Profile                   string         `json:"profile"`            // "": NONE
	ClientRegistration        string         `json:"clientRegistration"` // "": NONE
	ClientIDMetadataDocuments bool           `json:"clientIdMetadataDocuments"`
	SigningAlgorithm          string         `json:"signingAlgorithm"`
	IDTokenTTL                string         `json:"idTokenTtl"`
	AuthorizationCodeTTL      string         `json:"authorizationCodeTtl"`
	RefreshTokenIdleTTL       string         `json:"refreshTokenIdleTtl"`
	RefreshTokenGrace         string         `json:"refreshTokenGrace"`
	Scopes                    []OpenIDScope  `json:"scopes"`
	Claims                    []ClaimMapping `json:"claims"`
}

// OpenIDScope is a scope of the application's APIs.
type OpenIDScope struct {
	Name        string   `json:"name"`
	Description *string  `json:"description"`
	Resources   []string `json:"resources"` // addresses of the APIs; none: any
	Consent     bool     `json:"consent"`   // asked for even of first-party clients
	Groups      []id.ID  `json:"groups"`    // not empty: given to their members alone
}

// ClaimMapping is a claim of tokens that has the value of an attribute of the account.
type ClaimMapping struct {
	Claim  string   `json:"claim"`
	Source string   `json:"source"`
	Scopes []string `json:"scopes"`
	In     []string `json:"in"`
}

const (
	openIDProviderColumns = `p.tenant_id, p.application_id, p.settings, p.created_at, p.modified_at`
	openIDProviderQuery   = `SELECT ` + openIDProviderColumns + ` FROM openid_providers p WHERE p.tenant_id = $1
		AND p.application_id = $2`
)

// OpenIDProvider returns the provider of an application, or apierr.NotFound for one that was never changed.
func (s *Store) OpenIDProvider(ctx context.Context, application id.Ref) (OpenIDProvider, error) {
	return pg.One[OpenIDProvider](ctx, s.db, openIDProviderQuery, application.Tenant, application.ID)
}

// CachedOpenIDProvider is OpenIDProvider as of at most 50 ms ago.
func (s *Store) CachedOpenIDProvider(ctx context.Context, application id.Ref) (OpenIDProvider, error) {
	return s.openIDProviders.One(ctx, application)
}

// LockOpenIDProvider reads and locks a provider that the transaction will change. Where none is stored it
// inserts p.
func (tx *Tx) LockOpenIDProvider(ctx context.Context, p OpenIDProvider) (OpenIDProvider, error) {
	tx.store.openIDProviders.InvalidateAfter(tx, id.Ref{Tenant: p.TenantID, ID: p.ApplicationID})
	tx.Queue(pg.Insert("openid_providers", openIDProviderColumns)+` ON CONFLICT DO NOTHING`, pg.Named(p))
	return pg.One[OpenIDProvider](ctx, tx, openIDProviderQuery+` FOR UPDATE`, p.TenantID, p.ApplicationID)
}

// UpdateOpenIDProvider writes the members that a client can change.
func (tx *Tx) UpdateOpenIDProvider(ctx context.Context, p OpenIDProvider) error {
	return pg.MustChange(ctx, tx, `UPDATE openid_providers SET settings = $3, modified_at = $4
		WHERE tenant_id = $1 AND application_id = $2`, p.TenantID, p.ApplicationID, p.Settings, p.ModifiedAt)
}

// OpenIDClient is a client of an application (relying party).
type OpenIDClient struct {
	TenantID      id.ID
	ID            id.ID
	ClientID      string // ID in base62
	ApplicationID id.ID
	Name          string
	Description   *string
	Status        string
	Settings      OpenIDClientSettings
	// RegistrationDigest is that of the token by which a client that has registered itself changes its metadata
	// (RFC 7592); nil: it was made by the management API.
	RegistrationDigest []byte
	UnusedUntil        *time.Time // when it ends unless a user logs in; nil: it does not
	CreatedAt          time.Time
	ModifiedAt         time.Time
}

// OpenIDClientSettings are the members of a client that may be changed, as the interface names them: the client
// metadata of RFC 7591 and OpenID Connect Registration, and ours.
type OpenIDClientSettings struct {
	ApplicationType                    string           `json:"applicationType"`
	RedirectURIs                       []string         `json:"redirectUris"`
	PostLogoutRedirectURIs             []string         `json:"postLogoutRedirectUris"`
	GrantTypes                         []string         `json:"grantTypes"`
	ResponseTypes                      []string         `json:"responseTypes"`
	TokenEndpointAuthMethod            string           `json:"tokenEndpointAuthMethod"`
	TokenEndpointAuthSigningAlg        *string          `json:"tokenEndpointAuthSigningAlg"`
	RequestObjectSigningAlg            *string          `json:"requestObjectSigningAlg"`
	JWKS                               *json.RawMessage `json:"jwks"`
	JWKSURI                            *string          `json:"jwksUri"`
	RequirePKCE                        bool             `json:"requirePkce"`
	RequirePushedAuthorizationRequests bool             `json:"requirePushedAuthorizationRequests"`
	RequireSignedRequestObject         bool             `json:"requireSignedRequestObject"`
	DPoPBoundAccessTokens              bool             `json:"dpopBoundAccessTokens"`
	IDTokenSignedResponseAlg           *string          `json:"idTokenSignedResponseAlg"`
	UserinfoSignedResponseAlg          *string          `json:"userinfoSignedResponseAlg"`
	SubjectType                        string           `json:"subjectType"`
	SectorIdentifierURI                *string          `json:"sectorIdentifierUri"`
	AccessTokenFormat                  string           `json:"accessTokenFormat"`
	AccessTokenTTL                     *string          `json:"accessTokenTtl"`
	RefreshTokenTTL                    *string          `json:"refreshTokenTtl"`
	IDTokenTTL                         *string          `json:"idTokenTtl"`
	DefaultMaxAge                      *int             `json:"defaultMaxAge"`
	RequireAuthTime                    bool             `json:"requireAuthTime"`
	DefaultACRValues                   []string         `json:"defaultAcrValues"`
	InitiateLoginURI                   *string          `json:"initiateLoginUri"`
	FrontchannelLogoutURI              *string          `json:"frontchannelLogoutUri"`
	BackchannelLogoutURI               *string          `json:"backchannelLogoutUri"`
	BackchannelLogoutSessionRequired   bool             `json:"backchannelLogoutSessionRequired"`
	RefreshTokenRotation               string           `json:"refreshTokenRotation"`
	TokenExchange                      string           `json:"tokenExchange"`
	Resources                          []string         `json:"resources"`
	Consent                            string           `json:"consent"`
	Scopes                             []string         `json:"scopes"` // nil: all
	LogoURI                            *string          `json:"logoUri"`
	ClientURI                          *string          `json:"clientUri"`
	PolicyURI                          *string          `json:"policyUri"`
	TosURI                             *string          `json:"tosUri"`
	Contacts                           []string         `json:"contacts"`
}

const (
	openIDClientColumns = `c.tenant_id, c.id, c.client_id, c.application_id, c.name, c.description, c.status, c.settings,
		c.registration_digest, c.unused_until, c.created_at, c.modified_at`
	openIDClientQuery   = `SELECT ` + openIDClientColumns + ` FROM openid_clients c WHERE c.tenant_id = $1 AND c.id = $2`
	clientSecretColumns = `s.tenant_id, s.client_id, s.id, s.digest, s.created_at, s.last_used_at,
		s.unused_until`
	clientSecretQuery = `SELECT ` + clientSecretColumns + ` FROM openid_client_secrets s
		WHERE s.tenant_id = $1 AND s.client_id = $2 ORDER BY s.id`
)

// ClientCustomData returns the customData of clients.
func (s *Store) ClientCustomData(now func() time.Time) customdata.Store {
	return customdatastore.Store{DB: s.db, Now: now, Table: "openid_clients", ID: "id"}
}

// MergeClientCustomData merges a document into the customData of a client, which the transaction has locked or
// inserted.
func (tx *Tx) MergeClientCustomData(ctx context.Context, client id.Ref, in customdata.Document, now time.Time) error {
	if in.IsEmpty() {
		return nil
	}
	_, err := customdatastore.Merge(ctx, tx, client.Tenant, client.ID, in, now)
	return err
}

// OpenIDClients has the attributes by which the clients of an application are searched and sorted.
var OpenIDClients = list.Spec{
	"name":       {Column: "c.name", Folded: "c.name_folded"},
	"clientId":   {Column: "c.client_id"},
	"status":     {Column: "c.status", Kind: list.Enum, Values: []string{"ENABLED", "DISABLED"}},
	"createdAt":  {Column: "c.created_at", Kind: list.Time},
	"modifiedAt": {Column: "c.modified_at", Kind: list.Time},
}

// OpenIDClient returns a client, or apierr.NotFound.
func (s *Store) OpenIDClient(ctx context.Context, client id.Ref) (OpenIDClient, error) {
	return pg.One[OpenIDClient](ctx, s.db, openIDClientQuery, client.Tenant, client.ID)
}

// OpenIDClientsByID returns those clients of a tenant that are there.
func (s *Store) OpenIDClientsByID(ctx context.Context, tenant id.ID, clients []id.ID) ([]OpenIDClient, error) {
	return pg.All[OpenIDClient](ctx, s.db, `SELECT `+openIDClientColumns+` FROM openid_clients c
		WHERE c.tenant_id = $1 AND c.id = ANY ($2)`, tenant, clients)
}

// CachedOpenIDClient is OpenIDClient as of at most 50 ms ago.
func (s *Store) CachedOpenIDClient(ctx context.Context, client id.Ref) (OpenIDClient, error) {
	return s.openIDClients.One(ctx, client)
}

// ListOpenIDClients returns a page of an application's clients.
func (s *Store) ListOpenIDClients(ctx context.Context, application id.Ref, query list.Query) (list.Page[OpenIDClient],
	error) {
	return listsql.Select[OpenIDClient](ctx, s.db, OpenIDClients, query, openIDClientColumns,
		`FROM openid_clients c WHERE c.tenant_id = $1 AND c.application_id = $2`, "c.id", application.Tenant, application.ID)
}

// RedirectURIs returns the redirect URIs of the enabled clients of an application.
func (s *Store) RedirectURIs(ctx context.Context, application id.Ref) ([]string, error) {
	return pg.Values[string](ctx, s.db, `SELECT DISTINCT jsonb_array_elements_text(c.settings -> 'redirectUris')
		FROM openid_clients c WHERE c.tenant_id = $1 AND c.application_id = $2 AND c.status = 'ENABLED'`, application.Tenant, application.ID)
}

// ClientsOfApplication returns all clients of an application.
func (tx *Tx) ClientsOfApplication(ctx context.Context, application id.Ref) ([]OpenIDClient, error) {
	return pg.All[OpenIDClient](ctx, tx, `SELECT `+openIDClientColumns+` FROM openid_clients c
		WHERE c.tenant_id = $1 AND c.application_id = $2 ORDER BY c.id`, application.Tenant, application.ID)
}

// LockOpenIDClient reads and locks a client that the transaction will change.
func (tx *Tx) LockOpenIDClient(ctx context.Context, client id.Ref) (OpenIDClient, error) {
	tx.store.openIDClients.InvalidateAfter(tx, client)
	tx.store.clientSecrets.InvalidateAfter(tx, client)
	return pg.One[OpenIDClient](ctx, tx, openIDClientQuery+` FOR UPDATE`, client.Tenant, client.ID)
}

func (c OpenIDClient) args() pg.NamedArgs {
	return pg.Named(c, pg.Args{"name_folded": field.Fold(c.Name)})
}

// InsertOpenIDClient adds a client. A name that the application has is apierr.Exists.
func (tx *Tx) InsertOpenIDClient(ctx context.Context, c OpenIDClient) error {
	_, err := pg.Exec(ctx, tx, pg.Insert("openid_clients", openIDClientColumns+", name_folded"), c.args())
	return err
}

// SaveOpenIDClient adds a client or, where it is there with other settings, replaces them.
func (tx *Tx) SaveOpenIDClient(ctx context.Context, c OpenIDClient) error {
	tx.store.openIDClients.InvalidateAfter(tx, id.Ref{Tenant: c.TenantID, ID: c.ID})
	_, err := pg.Exec(ctx, tx, pg.Insert("openid_clients", openIDClientColumns+", name_folded")+`
		ON CONFLICT (tenant_id, id) DO UPDATE SET name = excluded.name, name_folded = excluded.name_folded,
			settings = excluded.settings, modified_at = excluded.modified_at
		WHERE openid_clients.settings <> excluded.settings`, c.args())
	return err
}

// KeepOpenIDClient keeps a client that has registered itself, or returns apierr.NotFound for one that has ended.
func (tx *Tx) KeepOpenIDClient(ctx context.Context, client id.Ref) error {
	tx.store.openIDClients.InvalidateAfter(tx, client)
	tx.store.clientSecrets.InvalidateAfter(tx, client)
	tx.Queue(`UPDATE openid_client_secrets SET unused_until = NULL WHERE tenant_id = $1 AND client_id = $2`,
		client.Tenant, client.ID)
	return pg.MustChange(ctx, tx, `UPDATE openid_clients SET unused_until = NULL WHERE tenant_id = $1 AND id = $2`,
		client.Tenant, client.ID)
}

// UpdateOpenIDClient writes the members of a locked client that may be changed.
func (tx *Tx) UpdateOpenIDClient(ctx context.Context, c OpenIDClient) error {
	return pg.MustChange(ctx, tx, `UPDATE openid_clients SET `+pg.Set(`name, name_folded, description, status, settings,
		modified_at`)+` WHERE tenant_id = @tenant_id AND id = @id`, c.args())
}

// DeleteOpenIDClient deletes a locked client with its secrets.
func (tx *Tx) DeleteOpenIDClient(ctx context.Context, client id.Ref) error {
	if err := customdatastore.Remove(ctx, tx, client.Tenant, client.ID); err != nil {
		return err
	}
	tx.Queue(`DELETE FROM openid_client_secrets WHERE tenant_id = $1 AND client_id = $2`, client.Tenant, client.ID)
	return pg.MustChange(ctx, tx, `DELETE FROM openid_clients WHERE tenant_id = $1 AND id = $2`, client.Tenant, client.ID)
}

// DeleteApplicationOpenID deletes the provider and the clients of an application.
func (tx *Tx) DeleteApplicationOpenID(ctx context.Context, application id.Ref) error {
	tx.store.openIDProviders.InvalidateAfter(tx, application)
	tx.Queue(`DELETE FROM openid_providers WHERE tenant_id = $1 AND application_id = $2`, application.Tenant,
		application.ID)
	tx.Queue(`DELETE FROM openid_registration_tokens WHERE tenant_id = $1 AND application_id = $2`, application.Tenant,
		application.ID)
	tx.Queue(`DELETE FROM openid_client_secrets WHERE tenant_id = $1 AND client_id IN
		(SELECT id FROM openid_clients WHERE tenant_id = $1 AND application_id = $2)`, application.Tenant, application.ID)
	deleted, err := pg.Values[id.ID](ctx, tx, `DELETE FROM openid_clients WHERE tenant_id = $1 AND application_id = $2
		RETURNING id`, application.Tenant, application.ID)
	if err == nil {
		err = customdatastore.Remove(ctx, tx, application.Tenant, deleted...)
	}
	for _, client := range deleted {
		tx.store.openIDClients.InvalidateAfter(tx, id.Ref{Tenant: application.Tenant, ID: client})
	}
	return err
}

// ClientSecret is a secret of a client, as its digest.
type ClientSecret struct {
	TenantID   id.ID
	ClientID   id.ID
	ID         id.ID
	Digest     []byte
	CreatedAt  time.Time
	LastUsedAt *time.Time
	// UnusedUntil is that of a client that has registered itself.
	UnusedUntil *time.Time
}

// ClientSecrets returns the secrets of a client, at most two.
func (s *Store) ClientSecrets(ctx context.Context, client id.Ref) ([]ClientSecret, error) {
	return pg.All[ClientSecret](ctx, s.db, clientSecretQuery, client.Tenant, client.ID)
}

// CachedClientSecrets is ClientSecrets as of at most 50 ms ago.
func (s *Store) CachedClientSecrets(ctx context.Context, client id.Ref) ([]ClientSecret, error) {
	return s.clientSecrets.All(ctx, client)
}

// LockClientSecrets returns the secrets of a client that the transaction has locked.
func (tx *Tx) LockClientSecrets(ctx context.Context, client id.Ref) ([]ClientSecret, error) {
	return pg.All[ClientSecret](ctx, tx, clientSecretQuery, client.Tenant, client.ID)
}

// InsertClientSecret adds a secret to a locked client.
func (tx *Tx) InsertClientSecret(s ClientSecret) {
	tx.Queue(pg.Insert("openid_client_secrets", clientSecretColumns), pg.Named(s))
}

// DeleteClientSecret deletes a secret of a locked client, or returns apierr.NotFound.
func (tx *Tx) DeleteClientSecret(ctx context.Context, client id.Ref, secret id.ID) error {
	return pg.MustChange(ctx, tx, `DELETE FROM openid_client_secrets WHERE tenant_id = $1 AND client_id = $2
		AND id = $3`, client.Tenant, client.ID, secret)
}

// UseClientSecret records when a secret was used.
func (tx *Tx) UseClientSecret(s ClientSecret, now time.Time) {
	tx.store.clientSecrets.InvalidateAfter(tx, id.Ref{Tenant: s.TenantID, ID: s.ClientID})
	tx.Queue(`UPDATE openid_client_secrets SET last_used_at = $4 WHERE tenant_id = $1 AND client_id = $2 AND id = $3`,
		s.TenantID, s.ClientID, s.ID, now)
}

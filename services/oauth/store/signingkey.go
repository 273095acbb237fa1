package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/list/listsql"
	"github.com/doorward/doorward/pkg/pg"
)

// The states of a signing key.
const (
	KeyNext    = "NEXT"    // published, signs nothing yet
	KeyActive  = "ACTIVE"  // signs
	KeyRetired = "RETIRED" // signs nothing any more, published until its last token has expired
)

// SigningKey is a key pair that signs the tokens of a tenant's OpenID providers. Its id is its kid.
type SigningKey struct {
	TenantID      id.ID
	ID            string
	Algorithm     string
	Status        string
	JWK           json.RawMessage // the public key
	PrivateSealed []byte
	GoodUntil     time.Time  // when the last token that it has signed expires, at the latest
	RotateAt      *time.Time // when an ACTIVE key is due for its successor; nil: never
	ActiveAt      *time.Time
	RetiredAt     *time.Time
	CreatedAt     time.Time
	ModifiedAt    time.Time
}

const (
	signingKeyColumns = `k.tenant_id, k.id, k.algorithm, k.status, k.jwk, k.private_sealed, k.good_until, k.rotate_at,
		k.active_at, k.retired_at, k.created_at, k.modified_at`
	signingKeysQuery = `SELECT ` + signingKeyColumns + ` FROM signing_keys k WHERE k.tenant_id = $1 AND k.tenant_id = $2
		ORDER BY k.id`
)

// SigningKeys has the attributes by which signing keys are searched and sorted.
var SigningKeys = list.Spec{
	"algorithm": {Column: "k.algorithm"},
	"status":    {Column: "k.status", Kind: list.Enum, Values: []string{KeyNext, KeyActive, KeyRetired}},
	"createdAt": {Column: "k.created_at", Kind: list.Time},
}

// CachedSigningKeys returns the signing keys of a tenant as of at most 50 ms ago.
func (s *Store) CachedSigningKeys(ctx context.Context, tenant id.ID) ([]SigningKey, error) {
	return s.signingKeys.All(ctx, id.Ref{Tenant: tenant, ID: tenant})
}

// SigningKeys returns the signing keys of a tenant, in the order of their creation.
func (s *Store) SigningKeys(ctx context.Context, tenant id.ID) ([]SigningKey, error) {
	return pg.All[SigningKey](ctx, s.db, signingKeysQuery, tenant, tenant)
}

// ListSigningKeys returns a page of the signing keys of a tenant.
func (s *Store) ListSigningKeys(ctx context.Context, tenant id.ID, query list.Query) (list.Page[SigningKey], error) {
	return listsql.Select[SigningKey](ctx, s.db, SigningKeys, query, signingKeyColumns,
		`FROM signing_keys k WHERE k.tenant_id = $1`, "k.id", tenant)
}

// DueSigningKeys returns keys of all tenants that are due for their successor.
func (s *Store) DueSigningKeys(ctx context.Context, now time.Time, limit int) ([]SigningKey, error) {
	return pg.All[SigningKey](ctx, s.db, `SELECT `+signingKeyColumns+` FROM signing_keys k WHERE k.rotate_at <= $1
		ORDER BY k.rotate_at LIMIT $2`, now, limit)
}

func (tx *Tx) invalidateSigningKeys(tenant id.ID) {
	tx.store.signingKeys.InvalidateAfter(tx, id.Ref{Tenant: tenant, ID: tenant})
}

// LockSigningKeys reads and locks the signing keys of a tenant, in the order of their creation.
func (tx *Tx) LockSigningKeys(ctx context.Context, tenant id.ID) ([]SigningKey, error) {
	return pg.All[SigningKey](ctx, tx, signingKeysQuery+` FOR UPDATE`, tenant, tenant)
}

// InsertSigningKey adds a key. It is apierr.Exists where the tenant has a key of the algorithm in that state,
// unless the key is RETIRED.
func (tx *Tx) InsertSigningKey(ctx context.Context, k SigningKey) error {
	tx.invalidateSigningKeys(k.TenantID)
	_, err := pg.Exec(ctx, tx, pg.Insert("signing_keys", signingKeyColumns), pg.Named(k))
	return err
}

// UpdateSigningKey writes the state of a key.
func (tx *Tx) UpdateSigningKey(ctx context.Context, k SigningKey) error {
	tx.invalidateSigningKeys(k.TenantID)
	return pg.MustChange(ctx, tx, `UPDATE signing_keys SET `+pg.Set(`status, good_until, rotate_at, active_at, retired_at,
		modified_at`)+` WHERE tenant_id = @tenant_id AND id = @id`, pg.Named(k))
}

// ExtendSigningKey records that an ACTIVE key signs a token that expires at until. It is apierr.NotFound for a
// key that is not ACTIVE any more.
func (tx *Tx) ExtendSigningKey(ctx context.Context, tenant id.ID, key string, until time.Time) error {
	tx.invalidateSigningKeys(tenant)
	return pg.MustChange(ctx, tx, `UPDATE signing_keys SET good_until = greatest(good_until, $3)
		WHERE tenant_id = $1 AND id = $2 AND status = 'ACTIVE'`, tenant, key, until)
}

// OpenIDSettings are the settings of all OpenID providers of a tenant.
type OpenIDSettings struct {
	TenantID           id.ID
	SigningKeyRotation *string // ISO 8601 duration; nil: keys are rotated by hand
	CreatedAt          time.Time
	ModifiedAt         time.Time
}

const openIDSettingsColumns = `tenant_id, signing_key_rotation, created_at, modified_at`

// OpenIDSettings returns the settings of a tenant, or apierr.NotFound where they were never changed.
func (s *Store) OpenIDSettings(ctx context.Context, tenant id.ID) (OpenIDSettings, error) {
	return pg.One[OpenIDSettings](ctx, s.db, `SELECT `+openIDSettingsColumns+` FROM openid_settings
		WHERE tenant_id = $1`, tenant)
}

// PutOpenIDSettings writes the settings of a tenant.
func (tx *Tx) PutOpenIDSettings(ctx context.Context, v OpenIDSettings) error {
	_, err := pg.Exec(ctx, tx, pg.Insert("openid_settings", openIDSettingsColumns)+` ON CONFLICT (tenant_id)
		DO UPDATE SET signing_key_rotation = excluded.signing_key_rotation, modified_at = excluded.modified_at`, pg.Named(v))
	return err
}

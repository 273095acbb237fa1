package store

import (
	"context"
	"crypto/sha256"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/list/listsql"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
)

const apiKeyColumns = `k.tenant_id, k.id, k.account_id, k.status, k.name, k.description, k.secret_sealed, k.created_at,
	k.modified_at`

// APIKeys has the attributes by which the API keys of an account are searched and sorted.
var APIKeys = list.Spec{
	"id":     {Column: "k.id"},
	"name":   {Column: "k.name", NoFind: true},
	"status": {Column: "k.status", NoFind: true},
}

// APIKeyByID has the attribute by which the API keys of an application are searched.
var APIKeyByID = list.Spec{"id": {Column: "k.id"}}

// APIKey is an API key with its sealed (encrypted) secret.
type APIKey struct {
	oauthapi.Key
	SecretSealed []byte

	// Secret is the decrypted SecretSealed. It is empty as long as the key was only read.
	Secret secure.Secret `db:"-"`
}

// APIKeyResource returns the id under which the changes of an API key are reported.
func APIKeyResource(keyID string) id.ID {
	digest := sha256.Sum256([]byte(keyID))
	return id.ID(digest[:len(id.ID{})])
}

func apiKeyRef(keyID string) id.Ref { return id.Ref{ID: APIKeyResource(keyID)} }

// FindAPIKey returns an API key of any tenant as it was at most 50 ms ago, mostly from the cache, or
// apierr.NotFound. The tenant of a request is that of its API key, so this look-up cannot name a tenant.
func (s *Store) FindAPIKey(ctx context.Context, keyID string) (APIKey, error) {
	return s.apiKeys.OneBy(ctx, apiKeyRef(keyID), func(ctx context.Context) ([]APIKey, error) {
		return pg.All[APIKey](ctx, s.db, `SELECT `+apiKeyColumns+` FROM api_key_routes r
			JOIN api_keys k ON k.tenant_id = r.tenant_id AND k.id = r.id WHERE r.id = $1`, keyID)
	})
}

// APIKeyChanges returns the API keys that have changed since a position.
func (s *Store) APIKeyChanges(after cache.Position) cache.Page { return s.apiKeyFeed.After(after) }

// APIKey returns an API key, or apierr.NotFound.
func (s *Store) APIKey(ctx context.Context, tenant id.ID, keyID string) (APIKey, error) {
	return pg.One[APIKey](ctx, s.db, `SELECT `+apiKeyColumns+` FROM api_keys k WHERE k.tenant_id = $1 AND k.id = $2`,
		tenant, keyID)
}

// ListAPIKeys returns a page of an account's API keys.
func (s *Store) ListAPIKeys(ctx context.Context, tenant, account id.ID, query list.Query) (list.Page[APIKey], error) {
	return listsql.Select[APIKey](ctx, s.db, APIKeys, query, apiKeyColumns,
		`FROM api_keys k WHERE k.tenant_id = $1 AND k.account_id = $2`, "k.created_at, k.id", tenant, account)
}

// LockAPIKey reads and locks an API key that the transaction will change.
func (tx *Tx) LockAPIKey(ctx context.Context, tenant id.ID, keyID string) (APIKey, error) {
	return pg.One[APIKey](ctx, tx, `SELECT `+apiKeyColumns+` FROM api_keys k WHERE k.tenant_id = $1 AND k.id = $2
		FOR UPDATE`, tenant, keyID)
}

// InsertAPIKey adds an API key, and the route from its id to its tenant (api_key_routes). An
// id that any tenant has is apierr.Exists.
func (tx *Tx) InsertAPIKey(ctx context.Context, k APIKey) error {
	tx.store.apiKeys.InvalidateAfter(tx, apiKeyRef(k.ID))
	tx.Queue(`INSERT INTO api_key_routes (id, tenant_id) VALUES ($1, $2)`, k.ID, k.TenantID)
	_, err := pg.Exec(ctx, tx, pg.Insert("api_keys", apiKeyColumns), pg.Named(k))
	return err
}

// UpdateAPIKey writes the members that a client can change.
func (tx *Tx) UpdateAPIKey(ctx context.Context, before, k APIKey) error {
	if before.Status != k.Status {
		tx.store.apiKeys.InvalidateAfter(tx, apiKeyRef(k.ID))
	}
	return pg.MustChange(ctx, tx, `UPDATE api_keys SET status = $3, name = $4, description = $5, modified_at = $6 WHERE tenant_id = $1
		AND id = $2`,
		k.TenantID, k.ID, k.Status, k.Name, k.Description, k.ModifiedAt)
}

// DeleteAPIKey deletes an API key, or returns apierr.NotFound.
func (tx *Tx) DeleteAPIKey(ctx context.Context, tenant id.ID, keyID string) error {
	if err := pg.MustChange(ctx, tx, `DELETE FROM api_keys WHERE tenant_id = $1 AND id = $2`, tenant, keyID); err != nil {
		return err
	}
	tx.deleteAPIKeyRoutes(tenant, []string{keyID})
	return nil
}

// DeleteAccountAPIKeys deletes the API keys of accounts.
func (tx *Tx) DeleteAccountAPIKeys(ctx context.Context, tenant id.ID, accounts []id.ID) error {
	keys, err := pg.Values[string](ctx, tx, `DELETE FROM api_keys WHERE tenant_id = $1 AND account_id = ANY ($2)
		RETURNING id`, tenant, accounts)
	if err == nil && len(keys) > 0 {
		tx.deleteAPIKeyRoutes(tenant, keys)
	}
	return err
}

// deleteAPIKeyRoutes deletes the routes of deleted API keys.
func (tx *Tx) deleteAPIKeyRoutes(tenant id.ID, keys []string) {
	for _, key := range keys {
		tx.store.apiKeys.InvalidateAfter(tx, apiKeyRef(key))
	}
	tx.Queue(`DELETE FROM api_key_routes WHERE tenant_id = $1 AND id = ANY ($2)`, tenant, keys)
}

// OldestEnabledAPIKeys returns at most limit enabled API keys of a tenant, the oldest first.
func (s *Store) OldestEnabledAPIKeys(ctx context.Context, tenant id.ID, limit int) ([]APIKey, error) {
	return pg.All[APIKey](ctx, s.db, `SELECT `+apiKeyColumns+` FROM api_keys k
		WHERE k.tenant_id = $1 AND k.status = 'ENABLED'
		ORDER BY k.created_at, k.id LIMIT $2`, tenant, limit)
}

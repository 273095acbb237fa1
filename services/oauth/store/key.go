package store

import (
	"context"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/list/listsql"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
)

const keyColumns = `k.tenant_id, k.id, k.account_id, k.status, k.name, k.description, k.secret_sealed, k.created_at, k.modified_at`

// Keys of an account are searched and sorted by these attributes.
var Keys = list.Spec{
	"id":     {Column: "k.id"},
	"name":   {Column: "k.name", NoFind: true},
	"status": {Column: "k.status", NoFind: true},
}

// KeyByID is the search of the keys of an application.
var KeyByID = list.Spec{"id": {Column: "k.id"}}

// Key is an API key with its sealed secret.
type Key struct {
	oauthapi.Key
	SecretSealed []byte

	// Secret is what SecretSealed holds, where it is needed.
	Secret secure.Secret `db:"-"`
}

// FindKey returns a key of any tenant, or apierr.NotFound: it is how a request
// finds the tenant that it belongs to.
func (s *Store) FindKey(ctx context.Context, key string) (Key, error) {
	if !s.db.IsSharded() {
		return pg.One[Key](ctx, s.db, `SELECT `+keyColumns+` FROM api_key_routes r
			JOIN api_keys k ON k.tenant_id = r.tenant_id AND k.id = r.id WHERE r.id = $1`, key)
	}
	tenant, err := pg.Value[id.ID](s.db.OnMain(ctx), s.db, `SELECT tenant_id FROM api_key_routes WHERE id = $1`, key)
	if err != nil {
		return Key{}, err
	}
	return s.Key(caller.WithTenant(ctx, tenant), tenant, key)
}

// Key returns a key, or apierr.NotFound.
func (s *Store) Key(ctx context.Context, tenant id.ID, key string) (Key, error) {
	return pg.One[Key](ctx, s.db, `SELECT `+keyColumns+` FROM api_keys k WHERE k.tenant_id = $1 AND k.id = $2`, tenant, key)
}

// ListKeys returns a page of an account's keys.
func (s *Store) ListKeys(ctx context.Context, tenant, account id.ID, query list.Query) (list.Page[Key], error) {
	return listsql.Select[Key](ctx, s.db, Keys, query, keyColumns,
		`FROM api_keys k WHERE k.tenant_id = $1 AND k.account_id = $2`, "k.created_at, k.id", tenant, account)
}

// LockKey reads a key that the transaction will change.
func (tx *Tx) LockKey(ctx context.Context, tenant id.ID, key string) (Key, error) {
	return pg.One[Key](ctx, tx, `SELECT `+keyColumns+` FROM api_keys k WHERE k.tenant_id = $1 AND k.id = $2 FOR UPDATE`, tenant, key)
}

// InsertKey adds a key. An id that any tenant has is apierr.Exists.
func (tx *Tx) InsertKey(ctx context.Context, k Key) error {
	n, err := tx.Claim(ctx, `INSERT INTO api_key_routes AS r (id, tenant_id) VALUES ($1, $2)
		ON CONFLICT (id) DO UPDATE SET tenant_id = excluded.tenant_id WHERE r.tenant_id = excluded.tenant_id`, k.ID, k.TenantID)
	if err == nil && n == 0 {
		err = apierr.Exists
	}
	if err != nil {
		return err
	}
	_, err = pg.Exec(ctx, tx, `INSERT INTO api_keys (tenant_id, id, account_id, status, name, description, secret_sealed, created_at,
		modified_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		k.TenantID, k.ID, k.AccountID, k.Status, k.Name, k.Description, k.SecretSealed, k.CreatedAt, k.ModifiedAt)
	return err
}

// UpdateKey writes what a client can change.
func (tx *Tx) UpdateKey(ctx context.Context, k Key) error {
	return pg.MustChange(ctx, tx, `UPDATE api_keys SET status = $3, name = $4, description = $5, modified_at = $6 WHERE tenant_id = $1
		AND id = $2`,
		k.TenantID, k.ID, k.Status, k.Name, k.Description, k.ModifiedAt)
}

// DeleteKey removes a key, or returns apierr.NotFound.
func (tx *Tx) DeleteKey(ctx context.Context, tenant id.ID, key string) error {
	err := pg.MustChange(ctx, tx, `DELETE FROM api_keys WHERE tenant_id = $1 AND id = $2`, tenant, key)
	if err == nil {
		tx.releaseKeys(tenant, []string{key})
	}
	return err
}

// DeleteAccountKeys removes the keys of accounts.
func (tx *Tx) DeleteAccountKeys(ctx context.Context, tenant id.ID, accounts []id.ID) error {
	keys, err := pg.Values[string](ctx, tx, `DELETE FROM api_keys WHERE tenant_id = $1 AND account_id = ANY ($2) RETURNING id`,
		tenant, accounts)
	if err == nil && len(keys) > 0 {
		tx.releaseKeys(tenant, keys)
	}
	return err
}

func (tx *Tx) releaseKeys(tenant id.ID, keys []string) {
	tx.Release(`DELETE FROM api_key_routes WHERE tenant_id = $1 AND id = ANY ($2)`, tenant, keys)
}

// OldestEnabledKeys returns enabled keys of a tenant, the oldest first.
func (s *Store) OldestEnabledKeys(ctx context.Context, tenant id.ID, limit int) ([]Key, error) {
	return pg.All[Key](ctx, s.db, `SELECT `+keyColumns+` FROM api_keys k WHERE k.tenant_id = $1 AND k.status = 'ENABLED'
		ORDER BY k.created_at, k.id LIMIT $2`, tenant, limit)
}

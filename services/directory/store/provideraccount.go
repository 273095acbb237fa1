package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/customdata/customdatastore"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// ProviderUser is an account that a user of a provider may have.
type ProviderUser struct {
	directoryapi.Account
	DirectoryStatus string
	TokensSealed    []byte
	SameFacts       bool // its provider data has the facts that LockProviderUser compares
}

const selectProviderUser = `SELECT ` + accountColumns + `, d.status AS directory_status, p.tokens_sealed,
	coalesce(p.facts = $4, false) AS same_facts FROM ` + liveAccounts + `
	LEFT JOIN provider_data p ON p.tenant_id = a.tenant_id AND p.account_id = a.id WHERE a.tenant_id = $1 AND a.directory_id = $2 AND `

// LockProviderUser reads the account that a provider knows by an id and that the
// transaction will change, or returns apierr.NotFound. It compares the facts of its
// provider data.
func (tx *Tx) LockProviderUser(ctx context.Context, tenant, directory id.ID, externalID string,
	facts map[string]json.RawMessage,
) (ProviderUser, error) {
	return pg.One[ProviderUser](ctx, tx, selectProviderUser+`p.directory_id = $2 AND p.external_id = $3 FOR UPDATE OF a`, tenant, directory,
		externalID, facts)
}

// ReadProviderUser reads, with the next query or with the commit, the account that a
// provider knows by an id. It compares the facts of its provider data.
func (tx *Tx) ReadProviderUser(_ context.Context, tenant, directory id.ID, externalID string, facts map[string]json.RawMessage,
) (found *[]ProviderUser) {
	found = new([]ProviderUser)
	pg.QueueReturning(tx, found, selectProviderUser+`p.directory_id = $2 AND p.external_id = $3`, tenant, directory, externalID, facts)
	return found
}

// LockAccountByLoginName reads the account of a directory that has a user name or
// email and that the transaction may change, or returns apierr.NotFound.
func (tx *Tx) LockAccountByLoginName(ctx context.Context, tenant, directory id.ID, name string) (ProviderUser, error) {
	return pg.One[ProviderUser](ctx, tx, selectProviderUser+`a.id = (SELECT n.account_id FROM login_names n
		WHERE n.tenant_id = $1 AND n.directory_id = $2 AND n.name = $3) FOR UPDATE OF a`, tenant, directory, field.Fold(name), nil)
}

// SetProviderData writes what a provider states of an account, and the id by which
// it knows the user. An id that another account has is apierr.Exists.
func (tx *Tx) SetProviderData(_ context.Context, a directoryapi.Account, externalID string, facts map[string]json.RawMessage,
	tokensSealed []byte, now time.Time) error {
	tx.Queue(`INSERT INTO provider_data AS p (tenant_id, account_id, directory_id, external_id, facts, tokens_sealed, created_at, modified_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $7)
		ON CONFLICT (tenant_id, account_id) DO UPDATE SET external_id = excluded.external_id, facts = excluded.facts,
			tokens_sealed = coalesce(excluded.tokens_sealed, p.tokens_sealed), modified_at = excluded.modified_at`,
		a.TenantID, a.ID, a.DirectoryID, externalID, facts, tokensSealed, now)
	return nil
}

// AccountDocument returns the customData of an account that the transaction has
// locked.
func (tx *Tx) AccountDocument(ctx context.Context, tenant, account id.ID, now time.Time) (customdata.Document, error) {
	return customdatastore.Merge(ctx, tx, tenant, account, "", now)
}

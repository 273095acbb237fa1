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

// AccountOfUser is an account that a user of a provider may log in as.
type AccountOfUser struct {
	directoryapi.Account
	DirectoryStatus  string
	ExternalID       string // of its user at the provider; "": none yet
	TokensSealed     []byte
	SameProviderData bool // whether its provider data equal those of the look-up
}

// selectAccountOfUser compares the provider data (column claims) with $4.
const selectAccountOfUser = `SELECT ` + accountColumns + `, d.status AS directory_status,
	coalesce(p.external_id, '') AS external_id, p.tokens_sealed,
	coalesce(p.claims = $4, false) AS same_provider_data FROM ` + accountsWithDirectory + `
	LEFT JOIN provider_data p ON p.tenant_id = a.tenant_id AND p.account_id = a.id
	WHERE a.tenant_id = $1 AND a.directory_id = $2 AND `

// LockAccountByExternalID reads the account with a provider's id of its user and locks it for a
// change, or returns apierr.NotFound. It compares the provider data of the account with
// providerData.
func (tx *Tx) LockAccountByExternalID(ctx context.Context, tenant, directory id.ID, externalID string,
	providerData map[string]json.RawMessage,
) (AccountOfUser, error) {
	return pg.One[AccountOfUser](ctx, tx,
		selectAccountOfUser+`p.directory_id = $2 AND p.external_id = $3 FOR UPDATE OF a`,
		tenant, directory, externalID, providerData)
}

// QueueAccountByExternalID queues the look-up of the account with a provider's id of its user:
// found has it after the next query or the commit. It compares the provider data of the account
// with providerData.
func (tx *Tx) QueueAccountByExternalID(
	_ context.Context, tenant, directory id.ID, externalID string, providerData map[string]json.RawMessage,
) (found *[]AccountOfUser) {
	found = new([]AccountOfUser)
	pg.QueueReturning(tx, found, selectAccountOfUser+`p.directory_id = $2 AND p.external_id = $3`, tenant, directory,
		externalID, providerData)
	return found
}

// LockAccountByLoginName reads the account of a directory with a user name or email and locks it
// for a change, or returns apierr.NotFound.
func (tx *Tx) LockAccountByLoginName(ctx context.Context, tenant, directory id.ID, name string) (AccountOfUser, error) {
	return pg.One[AccountOfUser](ctx, tx, selectAccountOfUser+`a.id = (SELECT n.account_id FROM login_names n
		WHERE n.tenant_id = $1 AND n.directory_id = $2 AND n.name = $3) FOR UPDATE OF a`, tenant, directory,
		field.LoginName(name), nil)
}

// UpsertProviderData stores the provider data of an account, and the provider's id of its user. An
// id that another account has is apierr.Exists.
func (tx *Tx) UpsertProviderData(_ context.Context, a directoryapi.Account, externalID string,
	providerData map[string]json.RawMessage, tokensSealed []byte, now time.Time) error {
	tx.Queue(`INSERT INTO provider_data AS p (tenant_id, account_id, directory_id, external_id, claims, tokens_sealed,
		created_at, modified_at)
		VALUES (@tenant_id, @id, @directory_id, @external_id, @claims, @tokens_sealed, @now, @now)
		ON CONFLICT (tenant_id, account_id) DO UPDATE SET external_id = excluded.external_id, claims = excluded.claims,
			tokens_sealed = coalesce(excluded.tokens_sealed, p.tokens_sealed), modified_at = excluded.modified_at`,
		pg.Named(a, pg.Args{"external_id": externalID, "claims": providerData, "tokens_sealed": tokensSealed,
			"now": now}))
	return nil
}

// LockAccountCustomData locks and returns the customData of an account that the transaction has
// locked.
func (tx *Tx) LockAccountCustomData(ctx context.Context, tenant, account id.ID) (customdata.Document, error) {
	return customdatastore.Lock(ctx, tx, tenant, account)
}

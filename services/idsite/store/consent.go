package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/list/listsql"
	"github.com/doorward/doorward/pkg/pg"
)

// Consent has the scopes that an account has allowed a client.
type Consent struct {
	TenantID      id.ID
	ID            id.ID
	AccountID     id.ID
	ClientID      id.ID
	ApplicationID id.ID
	Scopes        []string
	CreatedAt     time.Time
	ModifiedAt    time.Time
}

const consentColumns = `c.tenant_id, c.id, c.account_id, c.client_id, c.application_id, c.scopes, c.created_at,
	c.modified_at`

// Consents has the attributes by which consents are sorted.
var Consents = list.Spec{
	"createdAt":  {Column: "c.created_at", Kind: list.Time},
	"modifiedAt": {Column: "c.modified_at", Kind: list.Time},
}

// Consent returns a consent, or apierr.NotFound.
func (s *Store) Consent(ctx context.Context, consent id.Ref) (Consent, error) {
	return pg.One[Consent](ctx, s.db, `SELECT `+consentColumns+` FROM consents c WHERE c.tenant_id = $1 AND c.id = $2`,
		consent.Tenant, consent.ID)
}

// ConsentOf returns what an account has allowed a client, or apierr.NotFound.
func (s *Store) ConsentOf(ctx context.Context, account id.Ref, client id.ID) (Consent, error) {
	return pg.One[Consent](ctx, s.db, `SELECT `+consentColumns+` FROM consents c
		WHERE c.tenant_id = $1 AND c.account_id = $2 AND c.client_id = $3`, account.Tenant, account.ID, client)
}

// ListConsents returns a page of the consents of an account.
func (s *Store) ListConsents(ctx context.Context, account id.Ref, query list.Query) (list.Page[Consent], error) {
	return listsql.Select[Consent](ctx, s.db, Consents, query, consentColumns,
		`FROM consents c WHERE c.tenant_id = $1 AND c.account_id = $2`, "c.id", account.Tenant, account.ID)
}

// PutConsent adds scopes to what an account has allowed a client.
func (tx *Tx) PutConsent(c Consent) {
	tx.Queue(pg.Insert("consents", consentColumns)+` ON CONFLICT (tenant_id, account_id, client_id) DO UPDATE
		SET modified_at = excluded.modified_at, scopes = ARRAY (
			SELECT DISTINCT scope FROM unnest(consents.scopes || excluded.scopes) AS scope ORDER BY scope)`, pg.Named(c))
}

// DeleteConsent deletes a consent, or returns apierr.NotFound.
func (tx *Tx) DeleteConsent(consent id.Ref) {
	tx.QueueChange(`DELETE FROM consents WHERE tenant_id = $1 AND id = $2`, consent.Tenant, consent.ID)
}

// DeleteConsentsOfAccounts deletes the consents of accounts, with the commit.
func (tx *Tx) DeleteConsentsOfAccounts(tenant id.ID, accounts []id.ID) {
	tx.Queue(`DELETE FROM consents WHERE tenant_id = $1 AND account_id = ANY ($2)`, tenant, accounts)
}

// DeleteConsentsOfApplication deletes the consents that clients of an application have, with the commit.
func (tx *Tx) DeleteConsentsOfApplication(application id.Ref) {
	tx.Queue(`DELETE FROM consents WHERE tenant_id = $1 AND application_id = $2`, application.Tenant, application.ID)
}

package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// ProviderLogin is a login in progress at the provider of a directory (social login).
type ProviderLogin struct {
	TenantID      id.ID
	ID            id.ID // jti of the state
	ApplicationID id.ID
	DirectoryID   id.ID
	Provider      string  // providerId, case folded
	RedirectURI   string  // the callback
	ReturnTo      string  // redirect_uri of the client; "": a hosted login
	State         *string // state of the client
	AccountStore  string
	NameKey       string
	FlowID        id.ID // of the hosted login
	Browser       []byte
	SecretsSealed []byte
	ExpiresAt     time.Time
}

const providerLoginColumns = `tenant_id, id, application_id, directory_id, provider, redirect_uri, return_to, state, account_store,
	name_key, flow_id, browser, secrets_sealed, expires_at`

// InsertProviderLogin adds a login with the commit.
func (tx *Tx) InsertProviderLogin(_ context.Context, l ProviderLogin) error {
	tx.Queue(`INSERT INTO provider_logins (`+providerLoginColumns+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
		l.TenantID, l.ID, l.ApplicationID, l.DirectoryID, l.Provider, l.RedirectURI, l.ReturnTo, l.State, l.AccountStore, l.NameKey,
		l.FlowID, l.Browser, l.SecretsSealed, l.ExpiresAt)
	return nil
}

// ConsumeProviderLogin returns and deletes a login. It returns apierr.NotFound for a login that was
// consumed, that has expired, or that another browser has begun.
func (tx *Tx) ConsumeProviderLogin(ctx context.Context, tenant, login id.ID, browsers [][]byte, now time.Time) (ProviderLogin, error) {
	return pg.One[ProviderLogin](ctx, tx, `DELETE FROM provider_logins
		WHERE tenant_id = $1 AND id = $2 AND browser = ANY($3) AND expires_at > $4
		RETURNING `+providerLoginColumns, tenant, login, browsers, now)
}

// DeleteExpiredProviderLogins deletes at most limit logins that have expired.
func (tx *Tx) DeleteExpiredProviderLogins(ctx context.Context, now time.Time, limit int) (int64, error) {
	return pg.Exec(ctx, tx, `DELETE FROM provider_logins WHERE (tenant_id, id) IN (
		SELECT tenant_id, id FROM provider_logins WHERE expires_at < $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED)`, now, limit)
}

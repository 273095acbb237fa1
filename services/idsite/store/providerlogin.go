package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/purge/purgesql"
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
	Address       string // of the client that began the login
	ExpiresAt     time.Time
}

const providerLoginColumns = `tenant_id, id, application_id, directory_id, provider, redirect_uri, return_to, state,
	account_store, name_key, flow_id, browser, secrets_sealed, address, expires_at`

// InsertProviderLogin adds a login with the commit.
func (tx *Tx) InsertProviderLogin(_ context.Context, l ProviderLogin) error {
	tx.Queue(pg.Insert("provider_logins", providerLoginColumns), pg.Named(l))
	return nil
}

// ConsumeProviderLogin returns and deletes a login. It returns apierr.NotFound for a login that was
// consumed, that has expired, or that another browser has begun.
func (tx *Tx) ConsumeProviderLogin(ctx context.Context, tenant, login id.ID, browsers [][]byte,
	now time.Time) (ProviderLogin, error) {
	return pg.One[ProviderLogin](ctx, tx, `DELETE FROM provider_logins
		WHERE tenant_id = $1 AND id = $2 AND browser = ANY($3) AND expires_at > $4
		RETURNING `+providerLoginColumns, tenant, login, browsers, now)
}

// ExpiringProviderLogins are the logins at providers, for the purge.
var ExpiringProviderLogins = purgesql.Rows{Table: "provider_logins", Time: "expires_at"}

// NthBegunLoginEnd returns when the nth newest login in progress of a client address at an application
// expires, or apierr.NotFound where there are fewer than n. Both kinds count: logins at SAML identity
// providers or for SAML service providers, and those at other providers.
func (s *Store) NthBegunLoginEnd(ctx context.Context, tenant, application id.ID, address string, n int,
	now time.Time) (time.Time, error) {
	return pg.Value[time.Time](ctx, s.db, `SELECT expires_at FROM (
		SELECT expires_at FROM login_flows WHERE tenant_id = $1 AND application_id = $2 AND address = $3 AND address <> ''
			AND finished_at IS NULL AND expires_at > $4
		UNION ALL
		SELECT expires_at FROM provider_logins WHERE tenant_id = $1 AND application_id = $2 AND address = $3
		AND expires_at > $4
	) AS begun ORDER BY expires_at DESC OFFSET $5 LIMIT 1`, tenant, application, address, now, n-1)
}

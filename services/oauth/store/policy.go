package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// Policy says how long the tokens of an application live, in ISO 8601
// durations as the client wrote them.
type Policy struct {
	TenantID        id.ID
	ApplicationID   id.ID
	AccessTokenTTL  string
	RefreshTokenTTL string // zero in any form: no refresh tokens
	CreatedAt       time.Time
	ModifiedAt      time.Time

	// RevokeTokensOnPasswordChange says whether a password that an administrator
	// sets ends the tokens of its account.
	RevokeTokensOnPasswordChange bool
}

const (
	policyColumns = `tenant_id, application_id, access_token_ttl, refresh_token_ttl, created_at, modified_at, revoke_tokens_on_password_change`
	policyQuery   = `SELECT ` + policyColumns + ` FROM oauth_policies WHERE tenant_id = $1 AND application_id = $2`
)

// Policy returns the policy of an application, or apierr.NotFound while it is the
// default.
func (s *Store) Policy(ctx context.Context, tenant, application id.ID) (Policy, error) {
	return pg.One[Policy](ctx, s.db, policyQuery, tenant, application)
}

// CachedPolicy is Policy from the cache: what this process changes shows at once,
// what another changes a moment later.
func (s *Store) CachedPolicy(ctx context.Context, tenant, application id.ID) (Policy, error) {
	return s.policies.One(ctx, id.Ref{Tenant: tenant, ID: application})
}

// ForgetPolicy makes CachedPolicy return what this process has changed.
func (s *Store) ForgetPolicy(tenant, application id.ID) {
	s.policies.Invalidate(id.Ref{Tenant: tenant, ID: application})
}

// LockPolicy reads a policy that the transaction will change. Where there is
// none it begins as p.
func (tx *Tx) LockPolicy(ctx context.Context, p Policy) (Policy, error) {
	if _, err := pg.Exec(ctx, tx, `INSERT INTO oauth_policies (`+policyColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`,
		p.TenantID, p.ApplicationID, p.AccessTokenTTL, p.RefreshTokenTTL, p.CreatedAt, p.ModifiedAt, p.RevokeTokensOnPasswordChange); err != nil {
		return p, err
	}
	return pg.One[Policy](ctx, tx, `SELECT `+policyColumns+` FROM oauth_policies WHERE tenant_id = $1 AND application_id = $2 FOR UPDATE`,
		p.TenantID, p.ApplicationID)
}

// UpdatePolicy writes what a client can change.
func (tx *Tx) UpdatePolicy(ctx context.Context, p Policy) error {
	return pg.MustChange(ctx, tx, `UPDATE oauth_policies SET access_token_ttl = $3, refresh_token_ttl = $4, modified_at = $5,
		revoke_tokens_on_password_change = $6
		WHERE tenant_id = $1 AND application_id = $2`,
		p.TenantID, p.ApplicationID, p.AccessTokenTTL, p.RefreshTokenTTL, p.ModifiedAt, p.RevokeTokensOnPasswordChange)
}

// DeletePolicy removes the policy of an application, if it has one of its own.
func (tx *Tx) DeletePolicy(ctx context.Context, tenant, application id.ID) error {
	_, err := pg.Exec(ctx, tx, `DELETE FROM oauth_policies WHERE tenant_id = $1 AND application_id = $2`, tenant, application)
	return err
}

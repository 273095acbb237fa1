package store

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// Policy is the OAuth policy of an application: the lifetimes of its tokens, in ISO 8601
// durations as the client wrote them.
type Policy struct {
	TenantID        id.ID
	ApplicationID   id.ID
	AccessTokenTTL  string
	RefreshTokenTTL string // zero in any form: no refresh tokens
	CreatedAt       time.Time
	ModifiedAt      time.Time

	// RevokeTokensOnPasswordChange says whether the tokens of an account are revoked when an
	// administrator sets its password.
	RevokeTokensOnPasswordChange bool

	// TokenSigning says what signs the tokens: TokensByAPIKey or TokensBySigningKey.
	TokenSigning string
}

// The values of Policy.TokenSigning.
const (
	TokensByAPIKey     = "API_KEY"
	TokensBySigningKey = "SIGNING_KEY"
)

const (
	policyColumns = `tenant_id, application_id, access_token_ttl, refresh_token_ttl, created_at, modified_at,
		revoke_tokens_on_password_change, token_signing`
	policyQuery = `SELECT ` + policyColumns + ` FROM oauth_policies WHERE tenant_id = $1 AND application_id = $2`
)

// Policy returns the policy of an application, or apierr.NotFound for one that was never
// changed: the default.
func (s *Store) Policy(ctx context.Context, tenant, application id.ID) (Policy, error) {
	return pg.One[Policy](ctx, s.db, policyQuery, tenant, application)
}

// DefaultPolicy is the policy of an application that was never changed (docs/interface/oauth.md#token-contents).
func DefaultPolicy(tenant, application id.ID) Policy {
	return Policy{TenantID: tenant, ApplicationID: application, AccessTokenTTL: "PT1H", RefreshTokenTTL: "P60D",
		RevokeTokensOnPasswordChange: true, TokenSigning: TokensByAPIKey}
}

// CachedPolicy is Policy from the cache, or DefaultPolicy. A change by this process is visible at once, a
// change by another process after at most 50 ms.
func (s *Store) CachedPolicy(ctx context.Context, tenant, application id.ID) (Policy, error) {
	p, err := s.policies.One(ctx, id.Ref{Tenant: tenant, ID: application})
	if errors.Is(err, apierr.NotFound) {
		return DefaultPolicy(tenant, application), nil
	}
	return p, err
}

// invalidatePolicy removes a policy from the caches of all processes when the transaction commits.
func (tx *Tx) invalidatePolicy(tenant, application id.ID) {
	tx.store.policies.InvalidateAfter(tx, id.Ref{Tenant: tenant, ID: application})
}

// LockPolicy reads and locks a policy that the transaction will change. Where none is stored
// it inserts p.
func (tx *Tx) LockPolicy(ctx context.Context, p Policy) (Policy, error) {
	if _, err := pg.Exec(ctx, tx, pg.Insert("oauth_policies", policyColumns)+` ON CONFLICT DO NOTHING`,
		pg.Named(p)); err != nil {
		return p, err
	}
	return pg.One[Policy](ctx, tx, `SELECT `+policyColumns+` FROM oauth_policies
		WHERE tenant_id = $1 AND application_id = $2 FOR UPDATE`, p.TenantID, p.ApplicationID)
}

// UpdatePolicy writes the members that a client can change.
func (tx *Tx) UpdatePolicy(ctx context.Context, p Policy) error {
	tx.invalidatePolicy(p.TenantID, p.ApplicationID)
	return pg.MustChange(ctx, tx, `UPDATE oauth_policies SET `+pg.Set(`access_token_ttl, refresh_token_ttl, modified_at,
		revoke_tokens_on_password_change, token_signing`)+` WHERE tenant_id = @tenant_id AND application_id = @application_id`,
		pg.Named(p))
}

// DeletePolicy deletes the policy of an application, if one is stored.
func (tx *Tx) DeletePolicy(ctx context.Context, tenant, application id.ID) error {
	tx.invalidatePolicy(tenant, application)
	_, err := pg.Exec(ctx, tx, `DELETE FROM oauth_policies WHERE tenant_id = $1 AND application_id = $2`, tenant,
		application)
	return err
}

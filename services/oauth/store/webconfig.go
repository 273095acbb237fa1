package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// WebConfig says which endpoints of an application's Client API are enabled.
type WebConfig struct {
	TenantID      id.ID
	ApplicationID id.ID
	Status        string

	// Whether the endpoints of that name are enabled. Where VerifyEmail, ForgotPassword or
	// ChangePassword is nil, the directory of the application's default account store decides.
	OAuth2         bool
	Register       bool
	Login          bool
	VerifyEmail    *bool
	ForgotPassword *bool
	ChangePassword *bool
	Me             bool

	MeExpand []string // the links that the endpoint /me expands
	MFA
	SigningKeyID string // API key that signs the tokens; empty: the oldest of an administrator
	CreatedAt    time.Time
	ModifiedAt   time.Time
}

// MFA says whether a login needs a second factor, and of which types.
type MFA struct {
	Required    bool     `db:"mfa_required"`
	FactorTypes []string `db:"mfa_factor_types"`
}

const (
	webConfigColumns = `tenant_id, application_id, status, oauth2, register, login, verify_email, forgot_password,
		change_password,
	me, me_expand, mfa_required, mfa_factor_types, signing_key_id, created_at, modified_at`
	webConfigQuery = `SELECT ` + webConfigColumns + ` FROM web_configs WHERE tenant_id = $1 AND application_id = $2`
)

// WebConfig returns the web config of an application, or apierr.NotFound for one that was
// never changed: the default.
func (s *Store) WebConfig(ctx context.Context, tenant, application id.ID) (WebConfig, error) {
	return pg.One[WebConfig](ctx, s.db, webConfigQuery, tenant, application)
}

// CachedWebConfig is WebConfig from the cache. A change by this process is visible at once, a
// change by another process when its notification has arrived (pkg/pg/cache/cache.go).
func (s *Store) CachedWebConfig(ctx context.Context, tenant, application id.ID) (WebConfig, error) {
	return s.webConfigs.One(ctx, id.Ref{Tenant: tenant, ID: application})
}

// invalidateWebConfig removes a web config from the caches of all processes when the transaction
// commits.
func (tx *Tx) invalidateWebConfig(tenant, application id.ID) {
	tx.store.webConfigs.InvalidateAfter(tx, id.Ref{Tenant: tenant, ID: application})
}

// LockWebConfig reads and locks a web config that the transaction will change. Where none is
// stored it inserts c.
func (tx *Tx) LockWebConfig(ctx context.Context, c WebConfig) (WebConfig, error) {
	if _, err := pg.Exec(ctx, tx, pg.Insert("web_configs", webConfigColumns)+` ON CONFLICT DO NOTHING`,
		pg.Named(c)); err != nil {
		return c, err
	}
	return pg.One[WebConfig](ctx, tx, `SELECT `+webConfigColumns+` FROM web_configs
		WHERE tenant_id = $1 AND application_id = $2
		FOR UPDATE`, c.TenantID, c.ApplicationID)
}

// UpdateWebConfig writes the members that a client can change.
func (tx *Tx) UpdateWebConfig(ctx context.Context, c WebConfig) error {
	tx.invalidateWebConfig(c.TenantID, c.ApplicationID)
	return pg.MustChange(ctx, tx, `UPDATE web_configs SET `+pg.Set(`status, oauth2, register, login, verify_email,
		forgot_password, change_password, me, me_expand, mfa_required, mfa_factor_types, signing_key_id, modified_at`)+`
		WHERE tenant_id = @tenant_id AND application_id = @application_id`, pg.Named(c))
}

// DeleteWebConfig deletes the web config of an application, if one is stored.
func (tx *Tx) DeleteWebConfig(ctx context.Context, tenant, application id.ID) error {
	tx.invalidateWebConfig(tenant, application)
	_, err := pg.Exec(ctx, tx, `DELETE FROM web_configs WHERE tenant_id = $1 AND application_id = $2`, tenant, application)
	return err
}

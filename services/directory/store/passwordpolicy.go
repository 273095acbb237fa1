package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// PasswordPolicy is the password policy of a directory: the strength of passwords, and the mails
// of a reset. A mirror directory has no resets, whatever its row says.
type PasswordPolicy struct {
	TenantID                id.ID
	DirectoryID             id.ID
	ResetTokenTTL           int // hours
	ResetEmailStatus        string
	ResetSuccessEmailStatus string
	MinLength               int // characters
	MaxLength               int // characters
	MinLowerCase            int
	MinUpperCase            int
	MinNumeric              int
	MinSymbol               int
	MinDiacritic            int
	PreventReuse            int
	CreatedAt               time.Time
	ModifiedAt              time.Time
}

const passwordPolicy = `SELECT p.tenant_id, p.directory_id, p.reset_token_ttl,
	CASE d.provider_id WHEN 'native' THEN p.reset_email_status ELSE 'DISABLED' END AS reset_email_status,
	CASE d.provider_id WHEN 'native' THEN p.reset_success_email_status ELSE 'DISABLED' END
		AS reset_success_email_status,
	p.min_length, p.max_length, p.min_lower_case, p.min_upper_case, p.min_numeric, p.min_symbol, p.min_diacritic,
		p.prevent_reuse, p.created_at, p.modified_at
	FROM password_policies p JOIN directories d ON d.tenant_id = p.tenant_id AND d.id = p.directory_id
	WHERE p.tenant_id = $1 AND p.directory_id = $2`

// PasswordPolicy returns the policy of a directory, or apierr.NotFound.
func (s *Store) PasswordPolicy(ctx context.Context, tenant, directory id.ID) (PasswordPolicy, error) {
	return pg.One[PasswordPolicy](ctx, s.db, passwordPolicy, tenant, directory)
}

// LockPasswordPolicy reads a policy and locks it for a change.
func (tx *Tx) LockPasswordPolicy(ctx context.Context, tenant, directory id.ID) (PasswordPolicy, error) {
	return pg.One[PasswordPolicy](ctx, tx, passwordPolicy+` FOR UPDATE OF p`, tenant, directory)
}

// UpdatePasswordPolicy updates what a client can change, including the strength.
func (tx *Tx) UpdatePasswordPolicy(ctx context.Context, p PasswordPolicy) error {
	return pg.MustChange(ctx, tx, `UPDATE password_policies SET `+pg.Set(`reset_token_ttl, reset_email_status,
		reset_success_email_status, min_length, max_length, min_lower_case, min_upper_case, min_numeric, min_symbol,
		min_diacritic,
		prevent_reuse, modified_at`)+` WHERE tenant_id = @tenant_id AND directory_id = @directory_id`, pg.Named(p))
}

func insertPasswordPolicy(batch *pg.Batch, d directoryapi.Directory) {
	batch.Queue(`INSERT INTO password_policies (tenant_id, directory_id, created_at, modified_at)
		VALUES ($1, $2, $3, $3)`,
		d.TenantID, d.ID, d.CreatedAt)
}

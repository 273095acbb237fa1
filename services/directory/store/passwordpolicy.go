package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// PasswordPolicy says how strong a password must be, and what a reset does.
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

const passwordPolicyColumns = `tenant_id, directory_id, reset_token_ttl, reset_email_status, reset_success_email_status,
	min_length, max_length, min_lower_case, min_upper_case, min_numeric, min_symbol, min_diacritic, prevent_reuse, created_at, modified_at`

// PasswordPolicy gives the policy of a directory, or apierr.NotFound.
func (s *Store) PasswordPolicy(ctx context.Context, tenant, directory id.ID) (PasswordPolicy, error) {
	return pg.One[PasswordPolicy](ctx, s.db, `SELECT `+passwordPolicyColumns+` FROM password_policies WHERE tenant_id = $1 AND directory_id = $2`, tenant, directory)
}

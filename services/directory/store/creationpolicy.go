package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// CreationPolicy says which mails a registration sends and which email domains
// may register.
type CreationPolicy struct {
	TenantID                       id.ID
	DirectoryID                    id.ID
	VerificationEmailStatus        string
	VerificationSuccessEmailStatus string
	WelcomeEmailStatus             string
	EmailDomainWhitelist           []string
	EmailDomainBlacklist           []string
	CreatedAt                      time.Time
	ModifiedAt                     time.Time
}

const creationPolicyColumns = `tenant_id, directory_id, verification_email_status, verification_success_email_status, welcome_email_status,
	email_domain_whitelist, email_domain_blacklist, created_at, modified_at`

// CreationPolicy gives the policy of a directory, or apierr.NotFound.
func (s *Store) CreationPolicy(ctx context.Context, tenant, directory id.ID) (CreationPolicy, error) {
	return pg.One[CreationPolicy](ctx, s.db, `SELECT `+creationPolicyColumns+` FROM account_creation_policies WHERE tenant_id = $1 AND directory_id = $2`, tenant, directory)
}

// InsertPolicies gives a new directory the default policies.
func (tx *Tx) InsertPolicies(ctx context.Context, tenant, directory id.ID, now time.Time) error {
	for _, table := range []string{"account_creation_policies", "password_policies"} {
		if _, err := pg.Exec(ctx, tx, `INSERT INTO `+table+` (tenant_id, directory_id, created_at, modified_at) VALUES ($1, $2, $3, $3)`, tenant, directory, now); err != nil {
			return err
		}
	}
	return nil
}

// LockCreationPolicy reads a policy that the transaction will change.
func (tx *Tx) LockCreationPolicy(ctx context.Context, tenant, directory id.ID) (CreationPolicy, error) {
	return pg.One[CreationPolicy](ctx, tx, `SELECT `+creationPolicyColumns+` FROM account_creation_policies WHERE tenant_id = $1 AND directory_id = $2 FOR UPDATE`, tenant, directory)
}

// UpdateCreationPolicy writes what a client can change.
func (tx *Tx) UpdateCreationPolicy(ctx context.Context, p CreationPolicy) error {
	return pg.MustChange(ctx, tx, `UPDATE account_creation_policies SET verification_email_status = $3, verification_success_email_status = $4,
		welcome_email_status = $5, email_domain_whitelist = $6, email_domain_blacklist = $7, modified_at = $8 WHERE tenant_id = $1 AND directory_id = $2`,
		p.TenantID, p.DirectoryID, p.VerificationEmailStatus, p.VerificationSuccessEmailStatus, p.WelcomeEmailStatus,
		p.EmailDomainWhitelist, p.EmailDomainBlacklist, p.ModifiedAt)
}

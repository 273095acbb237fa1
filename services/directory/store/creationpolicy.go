package store

import (
	"context"
	"slices"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// CreationPolicy is the account creation policy of a directory: which mails a registration sends,
// and which email domains may register. A mirror directory sends no mails, whatever its row says.
type CreationPolicy struct {
	TenantID                       id.ID
	DirectoryID                    id.ID
	VerificationEmailStatus        string
	VerificationSuccessEmailStatus string
	WelcomeEmailStatus             string
	EmailDomainWhitelist           []string
	EmailDomainBlacklist           []string
	RegistrationCustomData         []string // root keys of customData that a registration may set; nil: all
	CreatedAt                      time.Time
	ModifiedAt                     time.Time
}

// SendsMails reports whether a registration, or a verification, sends any mail.
func (p CreationPolicy) SendsMails() bool {
	return slices.Contains([]string{p.VerificationEmailStatus, p.VerificationSuccessEmailStatus, p.WelcomeEmailStatus},
		directoryapi.Enabled)
}

const creationPolicy = `SELECT p.tenant_id, p.directory_id,
	CASE d.provider_id WHEN 'native' THEN p.verification_email_status ELSE 'DISABLED' END AS verification_email_status,
	CASE d.provider_id WHEN 'native' THEN p.verification_success_email_status ELSE 'DISABLED' END
	AS verification_success_email_status,
	CASE d.provider_id WHEN 'native' THEN p.welcome_email_status ELSE 'DISABLED' END AS welcome_email_status,
	p.email_domain_whitelist, p.email_domain_blacklist, p.registration_custom_data, p.created_at, p.modified_at
	FROM account_creation_policies p JOIN directories d ON d.tenant_id = p.tenant_id AND d.id = p.directory_id
	WHERE p.tenant_id = $1 AND p.directory_id = $2`

// CreationPolicy returns the policy of a directory, or apierr.NotFound.
func (s *Store) CreationPolicy(ctx context.Context, tenant, directory id.ID) (CreationPolicy, error) {
	return pg.One[CreationPolicy](ctx, s.db, creationPolicy, tenant, directory)
}

// LockCreationPolicy reads a policy and locks it for a change.
func (tx *Tx) LockCreationPolicy(ctx context.Context, tenant, directory id.ID) (CreationPolicy, error) {
	return pg.One[CreationPolicy](ctx, tx, creationPolicy+` FOR UPDATE OF p`, tenant, directory)
}

// UpdateCreationPolicy updates what a client can change.
func (tx *Tx) UpdateCreationPolicy(ctx context.Context, p CreationPolicy) error {
	return pg.MustChange(ctx, tx, `UPDATE account_creation_policies SET `+pg.Set(`verification_email_status,
		verification_success_email_status, welcome_email_status, email_domain_whitelist, email_domain_blacklist,
		registration_custom_data, modified_at`)+` WHERE tenant_id = @tenant_id AND directory_id = @directory_id`,
		pg.Named(p))
}

func insertCreationPolicy(batch *pg.Batch, d directoryapi.Directory) {
	batch.Queue(`INSERT INTO account_creation_policies (tenant_id, directory_id, created_at, modified_at)
		VALUES ($1, $2, $3, $3)`, d.TenantID, d.ID, d.CreatedAt)
}

package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/purge/purgesql"
	"github.com/doorward/doorward/pkg/usage"
)

// FailedLogin is a failed login by password at an account, or those of a minute that a limit refused.
type FailedLogin struct {
	TenantID      id.ID
	AccountID     id.ID
	ID            id.ID
	At            time.Time
	DirectoryID   id.ID
	ApplicationID id.ID
	Code          int     // of the error
	LoginLimit    *string // that refused it
	Until         *time.Time
	Times         int
	Address       string // of the user; empty where it is not known
	RequestID     string
	ExpiresAt     time.Time
}

const failedLoginColumns = `tenant_id, account_id, id, at, directory_id, application_id, code, login_limit, until,
	times, address, request_id, expires_at`

// onceAMinute is the time in which the refusals by one limit are one row.
const onceAMinute = time.Minute

// RecordFailedLogin adds a failed login. One that a limit refused is counted in the row of the same limit, application
// and address of the minute before, where there is one.
func (tx *Tx) RecordFailedLogin(ctx context.Context, f FailedLogin) error {
	if f.LoginLimit != nil {
		n, err := pg.Exec(ctx, tx, `UPDATE failed_logins SET times = times + 1, until = @until
			WHERE tenant_id = @tenant_id AND account_id = @account_id AND login_limit = @login_limit
				AND application_id = @application_id AND address = @address AND at > @since`,
			pg.Named(f, pg.Args{"since": f.At.Add(-onceAMinute)}))
		if err != nil || n > 0 {
			return err
		}
	}
	_, err := pg.Exec(ctx, tx, pg.Insert("failed_logins", failedLoginColumns), pg.Named(f))
	return err
}

// FailedLogins returns the failed logins of accounts since a time, the newest first.
func (s *Store) FailedLogins(ctx context.Context, tenant id.ID, accounts []id.ID,
	since time.Time) ([]FailedLogin, error) {
	return pg.All[FailedLogin](ctx, s.db, `SELECT `+failedLoginColumns+` FROM failed_logins
		WHERE tenant_id = $1 AND account_id = ANY($2) AND at >= $3 ORDER BY at DESC, id DESC`, tenant, accounts, since)
}

// ForgetFailedLogins deletes the failed logins of accounts.
func (tx *Tx) ForgetFailedLogins(ctx context.Context, tenant id.ID, accounts ...id.ID) error {
	_, err := pg.Exec(ctx, tx, `DELETE FROM failed_logins WHERE tenant_id = $1 AND account_id = ANY($2)`, tenant,
		accounts)
	return err
}

// ForgetFailedLoginsOfDirectory deletes the failed logins of the accounts of a directory.
func (tx *Tx) ForgetFailedLoginsOfDirectory(ctx context.Context, tenant, directory id.ID) error {
	_, err := pg.Exec(ctx, tx, `DELETE FROM failed_logins WHERE tenant_id = $1 AND directory_id = $2`, tenant,
		directory)
	return err
}

// Expiring are the rows of all tenants that the purge deletes after their time.
var Expiring = []purgesql.Rows{{Table: "login_counters", Time: "expires_at"},
	{Table: "failed_logins", Time: "expires_at"},
	usage.Rows}

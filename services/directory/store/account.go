package store

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/list/listsql"
	"github.com/doorward/doorward/pkg/pg"
)

const accountColumns = `a.tenant_id, a.id, a.directory_id, a.username, a.email, a.given_name, a.middle_name, a.surname, a.status,
	a.email_verification_status, a.email_assumed, a.verification_sealed, a.password_modified_at, a.owner, a.created_at, a.modified_at`

// liveAccounts are the accounts whose directory is there: one that is deleted
// goes at once, and its accounts after it.
const liveAccounts = `accounts a JOIN directories d ON d.tenant_id = a.tenant_id AND d.id = a.directory_id`

// AccountStatuses are the values of an account's status.
var AccountStatuses = []string{directoryapi.Enabled, directoryapi.Disabled, directoryapi.Unverified, directoryapi.Locked}

// Accounts are searched and sorted by these attributes.
var Accounts = list.Spec{
	"username":   {Column: "a.username", Folded: "a.username_folded", Search: "a.search"},
	"email":      {Column: "a.email", Folded: "a.email_folded", Search: "a.search"},
	"givenName":  {Column: "a.given_name", Folded: "a.given_name_folded", Search: "a.search"},
	"middleName": {Column: "a.middle_name", Folded: "a.middle_name_folded", Search: "a.search"},
	"surname":    {Column: "a.surname", Folded: "a.surname_folded", Search: "a.search"},
	"fullName":   {Column: "a.full_name_folded", Folded: "a.full_name_folded", NoFind: true},
	"status":     {Column: "a.status", Kind: list.Enum, Values: AccountStatuses, Counted: "c.status"},
	"emailVerificationStatus": {Column: "a.email_verification_status", Kind: list.Enum, NoFind: true,
		Values: []string{directoryapi.Unknown, directoryapi.Unverified, directoryapi.Verified}},
	"createdAt":          {Column: "a.created_at", Kind: list.Time},
	"modifiedAt":         {Column: "a.modified_at", Kind: list.Time},
	"passwordModifiedAt": {Column: "a.password_modified_at", Kind: list.Time},
}

// DirectoryAccounts are the attributes of accounts in directories, where they
// are searched and sorted by custom data too.
var DirectoryAccounts = withCustomData(Accounts, accountValues.attribute("a.id"))

func withCustomData(plain list.Spec, values list.Attribute) list.Spec {
	spec := maps.Clone(plain)
	spec["customData.*"] = values
	return spec
}

// Verification is an open proof of an account's email.
type Verification struct {
	Digest    []byte // of the token
	Sealed    []byte // the token, for the account's representation and its mail
	ExpiresAt *time.Time
}

// Held is an account with the status of the directory that holds it.
type Held struct {
	directoryapi.Account
	DirectoryStatus string
}

// Account returns an account, or apierr.NotFound.
func (s *Store) Account(ctx context.Context, tenant, account id.ID) (directoryapi.Account, error) {
	return pg.One[directoryapi.Account](ctx, s.db, `SELECT `+accountColumns+` FROM `+liveAccounts+` WHERE 
		a.tenant_id = $1 AND a.id = $2`, tenant, account)
}

// Owner returns the account of the tenant's owner, which is in the administrators
// directory, or apierr.NotFound.
func (s *Store) Owner(ctx context.Context, tenant id.ID) (directoryapi.Account, error) {
	return pg.One[directoryapi.Account](ctx, s.db, `SELECT `+accountColumns+` FROM `+liveAccounts+` WHERE a.tenant_id = $1 AND a.owner
		AND a.directory_id IN (SELECT id FROM directories WHERE tenant_id = $1 AND builtin)`, tenant)
}

// Held returns an account with what holds it, or apierr.NotFound.
func (s *Store) Held(ctx context.Context, tenant, account id.ID) (Held, error) {
	return pg.One[Held](ctx, s.db, `SELECT `+accountColumns+`, d.status AS directory_status FROM `+liveAccounts+`
		WHERE a.tenant_id = $1 AND a.id = $2`, tenant, account)
}

// ListAccounts returns a page of the accounts of directories and the members of
// groups, each once. The groups are those of other directories.
func (s *Store) ListAccounts(ctx context.Context, tenant id.ID, directories, groups []id.ID,
	query list.Query) (list.Page[directoryapi.Account], error) {
	return listsql.SelectParts[directoryapi.Account](ctx, s.db, accountsOf(tenant, directories, groups), query)
}

// apart is up to how many directories are parts of their own, so that the
// database plans for the size of each. More of them share one plan, which is
// made for directories of a common size.
const apart = 8

func accountsOf(tenant id.ID, directories, groups []id.ID) listsql.Parts {
	accounts := listsql.Parts{Spec: DirectoryAccounts, Columns: accountColumns, Table: "accounts a", Key: "a.id",
		Tenant: "a.tenant_id = $1", Args: []any{tenant}}
	if len(directories) > apart {
		accounts.Args = append(accounts.Args, directories)
		accounts.Parts = append(accounts.Parts, listsql.Part{
			Each:  "(SELECT d.id FROM directories d WHERE d.tenant_id = $1 AND d.id = ANY ($2)) AS part",
			Where: "a.tenant_id = $1 AND a.directory_id = part.id",
			Size:  "SELECT coalesce(sum(c.n), 0) FROM account_counts c WHERE c.tenant_id = $1 AND c.directory_id = ANY ($2)",
		})
		directories = nil
	}
	for _, directory := range directories {
		accounts.Args = append(accounts.Args, directory)
		accounts.Parts = append(accounts.Parts, listsql.Part{
			Each:  "(SELECT " + accounts.Last() + "::uuid AS id) AS part",
			Where: "a.tenant_id = $1 AND a.directory_id = part.id AND EXISTS (SELECT FROM directories d WHERE d.tenant_id = $1 AND d.id = part.id)",
			Size:  "SELECT coalesce(sum(c.n), 0) FROM account_counts c WHERE c.tenant_id = $1 AND c.directory_id = " + accounts.Last(),
		})
	}
	if len(groups) > 0 {
		accounts.Args = append(accounts.Args, groups)
		accounts.Parts = append(accounts.Parts, listsql.Part{

			Where: "a.tenant_id = $1 AND a.id IN (SELECT m.account_id FROM group_memberships m " +
				"WHERE m.tenant_id = $1 AND m.group_id = ANY (" + accounts.Last() + "))",
		})
	}
	return accounts
}

// TenantAccounts returns a page of all accounts of a tenant.
func (s *Store) TenantAccounts(ctx context.Context, tenant id.Ref, query list.Query) (list.Page[directoryapi.Account], error) {
	return listsql.SelectParts[directoryapi.Account](ctx, s.db, listsql.Parts{
		Spec: DirectoryAccounts, Columns: accountColumns, Table: "accounts a", Key: "a.id", Tenant: "a.tenant_id = $1",
		Args: []any{tenant.Tenant},
		Parts: []listsql.Part{{
			Each:  "(SELECT d.id FROM directories d WHERE d.tenant_id = $1) AS part",
			Where: "a.tenant_id = $1 AND a.directory_id = part.id",
			Size:  "SELECT coalesce(sum(c.n), 0) FROM account_counts c WHERE c.tenant_id = $1",
		}},
	}, query)
}

// LockAccount reads an account that the transaction will change.
func (tx *Tx) LockAccount(ctx context.Context, tenant, account id.ID) (directoryapi.Account, error) {
	return pg.One[directoryapi.Account](ctx, tx, `SELECT `+accountColumns+` FROM `+liveAccounts+` WHERE a.tenant_id = $1 AND a.id = $2
		FOR UPDATE OF a`, tenant, account)
}

// HoldAccount reads an account that no other transaction deletes before the transaction
// ends.
func (tx *Tx) HoldAccount(ctx context.Context, tenant, account id.ID) (directoryapi.Account, error) {
	return pg.One[directoryapi.Account](ctx, tx, `SELECT `+accountColumns+` FROM `+liveAccounts+` WHERE a.tenant_id = $1 AND a.id = $2
		FOR KEY SHARE OF a`, tenant, account)
}

// InsertAccount adds an account to a directory that is there, or returns
// apierr.NotFound. A user name or email that the directory has is
// apierr.Exists. v is nil for an account without an open verification.
//
// It does not lock the directory, which all registrations of it would share: an
// account that comes while the directory goes is one of those that it leaves.
func (tx *Tx) InsertAccount(_ context.Context, a directoryapi.Account, passwordHash string, v *Verification) error {
	tx.QueueChange(`WITH directory AS (
			SELECT FROM directories WHERE tenant_id = $1 AND id = $3
		), counted AS (
			INSERT INTO account_counts AS c (tenant_id, directory_id, status, shard, n) SELECT $1, $3, $15, `+shard+`, 1 FROM directory
			ON CONFLICT (tenant_id, directory_id, status, shard) DO UPDATE SET n = c.n + 1
		)
		INSERT INTO accounts (`+accountRowColumns+`)
		SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26
		FROM directory`, accountRow(a, passwordHash, v)...)
	return nil
}

// accountRowColumns are what is stored of an account, in the order of accountRow.
const accountRowColumns = `tenant_id, id, directory_id, username, username_folded, email, email_folded, given_name, given_name_folded, ` +
	`middle_name, middle_name_folded, surname, surname_folded, full_name_folded, status, search, email_verification_status, ` +
	`email_assumed, verification_digest, verification_sealed, verification_expires_at, password_hash, ` +
	`password_modified_at, owner, created_at, modified_at`

func accountRow(a directoryapi.Account, passwordHash string, v *Verification) []any {
	if v == nil {
		v = &Verification{}
	}
	s := searchable(a)
	return []any{
		a.TenantID, a.ID, a.DirectoryID, a.Username, s.username, a.Email, s.email, a.GivenName, s.givenName,
		a.MiddleName, s.middleName, a.Surname, s.surname, s.fullName, a.Status, s.all, a.EmailVerificationStatus,
		a.EmailAssumed, v.Digest, v.Sealed, v.ExpiresAt, passwordHash, a.PasswordModifiedAt, a.Owner, a.CreatedAt, a.ModifiedAt,
	}
}

// shard is the row of a count that a connection changes. Hardly two that are open
// at the same time share one, so that they do not wait for each other.
const shard = `(pg_backend_pid() % 64)::smallint`

// accountText is an account's text in its normal form.
type accountText struct{ username, email, givenName, middleName, surname, fullName, all string }

// maxSorted bounds the text by which full names are sorted, in characters: three
// long names are more than an index takes.
const maxSorted = 300

func searchable(a directoryapi.Account) accountText {
	f := accountText{
		username: field.Fold(a.Username), email: field.Fold(a.Email),
		givenName: field.FoldOptional(a.GivenName), middleName: field.FoldOptional(a.MiddleName), surname: field.FoldOptional(a.Surname),
	}
	fullName := []rune(field.Fold(a.FullName()))
	f.fullName = string(fullName[:min(len(fullName), maxSorted)])
	parts := []string{f.username}
	for _, part := range []string{f.email, f.givenName, f.middleName, f.surname} {
		if part != "" && part != f.username {
			parts = append(parts, part)
		}
	}
	f.all = strings.Join(parts, "\n")
	return f
}

// UpdateAccount writes what a client can change. An account without a sealed
// verification token has no open verification any more.
func (tx *Tx) UpdateAccount(ctx context.Context, before, a directoryapi.Account) error {
	s := searchable(a)
	tx.changesAccess(a.TenantID, a.ID)
	err := pg.MustChange(ctx, tx, `UPDATE accounts SET username = $3, username_folded = $4, email = $5, email_folded = $6,
		given_name = $7, given_name_folded = $8, middle_name = $9, middle_name_folded = $10, surname = $11, surname_folded = $12,
		full_name_folded = $13, search = $14, status = $15, email_verification_status = $16, password_modified_at = $17, modified_at = $18,
		email_assumed = $20, verification_digest = CASE WHEN $19 THEN NULL ELSE verification_digest END,
		verification_sealed = CASE WHEN $19 THEN NULL ELSE verification_sealed END
		WHERE tenant_id = $1 AND id = $2`,
		a.TenantID, a.ID, a.Username, s.username, a.Email, s.email,
		a.GivenName, s.givenName, a.MiddleName, s.middleName, a.Surname, s.surname,
		s.fullName, s.all, a.Status, a.EmailVerificationStatus, a.PasswordModifiedAt, a.ModifiedAt, a.VerificationSealed == nil,
		a.EmailAssumed && a.EmailVerificationStatus == directoryapi.Verified)
	if err != nil || before.Status == a.Status {
		return err
	}
	return tx.count(ctx, a, before.Status, a.Status)
}

// count moves an account from one status to another in its directory's counts;
// an empty one is none.
func (tx *Tx) count(ctx context.Context, a directoryapi.Account, from, to string) error {
	_, err := pg.Exec(ctx, tx, `INSERT INTO account_counts AS c (tenant_id, directory_id, status, shard, n)
		SELECT $1, d.id, step.status, `+shard+`, step.n FROM directories d, (VALUES ($3::text, -1), ($4, 1)) AS step (status, n)
		WHERE d.tenant_id = $1 AND d.id = $2 AND step.status <> '' ORDER BY step.status
		ON CONFLICT (tenant_id, directory_id, status, shard) DO UPDATE SET n = c.n + excluded.n`,
		a.TenantID, a.DirectoryID, from, to)
	return err
}

// SetVerification opens a verification in place of the former.
func (tx *Tx) SetVerification(ctx context.Context, tenant, account id.ID, v *Verification) error {
	return pg.MustChange(ctx, tx, `UPDATE accounts SET verification_digest = $3, verification_sealed = $4, verification_expires_at = $5
		WHERE tenant_id = $1 AND id = $2`, tenant, account, v.Digest, v.Sealed, v.ExpiresAt)
}

// VerificationTenant returns the tenant of an open verification, or
// apierr.NotFound: a mailed link names its token and nothing else.
func (s *Store) VerificationTenant(ctx context.Context, digest []byte) (id.ID, error) {
	return pg.InAnyShard(ctx, s.db, func(ctx context.Context) (id.ID, error) {
		return pg.Value[id.ID](ctx, s.db, `SELECT tenant_id FROM accounts WHERE verification_digest = $1`, digest)
	})
}

const openVerification = `SELECT ` + accountColumns + ` FROM ` + liveAccounts + `
	WHERE a.tenant_id = $1 AND a.verification_digest = $2 AND a.verification_expires_at > $3`

// VerificationAccount returns the account of an open verification, or
// apierr.NotFound.
func (s *Store) VerificationAccount(ctx context.Context, tenant id.ID, digest []byte, now time.Time) (directoryapi.Account, error) {
	return pg.One[directoryapi.Account](ctx, s.db, openVerification, tenant, digest, now)
}

// Verify spends a verification token: of any number of tries one succeeds, and
// the others are apierr.NotFound.
func (tx *Tx) Verify(ctx context.Context, tenant id.ID, digest []byte, now time.Time) (directoryapi.Account, error) {
	before, err := pg.One[directoryapi.Account](ctx, tx, openVerification+` FOR UPDATE OF a`, tenant, digest, now)
	if err != nil {
		return before, err
	}
	after := before
	after.EmailVerificationStatus, after.EmailAssumed, after.ModifiedAt, after.VerificationSealed = directoryapi.Verified, false, now, nil
	if after.Status == directoryapi.Unverified {
		after.Status = directoryapi.Enabled
	}
	return after, tx.UpdateAccount(ctx, before, after)
}

// DeleteAccount removes an account.
func (tx *Tx) DeleteAccount(ctx context.Context, a directoryapi.Account) error {
	tx.changesAccess(a.TenantID, a.ID)
	if err := pg.MustChange(ctx, tx, `DELETE FROM accounts WHERE tenant_id = $1 AND id = $2`, a.TenantID, a.ID); err != nil {
		return err
	}
	return tx.count(ctx, a, a.Status, "")
}

package store

import (
	"context"
	"maps"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/list/listsql"
	"github.com/doorward/doorward/pkg/pg"
)

const accountColumns = `a.tenant_id, a.id, a.directory_id, a.username, a.email, a.given_name, a.middle_name, a.surname,
	a.locale, a.status,
	a.email_verification_status, a.email_assumed, a.verification_sealed, a.absent_since, a.password_modified_at,
	a.owner, a.created_at, a.modified_at`

// accountsWithDirectory are the accounts of existing directories, a, with their directories, d. A
// directory that is deleted is hidden at once, and its accounts are deleted in batches after that
// (directoryremoval.go).
const accountsWithDirectory = `accounts a JOIN directories d ON d.tenant_id = a.tenant_id AND d.id = a.directory_id`

// AccountStatuses are the values of an account's status.
var AccountStatuses = []string{directoryapi.Enabled, directoryapi.Disabled, directoryapi.Unverified,
	directoryapi.Locked}

// Accounts are searched and sorted by these attributes.
var Accounts = list.Spec{
	"username":   {Column: "a.username", Folded: "a.username_folded", Search: "a.search", Login: true},
	"email":      {Column: "a.email", Folded: "a.email_folded", Search: "a.search", Login: true},
	"givenName":  {Column: "a.given_name", Folded: "a.given_name_folded", Search: "a.search"},
	"middleName": {Column: "a.middle_name", Folded: "a.middle_name_folded", Search: "a.search"},
	"surname":    {Column: "a.surname", Folded: "a.surname_folded", Search: "a.search"},
	"fullName":   {Column: "a.full_name_folded", Folded: "a.full_name_folded", NoFind: true},
	"status":     {Column: "a.status", Kind: list.Enum, Values: AccountStatuses, Counted: "c.status"},
	"emailVerificationStatus": {Column: "a.email_verification_status", Kind: list.Enum, NoFind: true,
		Values: []string{directoryapi.Unknown, directoryapi.Unverified, directoryapi.Verified}},
	"locale":             {Column: "a.locale"},
	"createdAt":          {Column: "a.created_at", Kind: list.Time},
	"modifiedAt":         {Column: "a.modified_at", Kind: list.Time},
	"passwordModifiedAt": {Column: "a.password_modified_at", Kind: list.Time},

	list.AfterKey: list.After("a.id"),
}

// DirectoryAccounts are the attributes by which accounts in directories are searched and sorted:
// those of Accounts, and custom data.
var DirectoryAccounts = withCustomData(Accounts, accountValues.attribute("a.id"))

// withCustomData returns the attributes with those of custom data added.
func withCustomData(plain list.Spec, values list.Attribute) list.Spec {
	spec := maps.Clone(plain)
	spec["customData.*"] = values
	return spec
}

// Account returns an account, or apierr.NotFound.
func (s *Store) Account(ctx context.Context, tenant, account id.ID) (directoryapi.Account, error) {
	return pg.One[directoryapi.Account](ctx, s.db, `SELECT `+accountColumns+` FROM `+accountsWithDirectory+` WHERE 
		a.tenant_id = $1 AND a.id = $2`, tenant, account)
}

// Owner returns the account of the tenant's owner, which is in the administrators
// directory, or apierr.NotFound.
func (s *Store) Owner(ctx context.Context, tenant id.ID) (directoryapi.Account, error) {
	return pg.One[directoryapi.Account](ctx, s.db, `SELECT `+accountColumns+` FROM `+accountsWithDirectory+`
		WHERE a.tenant_id = $1 AND a.owner AND a.directory_id IN (SELECT id FROM directories
		WHERE tenant_id = $1 AND builtin)`, tenant)
}

// ListAccounts returns a page of the accounts of directories and the members of groups, each
// account once. The groups must be of other directories than those.
func (s *Store) ListAccounts(ctx context.Context, tenant id.ID, directories, groups []id.ID,
	query list.Query) (list.Page[directoryapi.Account], error) {
	return listsql.SelectParts[directoryapi.Account](ctx, s.db, accountsOf(tenant, directories, groups), query)
}

// maxSeparateDirectories is the number of directories up to which each is a part of the query of
// its own, which PostgreSQL plans for the size of that directory. More of them share one plan,
// which is made for directories of average size.
const maxSeparateDirectories = 8

func accountsOf(tenant id.ID, directories, groups []id.ID) listsql.Parts {
	accounts := listsql.Parts{Spec: DirectoryAccounts, Columns: accountColumns, Table: "accounts a", Key: "a.id",
		Tenant: "a.tenant_id = $1", Args: []any{tenant}}
	if len(directories) > maxSeparateDirectories {
		accounts.Args = append(accounts.Args, directories)
		accounts.Parts = append(accounts.Parts, listsql.Part{
			Each:  "(SELECT d.id FROM directories d WHERE d.tenant_id = $1 AND d.id = ANY ($2)) AS part",
			Where: "a.tenant_id = $1 AND a.directory_id = part.id",
			Size: "SELECT coalesce(sum(c.n), 0) FROM account_counts c WHERE c.tenant_id = $1 AND c.directory_id = " +
				"ANY ($2)",
		})
		directories = nil
	}
	for _, directory := range directories {
		accounts.Args = append(accounts.Args, directory)
		accounts.Parts = append(accounts.Parts, listsql.Part{
			Each: "(SELECT " + accounts.Last() + "::uuid AS id) AS part",
			Where: "a.tenant_id = $1 AND a.directory_id = part.id AND " +
				"EXISTS (SELECT 1 FROM directories d WHERE d.tenant_id = $1 AND d.id = part.id)",
			Size: "SELECT coalesce(sum(c.n), 0) FROM account_counts c WHERE c.tenant_id = $1 AND c.directory_id = " +
				accounts.Last(),
		})
	}
	if len(groups) > 0 {
		accounts.Args = append(accounts.Args, groups)
		members := "FROM group_memberships m WHERE m.tenant_id = $1 AND m.group_id = ANY (" + accounts.Last() + ")"
		accounts.Parts = append(accounts.Parts, listsql.Part{
			Where: "a.tenant_id = $1 AND a.id IN (SELECT m.account_id " + members + ")",
			Rows:  "SELECT count(DISTINCT m.account_id) " + members,
		})
	}
	return accounts
}

// TenantAccounts returns a page of all accounts of a tenant.
func (s *Store) TenantAccounts(ctx context.Context, tenant id.Ref,
	query list.Query) (list.Page[directoryapi.Account], error) {
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

// LockAccount reads an account and locks it for a change (FOR UPDATE).
func (tx *Tx) LockAccount(ctx context.Context, tenant, account id.ID) (directoryapi.Account, error) {
	return pg.One[directoryapi.Account](ctx, tx, `SELECT `+accountColumns+` FROM `+accountsWithDirectory+`
		WHERE a.tenant_id = $1 AND a.id = $2 FOR UPDATE OF a`, tenant, account)
}

// LockAccountShared reads an account and locks it against deletion (FOR KEY SHARE) until the
// transaction ends.
func (tx *Tx) LockAccountShared(ctx context.Context, tenant, account id.ID) (directoryapi.Account, error) {
	return pg.One[directoryapi.Account](ctx, tx, `SELECT `+accountColumns+` FROM `+accountsWithDirectory+`
		WHERE a.tenant_id = $1 AND a.id = $2 FOR KEY SHARE OF a`, tenant, account)
}

// InsertAccount inserts an account into an existing directory, or returns apierr.NotFound for the
// directory. A user name or email that is not unique, as another account of the directory has it
// (key of login_names), is apierr.Exists. v is nil for an account whose email does not have to be
// verified.
//
// It does not lock the directory, as all registrations of a directory would wait for that lock. An
// account that is inserted while its directory is deleted is deleted after that
// (directoryremoval.go).
func (tx *Tx) InsertAccount(_ context.Context, a directoryapi.Account, passwordHash string,
	v *EmailVerification) error {
	tx.noteMixedScripts(a)
	tx.QueueChange(`WITH directory AS (
			SELECT 1 FROM directories WHERE tenant_id = @tenant_id AND id = @directory_id
		), counted AS (
			INSERT INTO account_counts AS c (tenant_id, directory_id, status, shard, n)
			SELECT @tenant_id, @directory_id, @status, `+countSlot+`, 1 FROM directory
			ON CONFLICT (tenant_id, directory_id, status, shard) DO UPDATE SET n = c.n + 1
		), named AS (
			INSERT INTO login_names (tenant_id, directory_id, name, account_id)
			SELECT DISTINCT @tenant_id::uuid, @directory_id::uuid, name, @id::uuid
			FROM directory, unnest(ARRAY[@username_folded::text, @email_folded::text]) AS name
			ORDER BY name
		)
		INSERT INTO accounts (`+accountRowColumns+`) SELECT `+pg.Names(accountRowColumns)+` FROM directory`,
		accountRow(a, passwordHash, v))
	return nil
}

// accountRowColumns are the columns of a new account.
const accountRowColumns = `tenant_id, id, directory_id, username, username_folded, email, email_folded, given_name,
	given_name_folded, middle_name, middle_name_folded, surname, surname_folded, full_name_folded, status, search,
	email_verification_status, email_assumed, verification_digest, verification_sealed, verification_expires_at,
	password_hash, password_modified_at, owner, created_at, modified_at, locale, verification_application_id`

// accountRow returns the values of accountRowColumns.
func accountRow(a directoryapi.Account, passwordHash string, v *EmailVerification) pg.NamedArgs {
	if v == nil {
		v = &EmailVerification{}
	}
	return pg.Named(pg.Args{
		"verification_digest": v.Digest, "verification_sealed": v.Sealed, "verification_expires_at": v.ExpiresAt,
		"verification_application_id": v.ApplicationID, "password_hash": passwordHash,
	}, normalizedText(a), a)
}

// countSlot is the slot of a sharded counter that a connection updates. Connections that are open
// at the same time hardly ever share a slot, so that they do not wait for each other's row lock.
const countSlot = `(pg_backend_pid() % 64)::smallint`

// normalizedAccount is the text of an account in normal form, for unique keys, search and order.
type normalizedAccount struct {
	UsernameFolded, EmailFolded, GivenNameFolded, MiddleNameFolded, SurnameFolded, FullNameFolded, Search string
}

// maxSorted bounds the full name by which accounts are sorted, in characters: three long names are
// longer than an index entry may be.
const maxSorted = 300

func normalizedText(a directoryapi.Account) normalizedAccount {
	f := normalizedAccount{
		UsernameFolded: field.LoginName(a.Username), EmailFolded: field.LoginName(a.Email),
		GivenNameFolded: field.FoldOptional(a.GivenName), MiddleNameFolded: field.FoldOptional(a.MiddleName),
		SurnameFolded: field.FoldOptional(a.Surname),
	}
	fullName := []rune(field.Fold(a.FullName()))
	f.FullNameFolded = string(fullName[:min(len(fullName), maxSorted)])
	f.Search = field.SearchText(f.UsernameFolded, f.EmailFolded, a.Username, a.Email, field.OrEmpty(a.GivenName),
		field.OrEmpty(a.MiddleName), field.OrEmpty(a.Surname))
	return f
}

// UpdateAccount updates what a client can change. Where VerificationSealed is nil, it ends the
// verification token. The link of a token that was mailed to a former email leads nowhere any more.
func (tx *Tx) UpdateAccount(ctx context.Context, before, a directoryapi.Account) error {
	s := normalizedText(a)
	tx.noteMixedScripts(a, field.LoginName(before.Username), field.LoginName(before.Email))
	if before.Status != a.Status || before.PasswordModifiedAt != a.PasswordModifiedAt {
		tx.invalidateAccess(a.TenantID, a.ID)
	}
	// nil: as they are, also where a mirrored account has given them up (ReleaseAccountNames)
	var username, email *string
	if s.UsernameFolded != field.LoginName(before.Username) || s.EmailFolded != field.LoginName(before.Email) {
		username, email = &s.UsernameFolded, &s.EmailFolded
		tx.replaceLoginNames(before, a)
	}
	err := pg.MustChange(ctx, tx, `UPDATE accounts SET `+pg.Set(`username, email, given_name, given_name_folded,
		middle_name, middle_name_folded, surname, surname_folded, full_name_folded, search, status,
		email_verification_status, email_assumed, password_modified_at, modified_at, locale`)+`,
		username_folded = coalesce(@username_folded, username_folded),
		email_folded = coalesce(@email_folded, email_folded),
		verification_digest = CASE WHEN email_folded = coalesce(@email_folded, email_folded)
			THEN verification_digest END,
		verification_sealed = CASE WHEN @ended THEN NULL ELSE verification_sealed END,
		verification_expires_at = CASE WHEN @ended THEN NULL ELSE verification_expires_at END
		WHERE tenant_id = @tenant_id AND id = @id`,
		pg.Named(pg.Args{
			"username_folded": username, "email_folded": email, "ended": a.VerificationSealed == nil,
			"email_assumed": a.EmailAssumed && a.EmailVerificationStatus == directoryapi.Verified,
		}, s, a))
	if err != nil || before.Status == a.Status {
		return err
	}
	return tx.moveCount(ctx, a, before.Status, a.Status)
}

// moveCount moves an account from one status to another in the counts of its directory; an empty
// status stands for no account.
func (tx *Tx) moveCount(ctx context.Context, a directoryapi.Account, from, to string) error {
	_, err := pg.Exec(ctx, tx, `INSERT INTO account_counts AS c (tenant_id, directory_id, status, shard, n)
		SELECT $1, d.id, step.status, `+countSlot+`, step.n FROM directories d, (VALUES ($3::text, -1), ($4, 1)) AS step
			(status, n)
		WHERE d.tenant_id = $1 AND d.id = $2 AND step.status <> '' ORDER BY step.status
		ON CONFLICT (tenant_id, directory_id, status, shard) DO UPDATE SET n = c.n + excluded.n`,
		a.TenantID, a.DirectoryID, from, to)
	return err
}

// DeleteAccount deletes an account that the transaction has locked, with all that belongs to it.
func (tx *Tx) DeleteAccount(ctx context.Context, a directoryapi.Account) error {
	tx.invalidateAccess(a.TenantID, a.ID)
	if _, err := tx.deleteAccounts(ctx, a.TenantID, []id.ID{a.ID}); err != nil {
		return err
	}
	return tx.moveCount(ctx, a, a.Status, "")
}

// endedAccount is an account that was made absent or deleted, with its status before.
type endedAccount struct {
	ID     id.ID
	Status string
}

// deleteAccounts deletes accounts with all that belongs to them. Foreign keys delete their memberships,
// links, provider data and resets. No other transaction may rename the accounts meanwhile: it would
// leave their new login names behind.
func (tx *Tx) deleteAccounts(ctx context.Context, tenant id.ID, accounts []id.ID) ([]endedAccount, error) {
	return pg.All[endedAccount](ctx, tx, `WITH gone AS (
			DELETE FROM accounts WHERE tenant_id = $1 AND id = ANY ($2)
			RETURNING id, status, directory_id, username_folded, email_folded
		), names AS (
			DELETE FROM login_names l
			USING gone CROSS JOIN LATERAL (VALUES (gone.username_folded), (gone.email_folded)) AS former (name)
			WHERE l.tenant_id = $1 AND l.directory_id = gone.directory_id AND l.name = former.name
			AND l.account_id = gone.id
		), source AS (
			DELETE FROM mirrored_accounts WHERE tenant_id = $1 AND account_id IN (SELECT id FROM gone)
		), data AS (
			DELETE FROM custom_data WHERE tenant_id = $1 AND owner_id IN (SELECT id FROM gone)
		)
		SELECT id, status FROM gone`, tenant, accounts)
}

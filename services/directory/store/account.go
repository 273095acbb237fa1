package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/pg"
)

const accountColumns = `a.tenant_id, a.id, a.directory_id, a.username, a.email, a.given_name, a.middle_name, a.surname, a.status,
	a.email_verification_status, a.verification_sealed, a.password_modified_at, a.owner, a.created_at, a.modified_at`

// Accounts are searched and sorted by these attributes.
var Accounts = list.Spec{
	"username":           {Column: "a.username", Folded: "a.username_folded"},
	"email":              {Column: "a.email", Folded: "a.email_folded"},
	"givenName":          {Column: "a.given_name"},
	"middleName":         {Column: "a.middle_name"},
	"surname":            {Column: "a.surname"},
	"status":             {Column: "a.status", Kind: list.Enum, Values: []string{directoryapi.Enabled, directoryapi.Disabled, directoryapi.Unverified}},
	"createdAt":          {Column: "a.created_at", Kind: list.Time},
	"modifiedAt":         {Column: "a.modified_at", Kind: list.Time},
	"passwordModifiedAt": {Column: "a.password_modified_at", Kind: list.Time},
}

// Verification is an open proof of an account's email.
type Verification struct {
	Digest    []byte // of the token
	Sealed    []byte // the token, for the account's representation and its mail
	ExpiresAt *time.Time
}

// Account gives an account, or apierr.NotFound.
func (s *Store) Account(ctx context.Context, tenant, account id.ID) (directoryapi.Account, error) {
	return pg.One[directoryapi.Account](ctx, s.db, `SELECT `+accountColumns+` FROM accounts a WHERE a.tenant_id = $1 AND a.id = $2`, tenant, account)
}

// ListAccounts gives a page of the accounts of the directories; nil means all
// directories of the tenant.
func (s *Store) ListAccounts(ctx context.Context, tenant id.ID, directories []id.ID, query list.Query) (list.Page[directoryapi.Account], error) {
	if directories == nil {
		return list.Select[directoryapi.Account](ctx, s.db, Accounts, query, accountColumns, `FROM accounts a WHERE a.tenant_id = $1`, "a.id", tenant)
	}
	return list.Select[directoryapi.Account](ctx, s.db, Accounts, query, accountColumns,
		`FROM accounts a WHERE a.tenant_id = $1 AND a.directory_id = ANY ($2)`, "a.id", tenant, directories)
}

// Candidate is an account that a login leads to.
type Candidate struct {
	directoryapi.Account
	PasswordHash    string
	DirectoryStatus string
}

// FindLogin gives the account of a login in the first of the directories that
// has one, by its user name before its email; apierr.NotFound when none has.
func (s *Store) FindLogin(ctx context.Context, tenant id.ID, directories []id.ID, login string) (Candidate, error) {
	return pg.One[Candidate](ctx, s.db, `SELECT `+accountColumns+`, a.password_hash, d.status AS directory_status
		FROM unnest($2::uuid[]) WITH ORDINALITY AS store (id, position)
		JOIN directories d ON d.tenant_id = $1 AND d.id = store.id
		JOIN accounts a ON a.tenant_id = $1 AND a.directory_id = store.id AND (a.username_folded = $3 OR a.email_folded = $3)
		ORDER BY store.position, a.username_folded <> $3 LIMIT 1`, tenant, directories, field.Fold(login))
}

// Holder is an account with the status of its directory.
type Holder struct {
	directoryapi.Account
	DirectoryStatus string
}

// Holder gives an account and the status of its directory, or apierr.NotFound.
func (s *Store) Holder(ctx context.Context, tenant, account id.ID) (Holder, error) {
	return pg.One[Holder](ctx, s.db, `SELECT `+accountColumns+`, d.status AS directory_status FROM accounts a
		JOIN directories d ON d.tenant_id = a.tenant_id AND d.id = a.directory_id WHERE a.tenant_id = $1 AND a.id = $2`, tenant, account)
}

// LockAccount reads an account that the transaction will change.
func (tx *Tx) LockAccount(ctx context.Context, tenant, account id.ID) (directoryapi.Account, error) {
	return pg.One[directoryapi.Account](ctx, tx, `SELECT `+accountColumns+` FROM accounts a WHERE a.tenant_id = $1 AND a.id = $2 FOR UPDATE`, tenant, account)
}

// InsertAccount adds an account. A user name or email that the directory has
// is apierr.Exists. v is nil for an account without an open verification.
func (tx *Tx) InsertAccount(ctx context.Context, a directoryapi.Account, passwordHash string, v *Verification) error {
	if v == nil {
		v = &Verification{}
	}
	_, err := pg.Exec(ctx, tx, `INSERT INTO accounts (tenant_id, id, directory_id, username, username_folded, email, email_folded, given_name, middle_name,
		surname, status, email_verification_status, verification_digest, verification_sealed, verification_expires_at, password_hash,
		password_modified_at, owner, created_at, modified_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)`,
		a.TenantID, a.ID, a.DirectoryID, a.Username, field.Fold(a.Username), a.Email, field.Fold(a.Email), a.GivenName, a.MiddleName,
		a.Surname, a.Status, a.EmailVerificationStatus, v.Digest, v.Sealed, v.ExpiresAt, passwordHash,
		a.PasswordModifiedAt, a.Owner, a.CreatedAt, a.ModifiedAt)
	return err
}

// UpdateAccount writes what a client can change. An account without a sealed
// verification token has no open verification any more.
func (tx *Tx) UpdateAccount(ctx context.Context, a directoryapi.Account) error {
	return pg.MustChange(ctx, tx, `UPDATE accounts SET username = $3, username_folded = $4, email = $5, email_folded = $6, given_name = $7, middle_name = $8,
		surname = $9, status = $10, email_verification_status = $11, password_modified_at = $12, modified_at = $13,
		verification_digest = CASE WHEN $14 THEN NULL ELSE verification_digest END,
		verification_sealed = CASE WHEN $14 THEN NULL ELSE verification_sealed END
		WHERE tenant_id = $1 AND id = $2`,
		a.TenantID, a.ID, a.Username, field.Fold(a.Username), a.Email, field.Fold(a.Email), a.GivenName, a.MiddleName,
		a.Surname, a.Status, a.EmailVerificationStatus, a.PasswordModifiedAt, a.ModifiedAt, a.VerificationSealed == nil)
}

// Verify spends a verification token: of any number of tries one succeeds, and
// the others are apierr.NotFound.
func (tx *Tx) Verify(ctx context.Context, tenant id.ID, digest []byte, now time.Time) (directoryapi.Account, error) {
	return pg.One[directoryapi.Account](ctx, tx, `UPDATE accounts a SET email_verification_status = 'VERIFIED', modified_at = $3,
		status = CASE WHEN a.status = 'UNVERIFIED' THEN 'ENABLED' ELSE a.status END,
		verification_digest = NULL, verification_sealed = NULL, verification_expires_at = NULL
		WHERE a.tenant_id = $1 AND a.verification_digest = $2 AND a.verification_expires_at > $3
		RETURNING `+accountColumns, tenant, digest, now)
}

// DeleteAccount removes an account.
func (tx *Tx) DeleteAccount(ctx context.Context, tenant, account id.ID) error {
	return pg.MustChange(ctx, tx, `DELETE FROM accounts WHERE tenant_id = $1 AND id = $2`, tenant, account)
}

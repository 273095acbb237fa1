package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/list/listsql"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
)

// Kind distinguishes the two tokens. It is the member stt of a JWT's header.
type Kind string

// The kinds of token.
const (
	Access  Kind = "access"
	Refresh Kind = "refresh"
)

// Kinds lists both in the order in which they are deleted: without its refresh
// token no new access token is made behind the deletion's back.
var Kinds = []Kind{Refresh, Access}

// Tokens of an account are sorted and searched by these attributes. The
// application is another service's resource: the rules take that filter out of
// the query before it comes here.
var Tokens = list.Spec{
	"createdAt":        {Column: "t.issued_at", Kind: list.Time, NoFind: true},
	"application.href": {NoSort: true},
}

// Token is a token that was issued.
type Token struct {
	Kind          Kind
	TenantID      id.ID
	ID            id.ID
	ApplicationID id.ID
	AccountID     id.ID
	KeyID         string    // of the API key that signs it
	RefreshID     id.ID     // of an access token: the refresh token it came with; zero where there is none
	IssuedAt      time.Time // whole seconds, as in its JWT
	ExpiresAt     time.Time // whole seconds, as in its JWT

	// OrganizationID is the organization that the login named; zero where it
	// named none.
	OrganizationID id.ID

	// Began is when the request for a new token began.
	Began time.Time `db:"-"`
}

// LiveToken is a token with its JWT.
type LiveToken struct {
	Token
	SecretSealed []byte        // of the API key that signs it
	JWT          secure.Secret `db:"-"`
}

// table and columns are the SQL in which the two kinds differ.
func (k Kind) table() string {
	if k == Refresh {
		return "refresh_tokens"
	}
	return "access_tokens"
}

func (k Kind) columns() string {
	const shared = `t.tenant_id, t.id, t.application_id, t.account_id, t.key_id, t.issued_at, t.expires_at, t.organization_id`
	if k == Refresh {
		return `'refresh' AS kind, NULL::uuid AS refresh_id, ` + shared
	}
	return `'access' AS kind, t.refresh_id, ` + shared
}

// shown is where the tokens are that can be shown. The join leaves out those
// whose API key was deleted: nothing can verify them, so they are gone.
func (k Kind) shown() string {
	return `FROM ` + k.table() + ` t JOIN api_keys k ON k.tenant_id = t.tenant_id AND k.id = t.key_id`
}

func (k Kind) query() string {
	return `SELECT ` + k.columns() + ` FROM ` + k.table() + ` t WHERE t.tenant_id = $1 AND t.id = $2`
}

// Token returns a token whether or not it has expired, or apierr.NotFound.
func (s *Store) Token(ctx context.Context, kind Kind, tenant, token id.ID) (Token, error) {
	return s.tokens[kind].Read(ctx, id.Ref{Tenant: tenant, ID: token})
}

// RecentToken is Token as it was at most 50 ms ago. What this process deletes is gone at
// once.
func (s *Store) RecentToken(ctx context.Context, kind Kind, tenant, token id.ID) (Token, error) {
	return s.tokens[kind].One(ctx, id.Ref{Tenant: tenant, ID: token})
}

// ListTokens returns a page of an account's tokens that have not expired, of one
// application unless that is zero.
func (s *Store) ListTokens(ctx context.Context, kind Kind, tenant, account, application id.ID, now time.Time,
	query list.Query) (list.Page[LiveToken], error) {
	return listsql.Select[LiveToken](ctx, s.db, Tokens, query, kind.columns()+`, k.secret_sealed`,
		kind.shown()+` WHERE t.tenant_id = $1 AND t.expires_at > $2 AND t.account_id = $3 AND ($4::uuid IS NULL OR t.application_id = $4)`,
		"t.id", tenant, now, account, application)
}

// Inserted is the id of a token that was inserted.
type Inserted struct {
	TenantID id.ID
	ID       id.ID
}

// InsertAccess adds access tokens without refresh tokens in one statement, but for
// those whose account's password was changed since their requests began. It returns
// those that were added; they are there once the transaction has committed.
func (tx *Tx) InsertAccess(_ context.Context, tokens []Token) *[]Inserted {
	rows := columnsOf(tokens)
	inserted := new([]Inserted)
	pg.QueueReturning(tx, inserted, `INSERT INTO access_tokens AS a
		(tenant_id, id, application_id, account_id, key_id, issued_at, expires_at, organization_id)
		SELECT u.tenant_id, u.id, u.application_id, u.account_id, u.key_id, u.issued_at, u.expires_at, u.organization_id
		FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::text[], $6::timestamptz[], $7::timestamptz[], $8::uuid[],
			$9::timestamptz[]) AS u (tenant_id, id, application_id, account_id, key_id, issued_at, expires_at, organization_id, began)
		WHERE NOT EXISTS
			(SELECT FROM password_changes p WHERE p.tenant_id = u.tenant_id AND p.account_id = u.account_id AND p.changed_at >= u.began)
		RETURNING a.tenant_id, a.id`,
		rows.tenants, rows.ids, rows.applications, rows.accounts, rows.keys, rows.issued, rows.expire, rows.organizations, rows.began)
	return inserted
}

// columns are tokens by column, as a statement takes them.
type columns struct {
	tenants, ids, applications, accounts, organizations, refreshes []id.ID
	keys                                                           []string
	issued, expire, began                                          []time.Time
}

func columnsOf(tokens []Token) (c columns) {
	for _, t := range tokens {
		c.tenants, c.ids, c.applications = append(c.tenants, t.TenantID), append(c.ids, t.ID), append(c.applications, t.ApplicationID)
		c.accounts, c.organizations = append(c.accounts, t.AccountID), append(c.organizations, t.OrganizationID)
		c.refreshes, c.keys = append(c.refreshes, t.RefreshID), append(c.keys, t.KeyID)
		c.issued, c.expire = append(c.issued, t.IssuedAt), append(c.expire, t.ExpiresAt)
		c.began = append(c.began, t.Began.Truncate(time.Millisecond)) // as in the ids
	}
	return c
}

// InsertPair adds an access token and the refresh token that it came with. The
// transaction fails with apierr.NotFound if the account's password was changed
// since the login began.
func (tx *Tx) InsertPair(_ context.Context, access, refresh Token) error {
	tx.QueueChange(`WITH login AS (
			SELECT WHERE NOT EXISTS (SELECT FROM password_changes WHERE tenant_id = $1 AND account_id = $4 AND changed_at >= $11)
		), refresh AS (
			INSERT INTO refresh_tokens (tenant_id, id, application_id, account_id, key_id, issued_at, expires_at, organization_id)
			SELECT $1, $8, $3, $4, $5, $6, $9, $10 FROM login
		)
		INSERT INTO access_tokens (tenant_id, id, application_id, account_id, key_id, issued_at, expires_at, refresh_id, organization_id)
		SELECT $1, $2, $3, $4, $5, $6, $7, $8, $10 FROM login`,
		access.TenantID, access.ID, access.ApplicationID, access.AccountID, access.KeyID, access.IssuedAt, access.ExpiresAt, refresh.ID,
		refresh.ExpiresAt,
		access.OrganizationID, access.Began.Truncate(time.Millisecond)) // as in the ids
	return nil
}

// InsertRefreshed adds access tokens of refresh tokens in one statement, but for
// those whose refresh token is gone. It returns those that were added; they are
// there once the transaction has committed. The refresh tokens are locked against
// their deletion, not against other refreshes: a revocation that comes first leaves
// nothing to refresh, and one that comes later finds this token to delete.
func (tx *Tx) InsertRefreshed(_ context.Context, tokens []Token) *[]Inserted {
	rows := columnsOf(tokens)
	inserted := new([]Inserted)
	pg.QueueReturning(tx, inserted, `INSERT INTO access_tokens AS a (tenant_id, id, application_id, account_id, key_id, refresh_id,
		issued_at, expires_at, organization_id)
		SELECT r.tenant_id, u.id, r.application_id, r.account_id, u.key_id, r.id, u.issued_at, u.expires_at, r.organization_id
		FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::timestamptz[], $6::timestamptz[])
			AS u (tenant_id, refresh_id, id, key_id, issued_at, expires_at)
		JOIN refresh_tokens r ON r.tenant_id = u.tenant_id AND r.id = u.refresh_id
		ORDER BY r.tenant_id, r.id FOR KEY SHARE OF r RETURNING a.tenant_id, a.id`,
		rows.tenants, rows.refreshes, rows.ids, rows.keys, rows.issued, rows.expire)
	return inserted
}

// DeleteToken removes one token, or returns apierr.NotFound when it has expired
// or is gone.
func (tx *Tx) DeleteToken(ctx context.Context, kind Kind, tenant, token id.ID, now time.Time) error {
	tx.deletes(kind, tenant, token)
	return pg.MustChange(ctx, tx, `DELETE FROM `+kind.table()+` WHERE tenant_id = $1 AND id = $2 AND expires_at > $3`, tenant, token, now)
}

// DeletePair removes a refresh token and every access token that came of it.
func (tx *Tx) DeletePair(ctx context.Context, tenant, account, refresh id.ID) error {
	tx.deletes(Refresh, tenant, refresh)
	if _, err := pg.Exec(ctx, tx, `DELETE FROM refresh_tokens WHERE tenant_id = $1 AND id = $2`, tenant, refresh); err != nil {
		return err
	}
	deleted, err := pg.All[struct{ ID id.ID }](ctx, tx, `DELETE FROM access_tokens WHERE tenant_id = $1 AND account_id = $2 AND refresh_id = $3
		RETURNING id`, tenant, account, refresh)
	for _, access := range deleted {
		tx.deletes(Access, tenant, access.ID)
	}
	return err
}

// DeleteAccountTokens removes all tokens of accounts.
func (tx *Tx) DeleteAccountTokens(ctx context.Context, tenant id.ID, accounts []id.ID) error {
	for _, kind := range Kinds {
		if _, err := pg.Exec(ctx, tx, `DELETE FROM `+kind.table()+` WHERE tenant_id = $1 AND account_id = ANY ($2)`, tenant,
			accounts); err != nil {
			return err
		}
	}
	return nil
}

// DeleteApplicationTokens removes at most limit tokens of a kind of an
// application, and returns their number.
func (tx *Tx) DeleteApplicationTokens(ctx context.Context, kind Kind, tenant, application id.ID, limit int) (int64, error) {
	return pg.Exec(ctx, tx, `DELETE FROM `+kind.table()+` WHERE tenant_id = $1 AND id IN
		(SELECT id FROM `+kind.table()+` WHERE tenant_id = $1 AND application_id = $2 LIMIT $3)`, tenant, application, limit)
}

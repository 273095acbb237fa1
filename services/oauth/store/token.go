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
}

// LiveToken is a token with what its JWT is made of.
type LiveToken struct {
	Token
	SecretSealed []byte

	// JWT is the signed form of the token.
	JWT secure.Secret `db:"-"`
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

// Token returns a token whether or not it has expired, or apierr.NotFound.
func (s *Store) Token(ctx context.Context, kind Kind, tenant, token id.ID) (Token, error) {
	return pg.One[Token](ctx, s.db, `SELECT `+kind.columns()+` `+kind.shown()+` WHERE t.tenant_id = $1 AND t.id = $2`, tenant, token)
}

// LiveToken returns a token that has not expired, or apierr.NotFound.
func (s *Store) LiveToken(ctx context.Context, kind Kind, tenant, token id.ID, now time.Time) (LiveToken, error) {
	return pg.One[LiveToken](ctx, s.db, `SELECT `+kind.columns()+`, k.secret_sealed `+kind.shown()+`
		WHERE t.tenant_id = $1 AND t.id = $2 AND t.expires_at > $3`, tenant, token, now)
}

// ListTokens returns a page of an account's tokens that have not expired, of one
// application unless that is zero.
func (s *Store) ListTokens(ctx context.Context, kind Kind, tenant, account, application id.ID, now time.Time,
	query list.Query) (list.Page[LiveToken], error) {
	return listsql.Select[LiveToken](ctx, s.db, Tokens, query, kind.columns()+`, k.secret_sealed`,
		kind.shown()+` WHERE t.tenant_id = $1 AND t.expires_at > $2 AND t.account_id = $3 AND ($4::uuid IS NULL OR t.application_id = $4)`,
		"t.id", tenant, now, account, application)
}

// InsertTokens adds an access token and, unless that is zero, the refresh token
// that it came with, of a login that began at a time. The transaction fails with
// apierr.NotFound if the account's password was changed since.
func (tx *Tx) InsertTokens(_ context.Context, access, refresh Token, began time.Time) error {
	began = began.Truncate(time.Millisecond) // as in the ids
	if refresh.ID.IsZero() {
		tx.QueueChange(`INSERT INTO access_tokens
			(tenant_id, id, application_id, account_id, key_id, issued_at, expires_at, organization_id)
			SELECT $1, $2, $3, $4, $5, $6, $7, $8
			WHERE NOT EXISTS (SELECT FROM password_changes WHERE tenant_id = $1 AND account_id = $4 AND changed_at >= $9)`,
			access.TenantID, access.ID, access.ApplicationID, access.AccountID, access.KeyID, access.IssuedAt, access.ExpiresAt,
			access.OrganizationID, began)
		return nil
	}
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
		access.OrganizationID, began)
	return nil
}

// InsertRefreshed adds an access token of a refresh token; without that
// the transaction fails with apierr.NotFound. The refresh token is locked
// against its deletion, not against other refreshes: a revocation that comes first
// leaves nothing to refresh, and one that comes later finds this token to delete.
func (tx *Tx) InsertRefreshed(_ context.Context, t Token) error {
	tx.QueueChange(`INSERT INTO access_tokens (tenant_id, id, application_id, account_id, key_id, refresh_id, issued_at,
		expires_at, organization_id)
		SELECT r.tenant_id, $3, r.application_id, r.account_id, $4, r.id, $5, $6, r.organization_id
		FROM refresh_tokens r WHERE r.tenant_id = $1 AND r.id = $2 FOR KEY SHARE`,
		t.TenantID, t.RefreshID, t.ID, t.KeyID, t.IssuedAt, t.ExpiresAt)
	return nil
}

// DeleteToken removes one token, or returns apierr.NotFound when it has expired
// or is gone.
func (tx *Tx) DeleteToken(ctx context.Context, kind Kind, tenant, token id.ID, now time.Time) error {
	return pg.MustChange(ctx, tx, `DELETE FROM `+kind.table()+` WHERE tenant_id = $1 AND id = $2 AND expires_at > $3`, tenant, token, now)
}

// DeletePair removes a refresh token and every access token that came of it.
func (tx *Tx) DeletePair(ctx context.Context, tenant, account, refresh id.ID) error {
	if _, err := pg.Exec(ctx, tx, `DELETE FROM refresh_tokens WHERE tenant_id = $1 AND id = $2`, tenant, refresh); err != nil {
		return err
	}
	_, err := pg.Exec(ctx, tx, `DELETE FROM access_tokens WHERE tenant_id = $1 AND account_id = $2 AND refresh_id = $3`, tenant, account,
		refresh)
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

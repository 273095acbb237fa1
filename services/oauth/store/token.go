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

// TokenKind is access or refresh. It is the member stt of a JWT's header.
type TokenKind string

// The kinds of token.
const (
	Access  TokenKind = "access"
	Refresh TokenKind = "refresh"
)

// TokenKinds are both kinds in the order of a deletion. Refresh tokens are deleted first: a
// concurrent refresh then cannot issue a new access token after the access tokens were
// deleted.
var TokenKinds = []TokenKind{Refresh, Access}

// Tokens has the attributes by which the tokens of an account are sorted and searched. The
// filter application.href has no column: Service.ListTokens replaces it by the id of the
// application.
var Tokens = list.Spec{
	"createdAt":        {Column: "t.issued_at", Kind: list.Time, NoFind: true},
	"application.href": {NoSort: true},
}

// Token is an access or refresh token that was issued. Its JWT is not stored.
type Token struct {
	Kind          TokenKind
	TenantID      id.ID
	ID            id.ID
	ApplicationID id.ID
	AccountID     id.ID
	KeyID         string    // of the API key that signs it
	RefreshID     id.ID     // of an access token: the refresh token that was issued with it; zero: none
	IssuedAt      time.Time // whole seconds, as in its JWT
	ExpiresAt     time.Time // whole seconds, as in its JWT

	// OrganizationID is the organization that the login named; zero where it
	// named none.
	OrganizationID id.ID

	// SecondFactor is whether the login of the token has passed a second factor (MFA).
	SecondFactor bool

	// StartedAt is when the request that issued the token began. It is not stored.
	StartedAt time.Time `db:"-"`
}

// TokenWithJWT is a token with its JWT, which the service signs again (Token has none).
type TokenWithJWT struct {
	Token
	SecretSealed []byte        // of the API key that signs it
	JWT          secure.Secret `db:"-"`
}

// table returns the name of the table of a kind.
func (k TokenKind) table() string {
	if k == Refresh {
		return "refresh_tokens"
	}
	return "access_tokens"
}

// tokenColumns are the columns that both kinds have.
const tokenColumns = `t.tenant_id, t.id, t.application_id, t.account_id, t.key_id, t.issued_at, t.expires_at,
	t.organization_id, t.second_factor`

// columns returns the columns of a kind, for a query of Token.
func (k TokenKind) columns() string {
	if k == Refresh {
		return `'refresh' AS kind, NULL::uuid AS refresh_id, ` + tokenColumns
	}
	return `'access' AS kind, t.refresh_id, ` + tokenColumns
}

// fromWithAPIKeys returns the FROM clause of tokens with their API keys. It leaves out tokens
// whose API key was deleted: their JWTs cannot be verified any more.
func (k TokenKind) fromWithAPIKeys() string {
	return `FROM ` + k.table() + ` t JOIN api_keys k ON k.tenant_id = t.tenant_id AND k.id = t.key_id`
}

// selectByID returns the query of one token.
func (k TokenKind) selectByID() string {
	return `SELECT ` + k.columns() + ` FROM ` + k.table() + ` t WHERE t.tenant_id = $1 AND t.id = $2`
}

// Token returns a token, which may have expired, or apierr.NotFound.
func (s *Store) Token(ctx context.Context, kind TokenKind, tenant, token id.ID) (Token, error) {
	return s.tokens[kind].Read(ctx, id.Ref{Tenant: tenant, ID: token})
}

// RecentToken is Token from the cache, as of at most 50 ms ago. A token that this process
// deletes is not found at once.
func (s *Store) RecentToken(ctx context.Context, kind TokenKind, tenant, token id.ID) (Token, error) {
	return s.tokens[kind].One(ctx, id.Ref{Tenant: tenant, ID: token})
}

// ListTokens returns a page of an account's tokens that have not expired. With an application
// other than the zero id it returns only the tokens of that application.
func (s *Store) ListTokens(ctx context.Context, kind TokenKind, tenant, account, application id.ID, without []id.ID,
	now time.Time, query list.Query) (list.Page[TokenWithJWT], error) {
	return listsql.Select[TokenWithJWT](ctx, s.db, Tokens, query, kind.columns()+`, k.secret_sealed`,
		kind.fromWithAPIKeys()+` WHERE t.tenant_id = $1 AND t.expires_at > $2 AND t.account_id = $3
			AND ($4::uuid IS NULL OR t.application_id = $4) AND t.application_id <> ALL ($5)`,
		"t.id", tenant, now, account, application, without)
}

// TokenApplications returns the applications of an account's tokens.
func (s *Store) TokenApplications(ctx context.Context, kind TokenKind, tenant, account id.ID) ([]id.ID, error) {
	return pg.Values[id.ID](ctx, s.db, `SELECT DISTINCT application_id FROM `+kind.table()+` WHERE tenant_id = $1
		AND account_id = $2`, tenant, account)
}

// InsertedToken is the id of a token that was inserted.
type InsertedToken struct {
	TenantID id.ID
	ID       id.ID
}

// InsertAccessTokens adds access tokens without refresh tokens in one statement. It leaves
// out tokens whose account's password was changed since StartedAt. The result has the tokens
// that were added; it is filled when the transaction commits.
func (tx *Tx) InsertAccessTokens(_ context.Context, tokens []Token) *[]InsertedToken {
	rows := tokenArraysOf(tokens)
	inserted := new([]InsertedToken)
	pg.QueueReturning(tx, inserted, `INSERT INTO access_tokens AS a
		(tenant_id, id, application_id, account_id, key_id, issued_at, expires_at, organization_id, second_factor)
		SELECT u.tenant_id, u.id, u.application_id, u.account_id, u.key_id, u.issued_at, u.expires_at, u.organization_id,
		u.second_factor
		FROM unnest(@tenant_id::uuid[], @id::uuid[], @application_id::uuid[], @account_id::uuid[], @key_id::text[],
		@issued_at::timestamptz[],
			@expires_at::timestamptz[], @organization_id::uuid[], @started::timestamptz[], @second_factor::boolean[])
			AS u (tenant_id, id, application_id, account_id, key_id, issued_at, expires_at, organization_id, started,
			second_factor)
		WHERE NOT EXISTS
			(SELECT 1 FROM password_changes p WHERE p.tenant_id = u.tenant_id AND p.account_id = u.account_id
			AND p.changed_at >= u.started)
		RETURNING a.tenant_id, a.id`, pg.Named(rows))
	return inserted
}

// tokenArrays has the values of tokens in one array for each column, as a statement with
// unnest takes them.
type tokenArrays struct {
	TenantID, ID, ApplicationID, AccountID, OrganizationID, RefreshID []id.ID

	KeyID                        []string
	IssuedAt, ExpiresAt, Started []time.Time
	SecondFactor                 []bool
}

func tokenArraysOf(tokens []Token) (c tokenArrays) {
	for _, t := range tokens {
		c.TenantID, c.ID, c.ApplicationID = append(c.TenantID, t.TenantID), append(c.ID, t.ID),
			append(c.ApplicationID, t.ApplicationID)
		c.AccountID, c.OrganizationID = append(c.AccountID, t.AccountID), append(c.OrganizationID, t.OrganizationID)
		c.RefreshID, c.KeyID = append(c.RefreshID, t.RefreshID), append(c.KeyID, t.KeyID)
		c.IssuedAt, c.ExpiresAt = append(c.IssuedAt, t.IssuedAt), append(c.ExpiresAt, t.ExpiresAt)
		c.SecondFactor = append(c.SecondFactor, t.SecondFactor)
		c.Started = append(c.Started, t.StartedAt.Truncate(time.Millisecond)) // as in the ids
	}
	return c
}

// InsertTokenPair adds an access token and the refresh token that is issued with it. The
// transaction fails with apierr.NotFound if the account's password was changed since
// StartedAt.
func (tx *Tx) InsertTokenPair(_ context.Context, access, refresh Token) error {
	tx.QueueChange(`WITH login AS (
			SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM password_changes
				WHERE tenant_id = @tenant_id AND account_id = @account_id AND changed_at >= @started)
		), refresh AS (
			INSERT INTO refresh_tokens (tenant_id, id, application_id, account_id, key_id, issued_at, expires_at,
			organization_id,
				second_factor)
			SELECT @tenant_id, @refresh_id, @application_id, @account_id, @key_id, @issued_at, @refresh_expires_at,
			@organization_id,
				@second_factor FROM login
		)
		INSERT INTO access_tokens (tenant_id, id, application_id, account_id, key_id, issued_at, expires_at, refresh_id,
		organization_id,
			second_factor)
		SELECT @tenant_id, @id, @application_id, @account_id, @key_id, @issued_at, @expires_at, @refresh_id, @organization_id,
			@second_factor FROM login`,
		pg.Named(pg.Args{
			"refresh_id": refresh.ID, "refresh_expires_at": refresh.ExpiresAt,
			"started": access.StartedAt.Truncate(time.Millisecond), // as in the ids
		}, access))
	return nil
}

// InsertRefreshedTokens adds access tokens that refreshes issue, in one statement. It leaves
// out tokens whose refresh token was deleted. The result has the tokens that were added; it
// is filled when the transaction commits. The refresh tokens are locked against their
// deletion (FOR KEY SHARE), not against other refreshes: after a revocation no token is
// added, and a revocation that waits for the lock deletes the added token too.
func (tx *Tx) InsertRefreshedTokens(_ context.Context, tokens []Token) *[]InsertedToken {
	rows := tokenArraysOf(tokens)
	inserted := new([]InsertedToken)
	pg.QueueReturning(tx, inserted, `INSERT INTO access_tokens AS a (tenant_id, id, application_id, account_id, key_id,
		refresh_id, issued_at, expires_at, organization_id, second_factor)
		SELECT r.tenant_id, u.id, r.application_id, r.account_id, u.key_id, r.id, u.issued_at, u.expires_at,
		r.organization_id,
			r.second_factor
		FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::timestamptz[], $6::timestamptz[])
			AS u (tenant_id, refresh_id, id, key_id, issued_at, expires_at)
		JOIN refresh_tokens r ON r.tenant_id = u.tenant_id AND r.id = u.refresh_id
		ORDER BY r.tenant_id, r.id FOR KEY SHARE OF r RETURNING a.tenant_id, a.id`,
		rows.TenantID, rows.RefreshID, rows.ID, rows.KeyID, rows.IssuedAt, rows.ExpiresAt)
	return inserted
}

// DeleteToken deletes one token, or returns apierr.NotFound if it has expired or does not
// exist.
func (tx *Tx) DeleteToken(ctx context.Context, kind TokenKind, tenant, token id.ID, now time.Time) error {
	tx.invalidateTokens(kind, tenant, token)
	return pg.MustChange(ctx, tx, `DELETE FROM `+kind.table()+` WHERE tenant_id = $1 AND id = $2 AND expires_at > $3`,
		tenant, token, now)
}

// DeleteTokenPair deletes a refresh token and all access tokens that were issued with it or
// by its refreshes.
func (tx *Tx) DeleteTokenPair(ctx context.Context, tenant, account, refresh id.ID) error {
	tx.invalidateTokens(Refresh, tenant, refresh)
	if _, err := pg.Exec(ctx, tx, `DELETE FROM refresh_tokens WHERE tenant_id = $1 AND id = $2`, tenant,
		refresh); err != nil {
		return err
	}
	deleted, err := pg.Values[id.ID](ctx, tx, `DELETE FROM access_tokens
		WHERE tenant_id = $1 AND account_id = $2 AND refresh_id = $3 RETURNING id`, tenant, account, refresh)
	tx.invalidateTokens(Access, tenant, deleted...)
	return err
}

// DeleteAccountTokens deletes all tokens of accounts.
func (tx *Tx) DeleteAccountTokens(ctx context.Context, tenant id.ID, accounts []id.ID) error {
	for _, kind := range TokenKinds {
		deleted, err := pg.Values[id.ID](ctx, tx, `DELETE FROM `+kind.table()+` WHERE tenant_id = $1 AND account_id = ANY ($2)
			RETURNING id`, tenant, accounts)
		if err != nil {
			return err
		}
		tx.invalidateTokens(kind, tenant, deleted...)
	}
	return nil
}

// DeleteApplicationTokens deletes at most limit tokens of a kind of an application, and
// returns their number.
func (tx *Tx) DeleteApplicationTokens(ctx context.Context, kind TokenKind, tenant, application id.ID,
	limit int) (int64, error) {
	deleted, err := pg.Values[id.ID](ctx, tx, `DELETE FROM `+kind.table()+` WHERE tenant_id = $1 AND id IN
		(SELECT id FROM `+kind.table()+` WHERE tenant_id = $1 AND application_id = $2 LIMIT $3) RETURNING id`,
		tenant, application, limit)
	tx.invalidateTokens(kind, tenant, deleted...)
	return int64(len(deleted)), err
}

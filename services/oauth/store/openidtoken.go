package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// Login is what tokens say of the login that they were issued for.
type Login struct {
	Account      id.ID     `json:"account,omitzero"`
	Organization id.ID     `json:"organization,omitzero"`
	At           time.Time `json:"at,omitzero"`
	ACR          string    `json:"acr,omitempty"`
	AMR          []string  `json:"amr,omitempty"`
	Session      string    `json:"session,omitempty"` // the claim sid
	Nonce        string    `json:"nonce,omitempty"`
	JKT          string    `json:"jkt,omitempty"` // thumbprint of the key that the tokens are bound to (RFC 9449)
	Scopes       []string  `json:"scopes,omitempty"`
	Audience     string    `json:"audience,omitempty"`
	// Claims are those that the authorization request has named (OpenID Connect Core, section 5.5).
	Claims RequestedClaims `json:"claims,omitzero"`
	// Issuer is the issuer at the login, where it has the domain of the hosted pages; empty: it has the address of the
	// deployment.
	Issuer string `json:"issuer,omitempty"`
}

// RequestedClaims are the names of claims that an authorization request asks for.
type RequestedClaims struct {
	IDToken  []string `json:"idToken,omitempty"`
	UserInfo []string `json:"userInfo,omitempty"`
}

// IsZero reports whether there are none.
func (c RequestedClaims) IsZero() bool { return len(c.IDToken) == 0 && len(c.UserInfo) == 0 }

// OpenIDToken is an access token of an OpenID provider.
type OpenIDToken struct {
	TenantID      id.ID
	ID            id.ID
	Digest        []byte // of an opaque token
	ApplicationID id.ID
	ClientID      id.ID
	AccountID     id.ID // zero: of the client itself
	GrantID       id.ID // zero: of none
	Token         TokenContent
	IssuedAt      time.Time
	ExpiresAt     time.Time
}

// TokenContent is what an access token allows.
type TokenContent struct {
	Scopes   []string `json:"scopes"`
	Audience string   `json:"audience"`
	JKT      string   `json:"jkt,omitempty"`
	Actor    string   `json:"actor,omitempty"` // client_id of the client that acts for the subject (RFC 8693, section 4.1)
	Login    Login    `json:"login"`
}

const openIDTokenColumns = `t.tenant_id, t.id, t.digest, t.application_id, t.client_id, t.account_id, t.grant_id,
	t.token, t.issued_at, t.expires_at`

// OpenIDToken returns an access token by its id, or apierr.NotFound.
func (s *Store) OpenIDToken(ctx context.Context, token id.Ref) (OpenIDToken, error) {
	return pg.One[OpenIDToken](ctx, s.db, `SELECT `+openIDTokenColumns+` FROM openid_access_tokens t
		WHERE t.tenant_id = $1 AND t.id = $2`, token.Tenant, token.ID)
}

// OpaqueToken returns an access token by the digest of its text, or apierr.NotFound.
func (s *Store) OpaqueToken(ctx context.Context, tenant id.ID, digest []byte) (OpenIDToken, error) {
	return pg.One[OpenIDToken](ctx, s.db, `SELECT `+openIDTokenColumns+` FROM openid_access_tokens t
		WHERE t.tenant_id = $1 AND t.digest = $2`, tenant, digest)
}

// InsertOpenIDToken adds an access token.
func (tx *Tx) InsertOpenIDToken(t OpenIDToken) {
	tx.Queue(pg.Insert("openid_access_tokens", openIDTokenColumns), pg.Named(t))
}

// ShareOpenIDToken keeps an access token from being deleted until the transaction ends, or returns apierr.NotFound.
func (tx *Tx) ShareOpenIDToken(ctx context.Context, token id.Ref) error {
	_, err := pg.Value[id.ID](ctx, tx, `SELECT id FROM openid_access_tokens WHERE tenant_id = $1 AND id = $2
		FOR KEY SHARE`, token.Tenant, token.ID)
	return err
}

// DeleteOpenIDToken deletes an access token, if it is there.
func (tx *Tx) DeleteOpenIDToken(token id.Ref) {
	tx.Queue(`DELETE FROM openid_access_tokens WHERE tenant_id = $1 AND id = $2`, token.Tenant, token.ID)
}

// OpenIDGrant is what a login has allowed a client. Refresh tokens of one grant are a family.
type OpenIDGrant struct {
	TenantID      id.ID
	ID            id.ID
	ApplicationID id.ID
	ClientID      id.ID
	AccountID     id.ID
	Login         Login
	Generation    int        // of the refresh tokens that were used last; the first ones are of 1
	UsedAt        *time.Time // when the first of that generation was used
	CreatedAt     time.Time
	ExpiresAt     time.Time // of its refresh tokens, at the latest
}

// RefreshToken is a refresh token of a grant.
type RefreshToken struct {
	TenantID   id.ID
	Digest     []byte
	GrantID    id.ID
	Generation int
	UsedAt     *time.Time
	ExpiresAt  time.Time
}

const openIDGrantColumns = `g.tenant_id, g.id, g.application_id, g.client_id, g.account_id, g.login, g.generation,
	g.used_at, g.created_at, g.expires_at`

const refreshTokenColumns = `tenant_id, digest, grant_id, generation, used_at, expires_at`

const refreshTokenQuery = `SELECT ` + refreshTokenColumns + ` FROM openid_refresh_tokens
	WHERE tenant_id = $1 AND digest = $2`

// RefreshToken returns a refresh token by its digest, or apierr.NotFound.
func (s *Store) RefreshToken(ctx context.Context, tenant id.ID, digest []byte) (RefreshToken, error) {
	return pg.One[RefreshToken](ctx, s.db, refreshTokenQuery, tenant, digest)
}

// RefreshToken is Store.RefreshToken in a transaction that has locked the grant.
func (tx *Tx) RefreshToken(ctx context.Context, tenant id.ID, digest []byte) (RefreshToken, error) {
	return pg.One[RefreshToken](ctx, tx, refreshTokenQuery, tenant, digest)
}

// OpenIDGrant returns a grant, or apierr.NotFound for one that has ended.
func (s *Store) OpenIDGrant(ctx context.Context, grant id.Ref) (OpenIDGrant, error) {
	return pg.One[OpenIDGrant](ctx, s.db, `SELECT `+openIDGrantColumns+` FROM openid_grants g
		WHERE g.tenant_id = $1 AND g.id = $2`, grant.Tenant, grant.ID)
}

// LockOpenIDGrant is OpenIDGrant for a grant that the transaction will change.
func (tx *Tx) LockOpenIDGrant(ctx context.Context, grant id.Ref) (OpenIDGrant, error) {
	return pg.One[OpenIDGrant](ctx, tx, `SELECT `+openIDGrantColumns+` FROM openid_grants g
		WHERE g.tenant_id = $1 AND g.id = $2 FOR UPDATE`, grant.Tenant, grant.ID)
}

// InsertOpenIDGrant adds a grant.
func (tx *Tx) InsertOpenIDGrant(g OpenIDGrant) {
	tx.Queue(pg.Insert("openid_grants", openIDGrantColumns), pg.Named(g))
}

// InsertRefreshToken adds a refresh token to a grant.
func (tx *Tx) InsertRefreshToken(t RefreshToken) {
	tx.Queue(pg.Insert("openid_refresh_tokens", refreshTokenColumns), pg.Named(t))
}

// UseRefreshToken records the first use of a generation of a locked grant's refresh tokens.
func (tx *Tx) UseRefreshToken(t RefreshToken, now time.Time) {
	tx.Queue(`UPDATE openid_grants SET generation = $3, used_at = $4 WHERE tenant_id = $1 AND id = $2`, t.TenantID,
		t.GrantID, t.Generation, now)
	tx.Queue(`UPDATE openid_refresh_tokens SET used_at = $3 WHERE tenant_id = $1 AND digest = $2`, t.TenantID, t.Digest,
		now)
}

// ExtendRefreshToken moves the end of a refresh token that is kept.
func (tx *Tx) ExtendRefreshToken(t RefreshToken, expires time.Time) {
	tx.Queue(`UPDATE openid_refresh_tokens SET expires_at = $3 WHERE tenant_id = $1 AND digest = $2`, t.TenantID,
		t.Digest, expires)
}

// EndOpenIDGrant deletes a grant with all its tokens.
func (tx *Tx) EndOpenIDGrant(grant id.Ref) {
	tx.Queue(`DELETE FROM openid_grants WHERE tenant_id = $1 AND id = $2`, grant.Tenant, grant.ID)
	tx.Queue(`DELETE FROM openid_refresh_tokens WHERE tenant_id = $1 AND grant_id = $2`, grant.Tenant, grant.ID)
	tx.Queue(`DELETE FROM openid_access_tokens WHERE tenant_id = $1 AND grant_id = $2`, grant.Tenant, grant.ID)
}

// EndAccountGrants deletes the grants and the tokens of accounts, those of logins until before alone; nil: all.
func (tx *Tx) EndAccountGrants(tenant id.ID, accounts []id.ID, before *time.Time) {
	tx.Queue(`WITH ended AS (
			DELETE FROM openid_grants WHERE tenant_id = $1 AND account_id = ANY ($2)
				AND ($3::timestamptz IS NULL OR created_at <= $3)
			RETURNING id
		)
		DELETE FROM openid_refresh_tokens r USING ended WHERE r.tenant_id = $1 AND r.grant_id = ended.id`, tenant, accounts,
		before)
	tx.Queue(`DELETE FROM openid_access_tokens WHERE tenant_id = $1 AND account_id = ANY ($2)
		AND ($3::timestamptz IS NULL OR issued_at <= $3)`, tenant, accounts, before)
}

// LoginsOf names logins of an account: those in sessions, or for a client.
type LoginsOf struct {
	Tenant      id.ID
	Account     id.ID
	Sessions    []string
	Client      id.ID
	KeepOffline bool // not the tokens with the scope offline_access
}

// EndLogins deletes the grants, the tokens, the codes and the devices of logins. No code survives its session: its client
// has no token yet that offline_access could keep.
func (tx *Tx) EndLogins(of LoginsOf) {
	const owner = `tenant_id = @tenant AND account_id = @account`
	named := func(login string) string {
		return ` AND (` + login + ` ->> 'session' = ANY (@sessions) OR client_id = @client)`
	}
	online := func(login string) string {
		return named(login) + ` AND NOT (@keep_offline AND coalesce(` + login + ` -> 'scopes' ? 'offline_access', false))`
	}
	args := pg.Named(of)
	tx.Queue(`DELETE FROM openid_codes WHERE `+owner+named(`(request -> 'login')`), args)
	tx.Queue(`DELETE FROM openid_devices WHERE `+owner+named(`login`), args)
	tx.Queue(`WITH ended AS (DELETE FROM openid_grants WHERE `+owner+online(`login`)+` RETURNING id)
		DELETE FROM openid_refresh_tokens r USING ended WHERE r.tenant_id = @tenant AND r.grant_id = ended.id`, args)
	tx.Queue(`DELETE FROM openid_access_tokens WHERE `+owner+online(`(token -> 'login')`), args)
}

// Code is an authorization code.
type Code struct {
	TenantID      id.ID
	Digest        []byte
	ApplicationID id.ID
	ClientID      id.ID
	AccountID     id.ID
	Request       CodeRequest
	GrantID       id.ID // of the grant that its first use makes; zero: it was not used
	Replayed      bool  // it was used again
	CreatedAt     time.Time
	ExpiresAt     time.Time
}

// CodeRequest is what an authorization request has asked for, and what its login has found.
type CodeRequest struct {
	RedirectURI         string `json:"redirectUri"`
	RedirectURIRequired bool   `json:"redirectUriRequired,omitempty"` // the request named it
	CodeChallenge       string `json:"codeChallenge,omitempty"`       // S256
	Login               Login  `json:"login"`
}

const codeColumns = `c.tenant_id, c.digest, c.application_id, c.client_id, c.account_id, c.request, c.grant_id,
	c.replayed, c.created_at, c.expires_at`

// InsertCode adds an authorization code.
func (tx *Tx) InsertCode(c Code) {
	tx.Queue(pg.Insert("openid_codes", codeColumns), pg.Named(c))
}

// LockCode reads and locks an authorization code, or returns apierr.NotFound.
func (tx *Tx) LockCode(ctx context.Context, tenant id.ID, digest []byte) (Code, error) {
	return pg.One[Code](ctx, tx, `SELECT `+codeColumns+` FROM openid_codes c WHERE c.tenant_id = $1 AND c.digest = $2
		FOR UPDATE`, tenant, digest)
}

// UseCode records the first use of a locked code, and the grant that it is to make, or that it was used again.
func (tx *Tx) UseCode(c Code) {
	tx.Queue(`UPDATE openid_codes SET grant_id = $3, replayed = $4 WHERE tenant_id = $1 AND digest = $2`, c.TenantID,
		c.Digest, c.GrantID, c.Replayed)
}

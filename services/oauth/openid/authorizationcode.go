package openid

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/relyingparty"
	"github.com/doorward/doorward/services/oauth/store"
)

// maxCodeAge is the longest lifetime of a code.
const maxCodeAge = 10 * time.Minute

// errCode refuses an authorization code without telling which check has failed.
var errCode = refuse("invalid_grant",
	"the code is unknown, used or expired, or its client, redirect_uri, code_verifier or key is another one")

// IssueCode stores an authorization code for a login that is complete. What the request asks for is checked again: the
// client and the provider may have changed since.
func (s *Service) IssueCode(ctx context.Context, in oauthapi.IssueCode) (oauthapi.IssuedCode, error) {
	i, err := s.issuer(ctx, in.Application)
	if err != nil {
		return oauthapi.IssuedCode{}, err
	}
	client, err := s.findClient(ctx, i, in.ClientID)
	switch {
	case errors.Is(err, apierr.Unauthorized) || err == nil && i.app.TenantID != in.Tenant:
		return oauthapi.IssuedCode{}, apierr.NotFound
	case err != nil:
		return oauthapi.IssuedCode{}, err
	}
	login, err := i.codeLogin(client, in)
	if err != nil {
		return oauthapi.IssuedCode{}, err
	}
	ttl, err := field.ParseDuration(i.provider.Settings.AuthorizationCodeTTL)
	if err != nil {
		return oauthapi.IssuedCode{}, err
	}
	now, code := s.Now(), secure.Token(relyingparty.SecretLength)
	c := store.Code{
		TenantID: i.app.TenantID, Digest: secure.Digest(code), ApplicationID: i.app.ID, ClientID: client.ID,
		AccountID: in.Account, CreatedAt: now, ExpiresAt: now.Add(ttl),
		Request: store.CodeRequest{
			RedirectURI: in.RedirectURI, RedirectURIRequired: in.RedirectURINamed, CodeChallenge: in.CodeChallenge,
			Login: login,
		},
	}
	err = s.Store.Tx(ctx, func(tx *store.Tx) error {
		if err := checkSession(ctx, tx, i, in.Login); err != nil {
			return err
		}
		if in.Pushed != nil {
			if err := tx.UsePushedRequest(ctx, i.app.TenantID, client.ID, in.Pushed); err != nil {
				return usedAs(err)
			}
		}
		tx.InsertCode(c)
		return s.RecordLogin(ctx, tx, client)
	})
	return oauthapi.IssuedCode{Code: code}, err
}

// checkSession refuses a login whose session has ended meanwhile.
func checkSession(ctx context.Context, tx *store.Tx, i issuer, login oauthapi.Login) error {
	if login.Session == "" {
		return nil
	}
	ended, err := tx.HasEnded(ctx, i.app.TenantID, login.Session)
	if err == nil && ended {
		err = refuse("login_required", "the session of the login has ended")
	}
	return err
}

// codeLogin checks what a code is asked for, and returns what its tokens are made of.
func (i issuer) codeLogin(client store.OpenIDClient, in oauthapi.IssueCode) (store.Login, error) {
	v := client.Settings
	if err := checkGrantType(client, relyingparty.GrantCode); err != nil {
		return store.Login{}, err
	}
	switch {
	case !relyingparty.MatchesRedirectURI(v, in.RedirectURI):
		return store.Login{}, refuse("invalid_request", "the redirect URI is not registered")
	case in.CodeChallenge == "" && v.RequirePKCE || in.CodeChallenge != "" && !isChallenge(in.CodeChallenge):
		return store.Login{}, refuse("invalid_request", "%s (S256)", errChallenge)
	case v.RequirePushedAuthorizationRequests && in.Pushed == nil:
		return store.Login{}, refuse("invalid_request", "the client must push its authorization requests (RFC 9126)")
	case in.HintSubject != "" && i.subject(client, in.Account) != in.HintSubject:
		return store.Login{}, refuse("login_required", "the request asks for another account than has logged in")
	}
	resource, err := i.target(in.Resource)
	if err != nil {
		return store.Login{}, err
	}
	scopes, err := i.allowedScopes(client, joinScopes(in.Scopes), resource, false)
	if err != nil {
		return store.Login{}, err
	}
	claims, err := i.kept(client, in.Claims, scopes)
	login := i.loginOf(in.Login)
	login.Nonce, login.JKT, login.Scopes, login.Audience, login.Claims = in.Nonce, in.DPoPKey, scopes, resource, claims
	return login, err
}

// loginOf returns a login of the hosted pages as it is stored.
func (i issuer) loginOf(in oauthapi.Login) store.Login {
	return store.Login{
		Account: in.Account, Organization: in.Organization, At: in.AuthenticatedAt, ACR: in.ACR, AMR: in.AMR,
		Session: in.Session, Issuer: i.siteURL,
	}
}

// isChallenge reports whether a text is a code challenge of the method S256 (RFC 7636, section 4.2).
func isChallenge(text string) bool {
	sum, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return err == nil && len(sum) == sha256.Size
}

// codeGrant is the grant of an authorization code (RFC 6749, section 4.1.3). A code is spent by its first use, also by
// a wrong one; a second use ends the tokens of the first.
func (s *Service) codeGrant(ctx context.Context, r request) (issue, error) {
	c, err := s.spendCode(ctx, r)
	if err != nil {
		return issue{}, err
	}
	login := c.Request.Login
	verifier := r.Form.text("code_verifier")
	redirect := r.Form.text("redirect_uri")
	switch {
	case c.ClientID != r.client.ID || c.ApplicationID != r.app.ID || !r.issued(login) || !r.now.Before(c.ExpiresAt),
		redirect != c.Request.RedirectURI && (c.Request.RedirectURIRequired || redirect != ""),
		!matchesChallenge(c.Request.CodeChallenge, verifier):
		return issue{}, errCode
	case login.JKT != "" && login.JKT != r.jkt:
		return issue{}, refuse("invalid_dpop_proof", "the code is bound to another key")
	}
	login.JKT = r.jkt
	if resource := r.Form.text("resource"); resource != "" && resource != login.Audience {
		return issue{}, refuse("invalid_target", "the code is for another resource")
	}
	out, save, err := s.issueLogin(ctx, r, login, c.GrantID, c.CreatedAt)
	if err != nil {
		return issue{}, err
	}
	out.save = func(ctx context.Context, tx *store.Tx) error {
		now, err := tx.LockCode(ctx, c.TenantID, c.Digest)
		if errors.Is(err, apierr.NotFound) || err == nil && now.Replayed {
			return errCode
		}
		if err != nil {
			return err
		}
		return save(tx)
	}
	return out, nil
}

// issueLogin returns what a login is issued for the first time, under a grant of its own, which save inserts.
func (s *Service) issueLogin(ctx context.Context, r request, login store.Login, grant id.ID, at time.Time) (out issue,
	save func(tx *store.Tx) error, err error) {
	out = issue{login: login, scopes: slices.Clone(login.Scopes), audience: login.Audience, grant: grant, idToken: true}
	ttl, err := s.refreshTTL(ctx, r)
	if err != nil {
		return out, nil, err
	}
	idle, _, err := s.refreshLifetimes(r)
	if err != nil {
		return out, nil, err
	}
	g := store.OpenIDGrant{
		TenantID: r.app.TenantID, ID: grant, ApplicationID: r.app.ID, ClientID: r.client.ID, AccountID: login.Account,
		Login: login, CreatedAt: at, ExpiresAt: r.now.Add(max(ttl, maxCodeAge)),
	}
	if ttl > 0 && s.givesRefreshToken(r, login.Scopes) {
		out.refresh = secure.Token(relyingparty.SecretLength)
	}
	if r.client.Settings.TokenEndpointAuthMethod != relyingparty.AuthNone {
		g.Login.JKT = "" // a confidential client proves itself at a refresh (RFC 9449, section 5)
	}
	return out, func(tx *store.Tx) error {
		tx.InsertOpenIDGrant(g)
		if out.refresh != "" {
			tx.InsertRefreshToken(store.RefreshToken{
				TenantID: g.TenantID, Digest: secure.Digest(out.refresh), GrantID: g.ID, Generation: 1,
				ExpiresAt: earlier(r.now.Add(idle), g.ExpiresAt),
			})
		}
		return s.RecordLogin(ctx, tx, r.client)
	}, nil
}

// givesRefreshToken reports whether the answer to a login has a refresh token. A web client must ask for it by
// offline_access (OpenID Connect Core, section 11).
func (s *Service) givesRefreshToken(r request, scopes []string) bool {
	v := r.client.Settings
	return slices.Contains(v.GrantTypes, relyingparty.GrantRefresh) && (v.ApplicationType != relyingparty.TypeWeb || slices.Contains(scopes,
		scopeOffline))
}

// spendCode marks a code as used, whoever sends it, and returns it. A code that was used before ends the grant of its
// first use, also where the row of the code was deleted since: the id of the grant is part of the code's digest.
func (s *Service) spendCode(ctx context.Context, r request) (c store.Code, err error) {
	digest := secure.Digest(r.Form["code"])
	grant := id.ID(digest[:len(id.ID{})])
	again := false
	err = s.Store.Tx(ctx, func(tx *store.Tx) error {
		c, err = tx.LockCode(ctx, r.app.TenantID, digest)
		again = errors.Is(err, apierr.NotFound) || err == nil && !c.GrantID.IsZero()
		switch {
		case again:
			tx.EndOpenIDGrant(id.Ref{Tenant: r.app.TenantID, ID: grant})
		case err != nil:
			return err
		}
		c.Replayed, c.GrantID = again, grant
		if c.Digest != nil {
			tx.UseCode(c)
		}
		return nil
	})
	if err == nil && again {
		err = errCode
	}
	return c, err
}

// matchesChallenge compares a code verifier with the challenge of the request (RFC 7636, section 4.6). A verifier
// without a challenge is refused too (PKCE downgrade; RFC 9700, section 4.8.2).
func matchesChallenge(challenge, verifier string) bool {
	if challenge == "" {
		return verifier == ""
	}
	if len(verifier) < 43 || len(verifier) > 128 || strings.Trim(verifier, verifierCharacters) != "" {
		return false
	}
	sum := sha256.Sum256([]byte(verifier))
	return subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(challenge)) == 1
}

const verifierCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"

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
	"github.com/doorward/doorward/services/oauth/store"
)

// maxCodeAge is the longest lifetime of a code.
const maxCodeAge = 10 * time.Minute

// errCode refuses an authorization code without telling which check has failed.
var errCode = refuse("invalid_grant",
	"the code is unknown, used or expired, or its client, redirect_uri, code_verifier or key is another one")

// IssueCode stores an authorization code for a login that the hosted pages have completed: they have checked the
// request, and the user's consent. What the code may be exchanged for is checked again here: it returns
// apierr.NotFound for an application or a client that is not there or disabled, and apierr.BadRequest, with the error
// of RFC 6749 in the field error, for a redirect URI that is not registered, a missing code challenge, and scopes that
// the client may not have.
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
	case !slices.Contains(client.Settings.GrantTypes, grantCode):
		return oauthapi.IssuedCode{}, refuse("unauthorized_client", "the client does not have the grant type %s", grantCode)
	case !matchesRedirectURI(client.Settings, in.RedirectURI):
		return oauthapi.IssuedCode{}, refuse("invalid_request", "the redirect URI is not registered")
	case in.CodeChallenge == "" && client.Settings.RequirePKCE || in.CodeChallenge != "" && !isChallenge(in.CodeChallenge):
		return oauthapi.IssuedCode{}, refuse("invalid_request",
			"code_challenge must be the SHA-256 of the verifier in base64url (S256)")
	}
	scopes, err := i.allowedScopes(client, joinScopes(in.Scopes), in.Resource, false)
	if err != nil {
		return oauthapi.IssuedCode{}, err
	}
	ttl, err := field.ParseDuration(i.provider.Settings.AuthorizationCodeTTL)
	if err != nil {
		return oauthapi.IssuedCode{}, err
	}
	now, code := s.Now(), secure.Token(clientSecretLength)
	c := store.Code{
		TenantID: i.app.TenantID, Digest: secure.Digest(code), ApplicationID: i.app.ID, ClientID: client.ID,
		AccountID: in.Account,
		CreatedAt: now, ExpiresAt: now.Add(ttl),
		Request: store.CodeRequest{
			RedirectURI: in.RedirectURI, RedirectURIRequired: in.RedirectURINamed, CodeChallenge: in.CodeChallenge,
			Login: store.Login{
				Account: in.Account, Organization: in.Organization, At: in.AuthenticatedAt, ACR: in.ACR, AMR: in.AMR,
				Session: in.Session,
				Nonce:   in.Nonce, JKT: in.DPoPKey, Scopes: scopes, Audience: in.Resource,
			},
		},
	}
	err = s.Store.Tx(ctx, func(tx *store.Tx) error {
		tx.InsertCode(c)
		return nil
	})
	return oauthapi.IssuedCode{Code: code}, err
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
	case c.ClientID != r.client.ID || c.ApplicationID != r.app.ID || !r.now.Before(c.ExpiresAt),
		redirect != c.Request.RedirectURI && (c.Request.RedirectURIRequired || redirect != ""),
		!matchesChallenge(c.Request.CodeChallenge, verifier):
		return issue{}, errCode
	case login.JKT != "" && login.JKT != r.jkt:
		return issue{}, refuse("invalid_dpop_proof", "the code is bound to another key")
	}
	login.JKT = r.jkt
	out := issue{login: login, scopes: slices.Clone(login.Scopes), audience: login.Audience, grant: c.GrantID,
		idToken: true}
	if resource := r.Form.text("resource"); resource != "" && resource != login.Audience {
		return issue{}, refuse("invalid_target", "the code is for another resource")
	}
	ttl, err := s.refreshTTL(ctx, r)
	if err != nil {
		return issue{}, err
	}
	idle, _, err := s.refreshLifetimes(r)
	if err != nil {
		return issue{}, err
	}
	g := store.OpenIDGrant{
		TenantID: r.app.TenantID, ID: c.GrantID, ApplicationID: r.app.ID, ClientID: r.client.ID, AccountID: login.Account,
		Login:     login,
		CreatedAt: c.CreatedAt, ExpiresAt: r.now.Add(max(ttl, maxCodeAge)),
	}
	if ttl > 0 && s.givesRefreshToken(r, login.Scopes) {
		out.refresh = secure.Token(clientSecretLength)
	}
	if r.client.Settings.TokenEndpointAuthMethod != authNone {
		g.Login.JKT = "" // a confidential client proves itself at a refresh (RFC 9449, section 5)
	}
	out.save = func(ctx context.Context, tx *store.Tx) error {
		now, err := tx.LockCode(ctx, c.TenantID, c.Digest)
		if errors.Is(err, apierr.NotFound) || err == nil && now.Replayed {
			return errCode
		}
		if err != nil {
			return err
		}
		tx.InsertOpenIDGrant(g)
		if out.refresh != "" {
			tx.InsertRefreshToken(store.RefreshToken{
				TenantID: g.TenantID, Digest: secure.Digest(out.refresh), GrantID: g.ID, Generation: 1,
				ExpiresAt: earlier(r.now.Add(idle), g.ExpiresAt),
			})
		}
		return nil
	}
	return out, nil
}

// givesRefreshToken reports whether the answer to a code has a refresh token. A web client must ask for it by
// offline_access (OpenID Connect Core, section 11).
func (s *Service) givesRefreshToken(r request, scopes []string) bool {
	v := r.client.Settings
	return slices.Contains(v.GrantTypes, grantRefresh) && (v.ApplicationType != typeWeb || slices.Contains(scopes,
		scopeOffline))
}

// spendCode marks a code as used, whoever sends it, and returns it. A code that was used before ends the grant of its
// first use.
func (s *Service) spendCode(ctx context.Context, r request) (c store.Code, err error) {
	replayed := false
	err = s.Store.Tx(ctx, func(tx *store.Tx) error {
		if c, err = tx.LockCode(ctx, r.app.TenantID, secure.Digest(r.Form["code"])); err != nil {
			return err
		}
		if replayed = !c.GrantID.IsZero(); replayed {
			c.Replayed = true
			tx.EndOpenIDGrant(id.Ref{Tenant: c.TenantID, ID: c.GrantID})
		} else {
			c.GrantID = id.New(s.Now())
		}
		tx.UseCode(c)
		return nil
	})
	if errors.Is(err, apierr.NotFound) || err == nil && replayed {
		return c, errCode
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

package openid

import (
	"context"
	"errors"
	"slices"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/relyingparty"
	"github.com/doorward/doorward/services/oauth/signing"
	"github.com/doorward/doorward/services/oauth/store"
)

// errAccessToken refuses an access token without telling which check has failed.
var errAccessToken = refuse("invalid_token",
	"the access token is unknown, expired or revoked, or for another provider or resource")

// accessToken returns an access token of a provider that may be used now, with its client and its account; the
// account of a token of a client itself is the zero one. The text is a JWT that a published key of the tenant has
// signed as an access token for this issuer, or that of an opaque token. It returns errAccessToken for any other.
func (s *Service) accessToken(ctx context.Context, i issuer, text secure.Secret) (t store.OpenIDToken,
	client store.OpenIDClient, account directoryapi.Account, err error) {
	if t, err = s.findToken(ctx, i, text); err != nil {
		return t, client, account, err
	}
	client, err = s.findClient(ctx, i, t.ClientID.String())
	if errors.Is(err, apierr.Unauthorized) || err == nil && (t.ApplicationID != i.app.ID ||
		!i.issued(t.Token.Login) || !s.Now().Before(t.ExpiresAt)) {
		return t, client, account, errAccessToken
	}
	if err != nil || t.AccountID.IsZero() {
		return t, client, account, err
	}
	account, err = s.account(ctx, i.ref(), t.Token.Login)
	if apierr.IsRefusal(err) {
		return t, client, account, errAccessToken
	}
	return t, client, account, err
}

// findToken returns the stored access token of a text.
func (s *Service) findToken(ctx context.Context, i issuer, text secure.Secret) (t store.OpenIDToken, err error) {
	if len(text) == relyingparty.SecretLength {
		t, err = s.Store.OpaqueToken(ctx, i.app.TenantID, secure.Digest(text))
	} else {
		header, claims, wrong := s.Verify(ctx, i.app.TenantID, text)
		if errors.Is(wrong, secure.ErrToken) || wrong == nil && (header["typ"] != TypeAccessToken || claims["iss"] != i.url) {
			return t, errAccessToken
		}
		if wrong != nil {
			return t, wrong
		}
		jti, _ := claims["jti"].(string)
		token, malformed := id.Parse(jti)
		if malformed != nil {
			return t, errAccessToken
		}
		t, err = s.Store.OpenIDToken(ctx, id.Ref{Tenant: i.app.TenantID, ID: token})
	}
	if errors.Is(err, apierr.NotFound) {
		return t, errAccessToken
	}
	return t, err
}

// Introspect is token introspection (RFC 7662). A client sees its own tokens, and those whose audience is one of its
// resources; any other token is not active, as one that is not there.
func (s *Service) Introspect(ctx context.Context, in Call) (map[string]any, error) {
	i, err := s.issuer(ctx, in.Application)
	if err != nil {
		return nil, err
	}
	return s.introspect(ctx, i, in)
}

func (s *Service) introspect(ctx context.Context, i issuer, in Call) (map[string]any, error) {
	caller, all, err := s.authenticateIntrospection(ctx, i, in)
	if err != nil {
		return nil, err
	}
	if in.Form["token"] == "" {
		return nil, refuse("invalid_request", "token is missing")
	}
	inactive := map[string]any{"active": false}
	t, client, account, err := s.accessToken(ctx, i, in.Form["token"])
	if errors.Is(err, errAccessToken) {
		return s.introspectRefresh(ctx, i, caller, in.Form["token"])
	}
	if err != nil {
		return nil, err
	}
	if !all && t.ClientID != caller.ID && !slices.Contains(caller.Settings.Resources, t.Token.Audience) {
		return inactive, nil
	}
	out := s.tokenClaims(i, client, t)
	out["active"], out["token_type"] = true, "Bearer"
	if t.Token.JKT != "" {
		out["token_type"] = "DPoP"
	}
	if !t.AccountID.IsZero() {
		out["username"] = account.Username
		err = s.accountClaims(ctx, i, out, account, t.Token.Login, t.Token.Scopes, nil, inAccessToken)
	}
	return out, err
}

// SignedIntrospection is Introspect as a JWT for the caller (RFC 9701, section 5).
func (s *Service) SignedIntrospection(ctx context.Context, in Call) (secure.Secret, error) {
	i, err := s.issuer(ctx, in.Application)
	if err != nil {
		return "", err
	}
	found, err := s.introspect(ctx, i, in)
	if err != nil {
		return "", err
	}
	_, caller, err := s.givenMethod(in)
	if err != nil {
		return "", err
	}
	now := s.Now()
	claims := secure.Claims{"iss": i.url, "aud": caller, "iat": now.Unix(), "token_introspection": found}
	return s.Sign(ctx, i.app.TenantID, i.provider.Settings.SigningAlgorithm, map[string]any{"typ": TypeIntrospection},
		claims, now.Add(signing.KeySetMaxAge))
}

// TypeIntrospection is the typ of a signed introspection, and with "application/" before it its media type.
const TypeIntrospection = "token-introspection+jwt"

// introspectRefresh says whether a refresh token of the caller is active.
func (s *Service) introspectRefresh(ctx context.Context, i issuer, caller store.OpenIDClient,
	text secure.Secret) (map[string]any, error) {
	inactive := map[string]any{"active": false}
	t, g, err := s.findRefreshToken(ctx, i, caller, text)
	if errors.Is(err, apierr.NotFound) {
		return inactive, nil
	}
	if err != nil {
		return nil, err
	}
	now := s.Now()
	if t.Generation <= g.Generation && caller.Settings.RefreshTokenRotation == relyingparty.Rotate ||
		!i.issued(g.Login) || !now.Before(t.ExpiresAt) || !now.Before(g.ExpiresAt) {
		return inactive, nil
	}
	err = s.checkAccess(ctx, i.ref(), g.Login)
	if apierr.IsRefusal(err) {
		return inactive, nil
	}
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"active": true, "iss": i.url, "client_id": caller.ClientID, "sub": i.subject(caller, g.AccountID),
		"exp": t.ExpiresAt.Unix(), "scope": joinScopes(g.Login.Scopes),
	}, nil
}

// findRefreshToken returns a refresh token of a client with its grant, or apierr.NotFound.
func (s *Service) findRefreshToken(ctx context.Context, i issuer, client store.OpenIDClient,
	text secure.Secret) (t store.RefreshToken, g store.OpenIDGrant, err error) {
	if t, err = s.Store.RefreshToken(ctx, i.app.TenantID, secure.Digest(text)); err != nil {
		return t, g, err
	}
	g, err = s.Store.OpenIDGrant(ctx, id.Ref{Tenant: t.TenantID, ID: t.GrantID})
	if err == nil && (g.ClientID != client.ID || g.ApplicationID != i.app.ID) {
		err = apierr.NotFound
	}
	return t, g, err
}

// authenticateIntrospection authenticates a client that has an authentication, or an API key of the tenant, which
// sees all access tokens.
func (s *Service) authenticateIntrospection(ctx context.Context, i issuer, in Call) (client store.OpenIDClient,
	all bool, err error) {
	if in.Basic != nil && !id.HasShape(in.Basic.ID) {
		key, err := s.Authenticate(ctx, oauthapi.Authenticate{ID: in.Basic.ID, Secret: in.Basic.Secret})
		if errors.Is(err, apierr.Unauthorized) || err == nil && key.TenantID != i.app.TenantID {
			err = errClient
		}
		if err == nil {
			in.authenticated(id.Ref{Tenant: key.TenantID})
		}
		return client, err == nil, err
	}
	client, err = s.authenticateClient(ctx, i, in)
	if err == nil && client.Settings.TokenEndpointAuthMethod == relyingparty.AuthNone {
		err = errClient
	}
	return client, false, err
}

// Revoke is token revocation (RFC 7009). A refresh token ends with its family; an access token alone. A token that is
// unknown or of another client changes nothing and is no error.
func (s *Service) Revoke(ctx context.Context, in Call) error {
	i, err := s.issuer(ctx, in.Application)
	if err != nil {
		return err
	}
	client, err := s.authenticateClient(ctx, i, in)
	if err != nil {
		return err
	}
	if in.Form["token"] == "" {
		return refuse("invalid_request", "token is missing")
	}
	_, g, err := s.findRefreshToken(ctx, i, client, in.Form["token"])
	if err == nil {
		return s.Store.Tx(ctx, func(tx *store.Tx) error {
			tx.EndOpenIDGrant(id.Ref{Tenant: g.TenantID, ID: g.ID})
			return nil
		})
	}
	if !errors.Is(err, apierr.NotFound) {
		return err
	}
	t, err := s.findToken(ctx, i, in.Form["token"])
	if errors.Is(err, errAccessToken) || err == nil && (t.ClientID != client.ID || t.ApplicationID != i.app.ID) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.Store.Tx(ctx, func(tx *store.Tx) error {
		tx.DeleteOpenIDToken(id.Ref{Tenant: t.TenantID, ID: t.ID})
		return nil
	})
}

// UserInfo is what the UserInfo endpoint answers: claims, and their JWT where the client wants it signed.
type UserInfo struct {
	Claims map[string]any
	Signed secure.Secret
}

// UserInfo returns the claims of the account of an access token with the scope openid (OpenID Connect Core, section
// 5.3). A token for a resource is not good here, and one that is bound to a key needs its proof.
func (s *Service) UserInfo(ctx context.Context, in Call) (UserInfo, error) {
	i, err := s.issuer(ctx, in.Application)
	if err != nil {
		return UserInfo{}, err
	}
	t, client, account, err := s.accessToken(ctx, i, in.Bearer)
	if err != nil {
		return UserInfo{}, err
	}
	in.authenticated(id.Ref{Tenant: client.TenantID, ID: client.ID})
	if err := s.checkPossession(ctx, i, in, t); err != nil {
		return UserInfo{}, err
	}
	switch {
	case t.Token.Audience != i.url:
		return UserInfo{}, errAccessToken
	case t.AccountID.IsZero() || !slices.Contains(t.Token.Scopes, scopeOpenID):
		return UserInfo{}, apierr.Forbidden.Because("the access token does not have the scope openid").With("error",
			"insufficient_scope")
	}
	out := UserInfo{Claims: map[string]any{"sub": i.subject(client, account.ID)}}
	if err := s.accountClaims(ctx, i, out.Claims, account, t.Token.Login, t.Token.Scopes,
		t.Token.Login.Claims.UserInfo, inUserInfo); err != nil {
		return UserInfo{}, err
	}
	if client.Settings.UserinfoSignedResponseAlg == nil {
		return out, nil
	}
	out.Claims["iss"], out.Claims["aud"] = i.url, client.ClientID
	now := s.Now()
	out.Claims["iat"] = now.Unix()
	out.Signed, err = s.Sign(ctx, t.TenantID, *client.Settings.UserinfoSignedResponseAlg, map[string]any{"typ": "JWT"},
		out.Claims, now.Add(signing.KeySetMaxAge))
	return out, err
}

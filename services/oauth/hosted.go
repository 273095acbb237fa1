package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/store"
)

// The methods below are called by the hosted login and the Client API, for browsers without an API
// key: JWTs of requests, signed assertions, the endpoints of tokens, and the API keys of an account.

// VerifyJWT verifies a JWT that was signed with an administrator's API key of any tenant, for
// the requests to the hosted login. The tenant is that of the key.
func (s *Service) VerifyJWT(ctx context.Context, in oauthapi.VerifyJWT) (oauthapi.VerifiedJWT, error) {
	var key store.APIKey
	var lookupErr error
	header, claims, err := secure.ParseJWT(in.Token.Reveal(), func(header map[string]any, claims secure.Claims) (secure.Secret, error) {
		kid, hasKid := header["kid"]
		if !hasKid {
			kid = claims["iss"]
		}
		keyID, _ := kid.(string) // a kid that is no text names no key, whatever iss says
		if !isAPIKeyID(keyID) {
			return "", apierr.NotFound
		}
		if key, lookupErr = s.keyOrDummy(ctx, keyID); lookupErr == nil && key.ID != keyID {
			lookupErr = apierr.NotFound
		}
		return key.Secret, lookupErr
	})
	if lookupErr != nil && !errors.Is(lookupErr, apierr.NotFound) {
		return oauthapi.VerifiedJWT{}, lookupErr
	}
	if _, critical := header["crit"]; err != nil || critical {
		return oauthapi.VerifiedJWT{}, apierr.TokenSignature.Because("the token is not a JWT that an API key has signed with HS256")
	}
	if err := s.checkAssertionSigner(ctx, key); err != nil {
		return oauthapi.VerifiedJWT{}, err
	}
	out := oauthapi.VerifiedJWT{Tenant: key.TenantID, KeyID: key.ID}
	if out.Header, err = json.Marshal(header); err == nil {
		out.Claims, err = json.Marshal(claims)
	}
	return out, err
}

// SignAssertion signs an assertion about a login with an API key of the tenant. The hosted
// login hands it to the application, which exchanges it for tokens (grant_assertion.go).
func (s *Service) SignAssertion(ctx context.Context, in oauthapi.SignAssertion) (oauthapi.SignedAssertion, error) {
	var members map[string]json.RawMessage // not decoded, so that a large number does not change
	if err := json.Unmarshal(in.Claims, &members); err != nil {
		return oauthapi.SignedAssertion{}, apierr.Format.Because("claims must be a JSON object: %v", err)
	}
	claims := secure.Claims{}
	for name, value := range members {
		claims[name] = value
	}
	if in.KeyID == "" {
		keyID, err := s.applicationSigningKey(ctx, in.Tenant, in.Application)
		if err != nil {
			return oauthapi.SignedAssertion{}, err
		}
		in.KeyID = keyID
	}
	key, err := s.signingKey(ctx, in.Tenant, in.KeyID)
	if err != nil {
		return oauthapi.SignedAssertion{}, err
	}
	if key.Status != directoryapi.Enabled {
		return oauthapi.SignedAssertion{}, apierr.NotFound.Because("the API key %s is not enabled", key.ID)
	}
	if string(members["aud"]) == `""` {
		claims["aud"] = key.ID
	}
	header := map[string]any{"typ": "JWT", "kid": key.ID, "stt": "assertion"}
	if _, isError := claims["err"]; isError {
		delete(header, "stt") // an error cannot be exchanged for tokens
	}
	text, err := secure.SignJWT(header, claims, key.Secret)
	return oauthapi.SignedAssertion{Token: secure.Secret(text), KeyID: key.ID}, err
}

// applicationSigningKey returns the id of the API key that signs the tokens of an
// application's Client API and its assertions (HS256): the signingApiKey of the web
// config, by which the key is rotated. Where that is missing, disabled, deleted or of an
// account that is no longer an administrator, it is the oldest enabled API key of an
// administrator (docs/interface/client-api.md#web-config). Without any it returns
// apierr.NotFound.
func (s *Service) applicationSigningKey(ctx context.Context, tenant, application id.ID) (string, error) {
	config, err := s.store.WebConfig(ctx, tenant, application)
	if err != nil && !errors.Is(err, apierr.NotFound) {
		return "", err
	}
	if errors.Is(err, apierr.NotFound) {
		app, err := s.peers.Application.Application(ctx, directoryapi.Ref{Tenant: tenant, ID: application})
		if err != nil {
			return "", err
		}
		config = defaultWebConfig(app)
	}
	if config.SigningKeyID != "" {
		key, err := s.signingKey(ctx, tenant, config.SigningKeyID)
		if err == nil {
			err = s.checkAssertionSigner(ctx, key)
		}
		switch {
		case err == nil:
			return key.ID, nil
		case !errors.Is(err, apierr.NotFound) && !errors.Is(err, apierr.TokenSignature):
			return "", err
		}
	}
	keys, err := s.store.OldestEnabledAPIKeys(ctx, tenant, list.MaxLimit)
	if err != nil {
		return "", err
	}
	for _, key := range keys {
		_, err := s.checkAdministrator(ctx, key)
		if err == nil {
			return key.ID, nil
		}
		if !errors.Is(err, errBadAPIKey) {
			return "", err
		}
	}
	return "", apierr.NotFound.Because("no enabled API key of an administrator can sign for the application")
}

// ClientConfig returns which endpoints of an application's Client API are enabled.
func (s *Service) ClientConfig(ctx context.Context, application id.Ref) (oauthapi.ClientConfig, error) {
	c, err := s.cachedWebConfig(ctx, application.Tenant, application.ID)
	if err != nil {
		return oauthapi.ClientConfig{}, err
	}
	return oauthapi.ClientConfig{
		Enabled: c.Status == directoryapi.Enabled, OAuth2: c.OAuth2, Register: c.Register, Login: c.Login,
		VerifyEmail: c.VerifyEmail, ForgotPassword: c.ForgotPassword, ChangePassword: c.ChangePassword,
		Me: c.Me, MeExpand: c.MeExpand, MFARequired: c.MFA.Required, FactorTypes: c.MFA.FactorTypes,
	}, nil
}

// ClientToken is the token endpoint of the Client API. The tokens are signed with the key of
// applicationSigningKey, because a browser has no API key.
func (s *Service) ClientToken(ctx context.Context, in oauthapi.ClientForm) (oauthapi.ClientTokens, error) {
	key, err := s.applicationSigningKey(ctx, in.Tenant, in.Application)
	if err != nil {
		return oauthapi.ClientTokens{}, err
	}
	form := Form(in.Form)
	text := form["grant_type"].Reveal()
	grant := neutralGrantType(text, s.cfg.Alias)
	if text != "" && grants[grant] == nil {
		refusal := apierr.Unsupported.Because("grant_type %q is not supported", text)
		return oauthapi.ClientTokens{}, withOAuthError(refusal, "unsupported_grant_type")
	}
	if form["challenge"] != "" && grant == "service_factor_challenge" {
		// A challenge does not prove the first factor. Callers with an API key have verified
		// that themselves; a browser proves it by the state of the login.
		refusal := apierr.Unsupported.Because("the Client API takes the state of a login, not the address of a challenge")
		return oauthapi.ClientTokens{}, withOAuthError(refusal, "invalid_request")
	}
	issued, err := s.Token(ctx, TokenRequest{Tenant: in.Tenant, Application: in.Application, Key: key, Form: form})
	if err != nil {
		return oauthapi.ClientTokens{}, err
	}
	out := oauthapi.ClientTokens{Access: issued.Access, Refresh: issued.Refresh, ExpiresIn: int(issued.ExpiresIn / time.Second)}
	for _, t := range []struct {
		text secure.Secret
		at   *time.Time
	}{{issued.Access, &out.AccessExpiresAt}, {issued.Refresh, &out.RefreshExpiresAt}} {
		if t.text == "" {
			continue
		}
		if *t.at, err = secure.JWTExpiry(t.text); err != nil {
			return oauthapi.ClientTokens{}, err
		}
	}
	return out, nil
}

// ClientRevoke is the revocation endpoint of the Client API (revocation.go).
func (s *Service) ClientRevoke(ctx context.Context, in oauthapi.ClientForm) (oauthapi.Revoked, error) {
	return oauthapi.Revoked{}, s.Revoke(ctx, Revocation{Tenant: in.Tenant, Application: in.Application, Form: Form(in.Form)})
}

// ValidateToken validates an access token of an application for the Client API, and returns
// its account. The validation for callers with an API key is Validate (token.go).
func (s *Service) ValidateToken(ctx context.Context, in oauthapi.ValidateToken) (oauthapi.ValidToken, error) {
	if isOpenIDToken(in.Token) {
		t, account, err := s.validateOpenID(ctx, in)
		account.VerificationSealed, account.VerificationToken = nil, ""
		return oauthapi.ValidToken{Account: account, Organization: t.Token.Login.Organization, ExpiresAt: t.ExpiresAt,
			SecondFactor: t.Token.Login.ACR == oauthapi.ACRMFA}, err
	}
	t, err := s.checkToken(ctx, in.Tenant, in.Application, in.Token, s.store.Token, store.Access)
	if err != nil {
		return oauthapi.ValidToken{}, err
	}
	var account directoryapi.Account
	err = s.checkTokenAccess(ctx, t, func(ctx context.Context, request applicationapi.CheckAccess) (directoryapi.Access, error) {
		access, err := s.peers.Application.CheckAccess(ctx, request)
		if err == nil {
			account, err = s.enabledAccount(ctx, directoryapi.Ref{Tenant: t.TenantID, ID: t.AccountID})
			access.Account = account
		}
		return access, err
	})
	if err != nil {
		return oauthapi.ValidToken{}, err
	}
	account.VerificationSealed, account.VerificationToken = nil, ""
	return oauthapi.ValidToken{
		Account: account, Organization: t.OrganizationID, ExpiresAt: t.ExpiresAt, SecondFactor: t.SecondFactor,
	}, nil
}

// enabledAccount reads an account, and refuses one that is not enabled.
func (s *Service) enabledAccount(ctx context.Context, at directoryapi.Ref) (directoryapi.Account, error) {
	account, err := s.peers.Directory.Account(ctx, at)
	switch {
	case errors.Is(err, apierr.NotFound):
		return account, apierr.TokenAccountDisabled.Because("the account was deleted")
	case err == nil && account.Status != directoryapi.Enabled:
		return account, apierr.TokenAccountDisabled.Because("the account has the status %s", account.Status)
	}
	return account, err
}

// KeysOf returns the API keys of an account without their secrets, at most list.MaxLimit.
func (s *Service) KeysOf(ctx context.Context, account id.Ref) (oauthapi.Keys, error) {
	page, err := s.store.ListAPIKeys(ctx, account.Tenant, account.ID, list.Query{Limit: list.MaxLimit})
	if err != nil {
		return oauthapi.Keys{}, err
	}
	out := oauthapi.Keys{}
	for _, key := range page.Items {
		out.Items = append(out.Items, key.Key)
	}
	return out, nil
}

package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/store"
)

// VerifyJWT verifies a JWT that an administrator's key of any tenant signed. The
// key names the tenant, as that of a management request does.
func (s *Service) VerifyJWT(ctx context.Context, in oauthapi.VerifyJWT) (oauthapi.VerifiedJWT, error) {
	var key store.Key
	var failure error
	header, claims, err := secure.ParseJWT(in.Token.Reveal(), func(header map[string]any, claims secure.Claims) (secure.Secret, error) {
		name, named := header["kid"].(string)
		if !named {
			name, _ = claims["iss"].(string)
		}
		if !isKeyID(name) {
			return "", apierr.NotFound
		}
		if key, failure = s.signer(ctx, name); failure == nil && key.ID != name {
			failure = apierr.NotFound
		}
		return key.Secret, failure
	})
	if failure != nil && !errors.Is(failure, apierr.NotFound) {
		return oauthapi.VerifiedJWT{}, failure
	}
	if _, critical := header["crit"]; err != nil || critical {
		return oauthapi.VerifiedJWT{}, apierr.TokenSignature.Because("the token is not a JWT that an API key has signed with HS256")
	}
	if err := s.wantAdministrator(ctx, key); err != nil {
		return oauthapi.VerifiedJWT{}, err
	}
	out := oauthapi.VerifiedJWT{Tenant: key.TenantID, KeyID: key.ID}
	if out.Header, err = json.Marshal(header); err == nil {
		out.Claims, err = json.Marshal(claims)
	}
	return out, err
}

// SignAssertion signs an assertion with an API key of the tenant.
func (s *Service) SignAssertion(ctx context.Context, in oauthapi.SignAssertion) (oauthapi.SignedAssertion, error) {
	var members map[string]json.RawMessage // as the caller wrote them: a large number must not change
	if err := json.Unmarshal(in.Claims, &members); err != nil {
		return oauthapi.SignedAssertion{}, apierr.Format.Because("claims must be a JSON object: %v", err)
	}
	claims := secure.Claims{}
	for name, value := range members {
		claims[name] = value
	}
	if in.KeyID == "" {
		chosen, err := s.applicationKey(ctx, in.Tenant, in.Application)
		if err != nil {
			return oauthapi.SignedAssertion{}, err
		}
		in.KeyID = chosen
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
	if _, failed := claims["err"]; failed {
		delete(header, "stt") // an error is nothing that can be exchanged
	}
	text, err := secure.SignJWT(header, claims, key.Secret)
	return oauthapi.SignedAssertion{Token: secure.Secret(text), KeyID: key.ID}, err
}

// applicationKey returns the id of an application's signing key: its web
// config's, or where that is missing, disabled, deleted or of an account that is no longer
// an administrator, the oldest enabled key of one
// (docs/interface/client-api.md#web-config). Without any it returns apierr.NotFound.
func (s *Service) applicationKey(ctx context.Context, tenant, application id.ID) (string, error) {
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
			err = s.wantAdministrator(ctx, key)
		}
		switch {
		case err == nil:
			return key.ID, nil
		case !errors.Is(err, apierr.NotFound) && !errors.Is(err, apierr.TokenSignature):
			return "", err
		}
	}
	keys, err := s.store.OldestEnabledKeys(ctx, tenant, list.MaxLimit)
	if err != nil {
		return "", err
	}
	for _, key := range keys {
		administers, err := s.administers(ctx, key)
		if err != nil {
			return "", err
		}
		if administers {
			return key.ID, nil
		}
	}
	return "", apierr.NotFound.Because("no enabled API key of an administrator can sign for the application")
}

// ClientConfig returns what of an application's Client API is on.
func (s *Service) ClientConfig(ctx context.Context, application id.Ref) (oauthapi.ClientConfig, error) {
	c, err := s.webConfig(ctx, application.Tenant, application.ID)
	if err != nil {
		return oauthapi.ClientConfig{}, err
	}
	return oauthapi.ClientConfig{
		Enabled: c.Status == directoryapi.Enabled, OAuth2: c.OAuth2, Register: c.Register, Login: c.Login,
		VerifyEmail: c.VerifyEmail, ForgotPassword: c.ForgotPassword, ChangePassword: c.ChangePassword,
		Me: c.Me, MeExpand: c.MeExpand, MFARequired: c.MFA.Required, FactorTypes: c.MFA.FactorTypes,
	}, nil
}

// ClientToken answers the token endpoint of the Client API. Its tokens are signed
// with the application's key, because the caller has none.
func (s *Service) ClientToken(ctx context.Context, in oauthapi.ClientForm) (oauthapi.ClientTokens, error) {
	key, err := s.applicationKey(ctx, in.Tenant, in.Application)
	if err != nil {
		return oauthapi.ClientTokens{}, err
	}
	form := Form(in.Form)
	text := form["grant_type"].Reveal()
	grant := neutral(text, s.cfg.Alias)
	if text != "" && grants[grant] == nil {
		return oauthapi.ClientTokens{}, refused(apierr.Unsupported.Because("grant_type %q is not supported", text), "unsupported_grant_type")
	}
	if form["challenge"] != "" && grant == "service_factor_challenge" {
		// A challenge alone does not prove the first step, which callers with an API key
		// have checked themselves.
		refusal := apierr.Unsupported.Because("the Client API takes the state of a login, not the address of a challenge")
		return oauthapi.ClientTokens{}, refused(refusal, "invalid_request")
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

// ClientRevoke answers the revocation endpoint of the Client API.
func (s *Service) ClientRevoke(ctx context.Context, in oauthapi.ClientForm) (oauthapi.Revoked, error) {
	return oauthapi.Revoked{}, s.Revoke(ctx, Revocation{Tenant: in.Tenant, Application: in.Application, Form: Form(in.Form)})
}

// ValidateToken checks an access token of an application.
func (s *Service) ValidateToken(ctx context.Context, in oauthapi.ValidateToken) (oauthapi.ValidToken, error) {
	t, err := s.check(ctx, in.Tenant, in.Application, in.Token, s.store.Token, store.Access)
	if err != nil {
		return oauthapi.ValidToken{}, err
	}
	account, err := s.checkTokenAccess(ctx, t, false, s.checkAccess)
	if err != nil {
		return oauthapi.ValidToken{}, err
	}
	account.VerificationSealed, account.VerificationToken = nil, ""
	return oauthapi.ValidToken{Account: account, Organization: t.OrganizationID, ExpiresAt: t.ExpiresAt}, nil
}

// KeysOf returns the API keys of an account without their secrets.
func (s *Service) KeysOf(ctx context.Context, account id.Ref) (oauthapi.Keys, error) {
	page, err := s.store.ListKeys(ctx, account.Tenant, account.ID, list.Query{Limit: list.MaxLimit})
	if err != nil {
		return oauthapi.Keys{}, err
	}
	out := oauthapi.Keys{}
	for _, key := range page.Items {
		out.Items = append(out.Items, key.Key)
	}
	return out, nil
}

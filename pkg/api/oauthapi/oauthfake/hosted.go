package oauthfake

import (
	"context"
	"encoding/json"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// lifetime is the lifetime of an access token.
const lifetime = time.Hour

// token is an access token.
type token struct {
	login     applicationapi.CheckAccess
	expiresAt time.Time
}

// VerifyJWT verifies a JWT that was signed with an API key of an administrator.
func (s *Service) VerifyJWT(ctx context.Context, in oauthapi.VerifyJWT) (oauthapi.VerifiedJWT, error) {
	return call(s, "VerifyJWT", func() (out oauthapi.VerifiedJWT, err error) {
		var name string
		header, claims, err := secure.ParseJWT(in.Token.Reveal(), func(header map[string]any, claims secure.Claims) (secure.Secret, error) {
			kid, named := header["kid"]
			if !named {
				kid = claims["iss"]
			}
			name, _ = kid.(string)
			if _, ok := s.keys[name]; !ok {
				return "", apierr.NotFound
			}
			return s.keys[name].secret, nil
		})
		if err == nil {
			err = s.checkAdministratorKey(ctx, name)
		}
		if err != nil {
			return out, apierr.TokenSignature
		}
		out = oauthapi.VerifiedJWT{Tenant: s.keys[name].TenantID, KeyID: name}
		if out.Header, err = json.Marshal(header); err == nil {
			out.Claims, err = json.Marshal(claims)
		}
		return out, err
	})
}

// SignAssertion signs an assertion with the key of KeyID, or with the oldest key of an
// administrator.
func (s *Service) SignAssertion(ctx context.Context, in oauthapi.SignAssertion) (oauthapi.SignedAssertion, error) {
	return call(s, "SignAssertion", func() (out oauthapi.SignedAssertion, err error) {
		var signer *key
		for name, k := range s.keys {
			named := in.KeyID == name || in.KeyID == "" && (signer == nil || k.CreatedAt.Before(signer.CreatedAt))
			if s.checkAdministratorKey(ctx, name) == nil && k.TenantID == in.Tenant && named {
				signer = &k
			}
		}
		if signer == nil {
			return out, apierr.NotFound
		}
		var members map[string]json.RawMessage // not decoded, so that a large number does not change
		if err := json.Unmarshal(in.Claims, &members); err != nil {
			return out, apierr.Format
		}
		claims, header := secure.Claims{}, map[string]any{"typ": "JWT", "kid": signer.ID}
		for name, value := range members {
			claims[name] = value
		}
		if string(members["aud"]) == `""` {
			claims["aud"] = signer.ID
		}
		if _, failed := members["err"]; !failed {
			header["stt"] = "assertion"
		}
		text, err := secure.SignJWT(header, claims, signer.secret)
		return oauthapi.SignedAssertion{Token: secure.Secret(text), KeyID: signer.ID}, err
	})
}

// ClientConfig returns the default web config.
func (s *Service) ClientConfig(context.Context, id.Ref) (oauthapi.ClientConfig, error) {
	return call(s, "ClientConfig", func() (oauthapi.ClientConfig, error) {
		return oauthapi.ClientConfig{Enabled: true, OAuth2: true, Register: true, Login: true, Me: true}, nil
	})
}

// ClientToken is the token endpoint, with the password grant only.
func (s *Service) ClientToken(ctx context.Context, in oauthapi.ClientForm) (oauthapi.ClientTokens, error) {
	return call(s, "ClientToken", func() (out oauthapi.ClientTokens, err error) {
		if in.Form["grant_type"] != "password" {
			return out, apierr.Unsupported.With("error", "unsupported_grant_type")
		}
		logged, err := s.applications.Login(ctx, applicationapi.Login{
			Tenant: in.Tenant, Application: in.Application, Login: in.Form["username"].Reveal(), Password: in.Form["password"],
		})
		if err != nil {
			return out, apierr.From(err).With("error", "invalid_grant")
		}
		out = oauthapi.ClientTokens{
			Access: secure.Token(22), Refresh: secure.Token(22), AccessExpiresAt: s.now().Add(lifetime), ExpiresIn: int(lifetime / time.Second),
		}
		s.tokens[out.Access] = token{applicationapi.CheckAccess{
			Tenant: in.Tenant, Application: in.Application, Account: logged.Account.ID, Organization: logged.Organization,
		}, out.AccessExpiresAt}
		return out, nil
	})
}

// ClientRevoke revokes an access token.
func (s *Service) ClientRevoke(_ context.Context, in oauthapi.ClientForm) (oauthapi.Revoked, error) {
	return call(s, "ClientRevoke", func() (oauthapi.Revoked, error) {
		if at := s.tokens[in.Form["token"]].login; at.Tenant == in.Tenant && at.Application == in.Application {
			delete(s.tokens, in.Form["token"])
		}
		return oauthapi.Revoked{}, nil
	})
}

// ValidateToken validates an access token.
func (s *Service) ValidateToken(ctx context.Context, in oauthapi.ValidateToken) (oauthapi.ValidToken, error) {
	return call(s, "ValidateToken", func() (oauthapi.ValidToken, error) {
		t, ok := s.tokens[in.Token]
		switch {
		case !ok, t.login.Tenant != in.Tenant, t.login.Application != in.Application:
			return oauthapi.ValidToken{}, apierr.TokenSignature
		case !s.now().Before(t.expiresAt):
			return oauthapi.ValidToken{}, apierr.TokenExpired
		}
		access, err := s.applications.CheckAccess(ctx, t.login)
		return oauthapi.ValidToken{Account: access.Account, Organization: t.login.Organization, ExpiresAt: t.expiresAt}, err
	})
}

// KeysOf returns the keys of an account.
func (s *Service) KeysOf(_ context.Context, in directoryapi.Ref) (oauthapi.Keys, error) {
	return call(s, "KeysOf", func() (out oauthapi.Keys, err error) {
		for _, k := range s.keys {
			if k.TenantID == in.Tenant && k.AccountID == in.ID {
				out.Items = append(out.Items, k.Key)
			}
		}
		return out, nil
	})
}

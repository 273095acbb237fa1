package connect

import (
	"context"
	"encoding/json"
	"maps"

	"github.com/doorward/doorward/pkg/api/directoryapi"
)

// generic fetches the user object of an access token from an OAuth 2.0 provider. With an id token,
// its claims are merged with what the user info endpoint returns.
func (s *providerLogin) generic(ctx context.Context) (directoryapi.ProviderUser, error) {
	object, raw := map[string]any{}, json.RawMessage("{}")
	if s.provider.Resource != "" {
		var err error
		if object, raw, err = s.userObject(ctx); err != nil {
			return directoryapi.ProviderUser{}, err
		}
		if s.provider.DiscoveryURL != "" {
			if err := s.checkSameUser(firstText(object, "sub")); err != nil {
				return directoryapi.ProviderUser{}, err
			}
		}
	} else if s.claims == nil {
		return directoryapi.ProviderUser{}, s.providerError(
			"it shares users by id tokens alone; log in with an authorization code and the scope openid")
	}
	if s.claims != nil {
		merged := maps.Clone(s.claims)
		for _, name := range tokenClaims {
			delete(merged, name)
		}
		maps.Copy(merged, object)
		encoded, err := json.Marshal(merged)
		if err != nil {
			return directoryapi.ProviderUser{}, err
		}
		object, raw = merged, encoded
	}
	u, err := s.profile(object, raw)
	u.EmailUnstated = firstText(object, verifiedNames...) == ""
	u.Username = firstText(object, "username", "login")
	if s.provider.DiscoveryURL != "" && u.Username == "" {
		u.Username = firstText(object, "preferred_username")
	}
	return u, err
}

// tokenClaims are the claims of an id token that do not describe the user.
var tokenClaims = []string{
	"iss", "aud", "exp", "iat", "nbf", "nonce", "at_hash", "c_hash", "azp", "sid", "jti", "typ", "acr", "amr",
	"auth_time",
}

// userObject fetches the user object of the access token.
func (s *providerLogin) userObject(ctx context.Context) (map[string]any, json.RawMessage, error) {
	switch kind := s.provider.AccessTokenType; kind {
	case "access_token", "oauth_token":
		return s.get(ctx, withQuery(s.provider.Resource, kind, s.tokens.AccessToken.Reveal()), nil)
	}
	return s.get(ctx, s.provider.Resource, bearer(s.tokens.AccessToken))
}

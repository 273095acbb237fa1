package connect

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"strings"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/secure"
)

// generic asks an OAuth 2.0 provider for the user object of an access token. With
// an id token, its claims are the user object, together with what the provider
// shares at its user info endpoint.
func (s *session) generic(ctx context.Context) (directoryapi.ProviderAccount, error) {
	if s.login.Code == "" && isOfOtherClient(s.tokens.AccessToken, s.provider.ClientID) {
		return directoryapi.ProviderAccount{}, s.otherClient()
	}
	object, kept := map[string]any{}, json.RawMessage("{}")
	if s.provider.Resource != "" {
		var err error
		if object, kept, err = s.resource(ctx); err != nil {
			return directoryapi.ProviderAccount{}, err
		}
		if s.provider.DiscoveryURL != "" {
			if err := s.wantSameUser(text(object, "sub")); err != nil {
				return directoryapi.ProviderAccount{}, err
			}
		}
	} else if s.claims == nil {
		return directoryapi.ProviderAccount{}, s.refuse(
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
			return directoryapi.ProviderAccount{}, err
		}
		object, kept = merged, encoded
	}
	u, err := s.user(object, kept)
	u.EmailUnstated = text(object, verifiedNames...) == ""
	u.Username = text(object, "username", "login")
	if s.provider.DiscoveryURL != "" && u.Username == "" {
		u.Username = text(object, "preferred_username")
	}
	return u, err
}

// tokenClaims are those claims of an id token that say nothing of the user.
var tokenClaims = []string{
	"iss", "aud", "exp", "iat", "nbf", "nonce", "at_hash", "c_hash", "azp", "sid", "jti", "typ", "acr", "amr", "auth_time",
}

func (s *session) resource(ctx context.Context) (map[string]any, json.RawMessage, error) {
	switch kind := s.provider.AccessTokenType; kind {
	case "access_token", "oauth_token":
		return s.get(ctx, withQuery(s.provider.Resource, kind, s.tokens.AccessToken.Reveal()), nil)
	}
	return s.get(ctx, s.provider.Resource, bearer(s.tokens.AccessToken))
}

// isOfOtherClient reports whether an access token is a JWT that names another client
// than ours (RFC 9068, section 2.2, and the claims that were common before it).
// The provider verifies the token; other tokens do not say whose they are.
func isOfOtherClient(token secure.Secret, client string) bool {
	parts := strings.Split(token.Reveal(), ".")
	if len(parts) != 3 {
		return false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return false
	}
	claims, err := decode(payload)
	if err != nil {
		return false
	}
	named := text(claims, "azp", "client_id", "appid")
	return named != "" && named != client
}

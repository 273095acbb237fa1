package idsite

import (
	"errors"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// signServiceToken signs a token (JWT) that only this service verifies: the session tokens of
// pages, the states of logins at providers, and relay states of SAML. The key is derived from
// the tenant and the purpose. kind becomes the header stt, "" for none.
func (s *Service) signServiceToken(tenant id.ID, purpose func(id.ID) string, kind string, claims secure.Claims) (secure.Secret, error) {
	keyID, key := s.ring.Derive(purpose(tenant))
	header := map[string]any{"typ": "JWT", "kid": keyID, "tid": tenant.String()}
	if kind != "" {
		header["stt"] = kind
	}
	token, err := secure.SignJWT(header, claims, key)
	return secure.Secret(token), err
}

// errNotServiceToken is the error of verifyServiceToken for a text that is no valid token.
var errNotServiceToken = errors.New("the text is no token of this service and kind")

// verifyServiceToken verifies a token of signServiceToken. It returns the tenant of the token with
// the id that one of its claims has, and all claims. It returns errNotServiceToken for any other
// text, and for a token of another purpose or kind.
func (s *Service) verifyServiceToken(
	token secure.Secret, purpose func(id.ID) string, kind, claim string,
) (about id.Ref, claims secure.Claims, err error) {
	_, claims, err = secure.ParseJWT(token.Reveal(), func(header map[string]any, _ secure.Claims) (secure.Secret, error) {
		name, _ := header["tid"].(string)
		tenant, err := id.Parse(name)
		if stt, _ := header["stt"].(string); err != nil || stt != kind {
			return "", errNotServiceToken
		}
		about.Tenant = tenant
		keyID, _ := header["kid"].(string)
		return s.ring.Derived(keyID, purpose(tenant))
	})
	name, _ := claims[claim].(string)
	var unreadable error
	if about.ID, unreadable = id.Parse(name); err != nil || unreadable != nil {
		return id.Ref{}, nil, errNotServiceToken
	}
	return about, claims, nil
}

package idsite

import (
	"errors"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// signServiceToken signs a token that comes back to this service, under the tenant's key for a
// purpose. kind is the header stt, "" for none.
func (s *Service) signServiceToken(tenant id.ID, purpose func(id.ID) string, kind string, claims secure.Claims) (secure.Secret, error) {
	keyID, key := s.ring.Derive(purpose(tenant))
	header := map[string]any{"typ": "JWT", "kid": keyID, "tid": tenant.String()}
	if kind != "" {
		header["stt"] = kind
	}
	token, err := secure.SignJWT(header, claims, key)
	return secure.Secret(token), err
}

// errNotServiceToken is the error of a text that is no token of signServiceToken.
var errNotServiceToken = errors.New("the text is no token of this service and kind")

// verifyServiceToken returns what a token of signServiceToken is about, the id in one of its claims, with
// its tenant and its claims. Any other text is errNotServiceToken.
func (s *Service) verifyServiceToken(token secure.Secret, purpose func(id.ID) string, kind, claim string) (about id.Ref, claims secure.Claims,
	err error) {
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

package openid

import (
	"context"
	"errors"

	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/store"
)

// idTokenHint is what an ID token says that a client sends back.
type idTokenHint struct {
	subject, session string
	audience         []string
}

var errHint = refuse("invalid_request", "id_token_hint is no ID token that this provider has signed")

// readHint reads the parameter id_token_hint: an ID token of this provider, also one that has expired (OpenID Connect
// RP-Initiated Logout, section 4).
func (s *Service) readHint(ctx context.Context, i issuer, text string) (idTokenHint, error) {
	if len(text) > maxHint {
		return idTokenHint{}, errHint
	}
	header, claims, err := s.VerifyBy(ctx, i.app.TenantID, secure.Secret(text), func(k store.SigningKey) bool {
		return k.GoodUntil.After(k.CreatedAt)
	})
	if errors.Is(err, secure.ErrToken) {
		return idTokenHint{}, errHint
	}
	if err != nil {
		return idTokenHint{}, err
	}
	audience, err := claims.GetAudience()
	if err != nil {
		return idTokenHint{}, errHint
	}
	h := idTokenHint{audience: audience}
	h.subject, _ = claims["sub"].(string)
	h.session, _ = claims["sid"].(string)
	_, isIDToken := claims["auth_time"]
	if header["typ"] != "JWT" || claims["iss"] != i.url || h.subject == "" || len(h.audience) == 0 || !isIDToken {
		return idTokenHint{}, errHint
	}
	return h, nil
}

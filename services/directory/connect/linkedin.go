package connect

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
)

// linkedin fetches the user of an access token, from the user info endpoint of OpenID Connect.
func (s *providerLogin) linkedin(ctx context.Context) (directoryapi.ProviderUser, error) {
	object, raw, err := s.get(ctx, s.provider.Resource, bearer(s.tokens.AccessToken))
	if err != nil {
		return directoryapi.ProviderUser{}, err
	}
	u, err := s.profile(object, raw)
	if _, stated := object["email_verified"]; !stated {
		u.EmailVerified = u.Email != "" // the older form of the user object has verified emails only
	}
	return u, err
}

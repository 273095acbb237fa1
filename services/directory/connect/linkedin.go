package connect

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
)

func (s *session) linkedin(ctx context.Context) (directoryapi.ProviderAccount, error) {
	object, kept, err := s.get(ctx, s.provider.Resource, bearer(s.tokens.AccessToken))
	if err != nil {
		return directoryapi.ProviderAccount{}, err
	}
	u, err := s.user(object, kept)
	if _, stated := object["email_verified"]; !stated {
		u.EmailVerified = u.Email != "" // the older user object has confirmed ones alone
	}
	return u, err
}

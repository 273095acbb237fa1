package connect

import (
	"cmp"
	"context"
	"strings"

	"github.com/doorward/doorward/pkg/api/directoryapi"
)

// google fetches the user of an access token and checks the hosted domain.
func (s *providerLogin) google(ctx context.Context) (directoryapi.ProviderUser, error) {
	object, raw, err := s.get(ctx, s.provider.Resource, bearer(s.tokens.AccessToken))
	if err != nil {
		return directoryapi.ProviderUser{}, err
	}
	if err := s.checkSameUser(firstText(object, "id", "sub")); err != nil {
		return directoryapi.ProviderUser{}, err
	}
	hd, userDomain := s.provider.HD, cmp.Or(firstText(object, "hd"), firstText(s.claims, "hd"))
	if hd != "" && hd != "*" && !strings.EqualFold(hd, userDomain) {
		return directoryapi.ProviderUser{}, s.providerError("the user does not belong to the hosted domain " + hd)
	}
	return s.profile(object, raw)
}

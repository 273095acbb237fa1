package connect

import (
	"cmp"
	"context"
	"strings"

	"github.com/doorward/doorward/pkg/api/directoryapi"
)

func (s *session) google(ctx context.Context) (directoryapi.ProviderAccount, error) {
	if s.login.Code == "" {
		if err := s.checkOwnToken(ctx); err != nil {
			return directoryapi.ProviderAccount{}, err
		}
	}
	object, kept, err := s.get(ctx, s.provider.Resource, bearer(s.tokens.AccessToken))
	if err != nil {
		return directoryapi.ProviderAccount{}, err
	}
	if err := s.checkSameUser(text(object, "id", "sub")); err != nil {
		return directoryapi.ProviderAccount{}, err
	}
	hd, own := s.provider.HD, cmp.Or(text(object, "hd"), text(s.claims, "hd"))
	if hd != "" && hd != "*" && !strings.EqualFold(hd, own) {
		return directoryapi.ProviderAccount{}, s.refuse("the user does not belong to the hosted domain " + hd)
	}
	return s.user(object, kept)
}

// checkOwnToken refuses an access token that was issued to another client: the operator of
// that one could log in as any of its users.
func (s *session) checkOwnToken(ctx context.Context) error {
	info, _, err := s.get(ctx, withQuery(s.provider.TokenInfo, "access_token", s.tokens.AccessToken.Reveal()), nil)
	if err != nil {
		return err
	}
	if audience := text(info, "aud", "audience", "azp", "issued_to"); audience != s.provider.ClientID {
		return s.otherClient()
	}
	return nil
}

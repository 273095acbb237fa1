package connect

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/doorward/doorward/pkg/api/directoryapi"
)

func (s *session) github(ctx context.Context) (directoryapi.ProviderAccount, error) {
	object, kept, err := s.get(ctx, s.provider.Resource, bearer(s.tokens.AccessToken))
	if err != nil {
		return directoryapi.ProviderAccount{}, err
	}
	u, err := s.user(object, kept)
	if err != nil {
		return u, err
	}
	splitName(&u, text(object, "name"))
	u.EmailVerified = u.Email != "" // only a verified one can be on the public profile
	answer, body, err := s.call(ctx, strings.TrimSuffix(s.provider.Resource, "/")+"/emails", bearer(s.tokens.AccessToken))
	if err != nil {
		return u, s.failed(err)
	}
	var emails []struct {
		Email    string `json:"email"`
		Primary  bool   `json:"primary"`
		Verified bool   `json:"verified"`
	}
	if answer.StatusCode != http.StatusOK || json.Unmarshal(body, &emails) != nil {
		return u, nil // the token's scope has no emails
	}
	best := -1
	for _, e := range emails {
		rank := 0
		if e.Primary {
			rank++
		}
		if e.Verified {
			rank += 2
		}
		if e.Email != "" && rank > best {
			best, u.Email, u.EmailVerified = rank, e.Email, e.Verified
		}
	}
	return u, nil
}

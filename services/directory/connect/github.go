package connect

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/doorward/doorward/pkg/api/directoryapi"
)

// github fetches the user of an access token, and of the emails the primary one, if possible
// verified.
func (s *providerLogin) github(ctx context.Context) (directoryapi.ProviderUser, error) {
	object, raw, err := s.get(ctx, s.provider.Resource, bearer(s.tokens.AccessToken))
	if err != nil {
		return directoryapi.ProviderUser{}, err
	}
	u, err := s.profile(object, raw)
	if err != nil {
		return u, err
	}
	splitName(&u, firstText(object, "name"))
	u.EmailVerified = u.Email != "" // GitHub allows only verified emails on the public profile
	answer, body, err := s.call(ctx, strings.TrimSuffix(s.provider.Resource, "/")+"/emails",
		bearer(s.tokens.AccessToken))
	if err != nil {
		return u, s.callError(err)
	}
	var emails []struct {
		Email    string `json:"email"`
		Primary  bool   `json:"primary"`
		Verified bool   `json:"verified"`
	}
	if answer.StatusCode != http.StatusOK || json.Unmarshal(body, &emails) != nil {
		return u, nil // the scope of the token does not include the emails
	}
	bestRank := -1
	for _, e := range emails {
		rank := 0
		if e.Primary {
			rank++
		}
		if e.Verified {
			rank += 2
		}
		if e.Email != "" && rank > bestRank {
			bestRank, u.Email, u.EmailVerified = rank, e.Email, e.Verified
		}
	}
	return u, nil
}

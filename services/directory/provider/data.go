package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/directory/store"
)

// ProviderData returns the provider data of an account: what the provider of its directory stated
// of the user at the last login, with the provider's tokens
// (docs/interface/directories.md#provider-data). account.go stores them at every login. It
// returns apierr.NotFound for the account.
func (s *Service) ProviderData(ctx context.Context, account id.Ref) (store.ProviderData, error) {
	d, err := s.store.ProviderData(ctx, account.Tenant, account.ID)
	if err != nil || d.TokensSealed == nil {
		return d, err
	}
	sealed, err := s.ring.Open(d.TokensSealed, providerTokensPurpose(account.ID))
	if err != nil {
		return d, err
	}
	var tokens map[string]json.RawMessage
	if err := json.Unmarshal([]byte(sealed.Reveal()), &tokens); err != nil {
		return d, fmt.Errorf("read the provider's tokens of the account %s: %w", account.ID, err)
	}
	maps.Copy(d.Claims, tokens)
	if _, given := tokens["refreshToken"]; !given && d.ProviderID == "google" {
		d.Claims["refreshToken"] = json.RawMessage("null")
	}
	return d, nil
}

func providerTokensPurpose(account id.ID) string {
	return "directory.providerdata/" + account.String()
}

package oauth

import (
	"testing"

	"github.com/doorward/doorward/pkg/alias"
)

func TestNeutral(t *testing.T) {
	for _, c := range []struct {
		grantType string
		alias     alias.Alias
		want      string
	}{
		{"password", "service", "password"},
		{"service_token", "service", "service_token"},
		{"acme_token", "acme", "service_token"},
		{"service_token", "acme", "service_token"},
		{"acme_factor_challenge", "acme", "service_factor_challenge"},
		{"other_token", "acme", "other_token"},
		{"refresh_token", "refresh", "refresh_token"},
		{"client_credentials", "client", "client_credentials"},
		{"acme", "acme", "acme"},
	} {
		if got := neutralGrantType(c.grantType, c.alias); got != c.want {
			t.Errorf("%s under the alias %s is %s, want %s", c.grantType, c.alias, got, c.want)
		}
	}
}

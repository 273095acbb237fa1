package rest_test

import (
	"strings"
	"testing"

	"github.com/doorward/doorward/services/oauth/oauthtest"
)

// A missing required member is refused before a wrong value, and that before a wrong format
// (docs/interface/errors.md#statuses), in any order of the members.
func TestOrderOfChecks(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	config, policy := webConfig(d, d.Site), "/oAuthPolicies/"+d.Application.String()
	key := decode(t, want(t, 201, d.Do(t, d.Site, "POST", "/accounts/"+d.Account.String()+"/apiKeys", nil)))["href"].(string)
	for _, c := range []struct {
		path, body string
		code       int
	}{
		{key, `{"name":"` + strings.Repeat("x", 256) + `","status":"x"}`, 2003},
		{policy, `{"accessTokenTtl":"x","refreshTokenTtl":null}`, 2000},
		{policy, `{"accessTokenTtl":"x","revokeTokensOnPasswordChange":null}`, 2000},
		{policy, `{"accessTokenTtl":"P11Y","refreshTokenTtl":"x"}`, 2002},
		{config, `{"status":"x","login":{"enabled":null}}`, 2000},
		{config, `{"status":"x","mfa":{"required":null}}`, 2000},
		{config, `{"status":"x","mfa":{"factorTypes":[]}}`, 2000},
		{config, `{"signingApiKey":{"href":"x"},"dnsLabel":null}`, 2000},
		{config, `{"signingApiKey":{"href":"x"},"status":"x"}`, 2003},
		{config, `{"dnsLabel":"-","status":"x"}`, 2003},
	} {
		t.Run(c.body, func(t *testing.T) { refused(t, 400, c.code, d.Do(t, d.Site, "POST", c.path, c.body)) })
	}
}

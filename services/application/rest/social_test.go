package rest_test

import (
	"strings"
	"testing"
)

// A social login leads to the directory of its provider, wherever new accounts go
// (docs/interface/applications.md#accounts-by-provider).
func TestAccountsOfSocialLogins(t *testing.T) {
	t.Parallel()
	c := open(t)
	shop := c.application(t, "Shop")
	of := func(provider string) string {
		directory := c.directory(t, provider)
		c.Directories.Mirror(t, c.ref(t, directory), provider)
		return directory
	}
	google := of("google")
	c.mapping(t, shop, google, nil)
	c.mapping(t, shop, c.directory(t, "Cloud"), object{"isDefaultAccountStore": true})
	bank, away := c.organization(t, "bank"), c.organization(t, "away")
	c.mapping(t, shop, c.organization(t, "empty"), nil)
	c.organizationMapping(t, bank, of("github"), nil)
	c.mapping(t, shop, bank, nil)

	for name, s := range map[string]struct {
		data any
		code int
	}{
		"of no provider":                {object{"accessToken": "a"}, 2000},
		"without a proof":               {object{"providerId": "google"}, 2000},
		"with two proofs":               {object{"providerId": "google", "accessToken": "a", "code": "c"}, 2000},
		"with the wrong proof":          {object{"providerId": "github", "code": "c"}, 2000},
		"of no object":                  {"google", 2004},
		"with something else":           {object{"providerId": "google", "accessToken": "a", "id": "1"}, 2015},
		"of a provider that is away":    {object{"providerId": "facebook", "accessToken": "a"}, 5201},
		"of the cloud":                  {object{"providerId": "native", "accessToken": "a"}, 5201},
		"not of the organization":       {object{"providerId": "google", "accessToken": "a", "accountStore": object{"nameKey": "bank"}}, 4701},
		"of an empty organization":      {object{"providerId": "google", "accessToken": "a", "accountStore": object{"nameKey": "empty"}}, 4701},
		"of an unknown organization":    {object{"providerId": "google", "accessToken": "a", "accountStore": object{"nameKey": "nobody"}}, 2014},
		"of a store that is not mapped": {object{"providerId": "google", "accessToken": "a", "accountStore": link(away)}, 5114},
		"of a store without a name":     {object{"providerId": "google", "accessToken": "a", "accountStore": object{}}, 2004},
		"of the application":            {object{"providerId": "Google", "accessToken": "a"}, 7200},
		"of the directory":              {object{"providerId": "google", "code": "c", "redirectUri": "https://app.localhost/cb", "accountStore": link(google)}, 7200},
		"of the organization":           {object{"providerId": "github", "accessToken": "a", "accountStore": object{"nameKey": "Bank"}}, 7200},
		"reached through it":            {object{"providerId": "github", "accessToken": "a"}, 7200},
	} {
		t.Run(name, func(t *testing.T) {
			c.refused(t, 400, s.code, "POST", shop+"/accounts", object{"providerData": s.data})
		})
	}
	t.Run("in an organization itself", func(t *testing.T) {
		c.refused(t, 400, 2017, "POST", bank+"/accounts", object{"providerData": object{"providerId": "github", "accessToken": "a"}})
	})
	t.Run("through an application that is not there", func(t *testing.T) {
		c.refused(t, 404, 404, "POST", strings.Replace(bank, "organizations", "applications", 1)+"/accounts", object{"providerData": object{"providerId": "github", "accessToken": "a"}})
	})
	t.Run("nothing but the link of an account that is sent back", func(t *testing.T) {
		c.create(t, shop+"/accounts", object{"email": "jo@example.test", "password": "Changeme1!", "providerData": link("https://localhost/v1/accounts/x/providerData")})
	})
}

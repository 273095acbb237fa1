package rest_test

import (
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/services/application/applicationtest"
	"github.com/doorward/doorward/services/directory/directorytest"
)

// A social login leads to the directory of its provider, wherever new accounts go
// (docs/interface/applications.md#accounts-by-provider).
func TestAccountsOfSocialLogins(t *testing.T) {
	t.Parallel()
	c := open(t)
	shop := c.application(t, "Shop")
	of := func(provider string) string {
		return applicationtest.Base.To("directories", c.Directories.NewMirror(t, c.tenant, provider, provider))
	}
	google := of("google")
	c.mapping(t, shop, google, nil)
	c.mapping(t, shop, c.directory(t, "Cloud"), object{"isDefaultAccountStore": true})
	bank, away := c.organization(t, "bank"), c.organization(t, "away")
	c.mapping(t, shop, c.organization(t, "empty"), nil)
	c.organizationMapping(t, bank, of("github"), nil)
	c.mapping(t, shop, bank, nil)
	facebook := c.application(t, "Facebook")
	c.mapping(t, facebook, of("facebook"), nil)

	for name, s := range map[string]struct {
		data any
		code int
	}{
		"of no provider":             {object{"accessToken": "a"}, 2000},
		"without a proof":            {object{"providerId": "google"}, 2000},
		"with two proofs":            {object{"providerId": "google", "accessToken": "a", "code": "c"}, 2000},
		"of no object":               {"google", 2004},
		"with something else":        {object{"providerId": "google", "accessToken": "a", "id": "1"}, 2015},
		"of a provider that is away": {object{"providerId": "facebook", "accessToken": "a"}, 5201},
		"of the cloud":               {object{"providerId": "native", "accessToken": "a"}, 5201},
		"not of the organization": {object{"providerId": "google", "accessToken": "a",
			"accountStore": object{"nameKey": "bank"}}, 4701},
		"of an empty organization": {object{"providerId": "google", "accessToken": "a",
			"accountStore": object{"nameKey": "empty"}}, 4701},
		"of an unknown organization": {object{"providerId": "google", "accessToken": "a",
			"accountStore": object{"nameKey": "nobody"}}, 2014},
		"of a store that is not mapped": {object{"providerId": "google", "accessToken": "a", "accountStore": link(away)},
			5114},
		"of a store without a name": {object{"providerId": "google", "accessToken": "a", "accountStore": object{}}, 2004},
		"of the application":        {object{"providerId": "Google", "accessToken": "a"}, 7200},
		"of the directory": {object{"providerId": "google", "code": "c", "redirectUri": "https://app.localhost/cb",
			"accountStore": link(google)}, 7200},
		"of the organization": {object{"providerId": "github", "accessToken": "a",
			"accountStore": object{"nameKey": "Bank"}}, 7200},
		"reached through it":   {object{"providerId": "github", "accessToken": "a"}, 7200},
		"of github, by a code": {object{"providerId": "github", "code": "c"}, 7200},
	} {
		t.Run(name, func(t *testing.T) {
			c.refused(t, 400, s.code, "POST", shop+"/accounts", object{"providerData": s.data})
		})
	}
	t.Run("with a code of facebook, which takes access tokens alone", func(t *testing.T) {
		c.refused(t, 400, 2000, "POST", facebook+"/accounts",
			object{"providerData": object{"providerId": "facebook", "code": "c"}})
	})
	t.Run("in an organization itself", func(t *testing.T) {
		c.refused(t, 400, 2017, "POST", bank+"/accounts",
			object{"providerData": object{"providerId": "github", "accessToken": "a"}})
	})
	t.Run("through an application that is not there", func(t *testing.T) {
		c.refused(t, 404, 404, "POST", strings.Replace(bank, "organizations", "applications", 1)+"/accounts",
			object{"providerData": object{"providerId": "github", "accessToken": "a"}})
	})
	t.Run("with custom data, which is that of a new account", func(t *testing.T) {
		at, login := shop+"/accounts",
			object{"providerId": "google", "accessToken": directorytest.UserToken("1", "jo@google.test").Reveal()}
		c.refused(t, 400, 3003, "POST", at, object{"providerData": login, "customData": object{"meta": 1}})
		for _, each := range []struct {
			status int
			data   object
		}{{201, object{"plan": "gold"}}, {200, object{"plan": "silver"}}} {
			made := c.want(t, each.status, "POST", at, object{"providerData": login, "customData": each.data}).object(t)
			profile, err := c.Directories.Profile(t.Context(),
				directoryapi.ProfileRequest{Ref: c.ref(t, made["href"].(string)), CustomData: true})
			if err != nil || string(profile.CustomData) != `{"plan":"gold"}` {
				t.Errorf("after %d the custom data is %s, %v", each.status, profile.CustomData, err)
			}
		}
	})
	t.Run("through a disabled application", func(t *testing.T) {
		closed := c.application(t, "Closed")
		c.mapping(t, closed, google, nil)
		c.update(t, closed, object{"status": "DISABLED"})
		for _, provider := range []string{"google", "facebook"} {
			c.refused(t, 400, 7104, "POST", closed+"/accounts",
				object{"providerData": object{"providerId": provider, "accessToken": "a"}})
		}
	})
	t.Run("nothing but the link of an account that is sent back", func(t *testing.T) {
		c.create(t, shop+"/accounts", object{"email": "jo@example.test", "password": "Changeme1!",
			"providerData": link("https://localhost/v1/accounts/x/providerData")})
	})
}

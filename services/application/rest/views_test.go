package rest_test

import (
	"encoding/base64"
	"testing"

	"github.com/doorward/doorward/services/application/applicationtest"
)

// Every representation, byte by byte but for its ids and times.
func TestAnswers(t *testing.T) {
	t.Parallel()
	c := open(t)
	shop := text(c.create(t, "/applications?createDirectory=true", object{
		"name": "Shop", "description": "Sells things", "status": "enabled",
		"authorizedCallbackUris": []string{"https://app.localhost/cb"},
		"authorizedOriginUris":   []string{"https://app.localhost"},
		"homeUrl":                "https://app.localhost/start",
	})["href"])
	second := c.directory(t, "Second")
	c.mapping(t, shop, second, nil)
	bare := c.application(t, "Bare")
	mapping := linked(t, c.get(t, shop), "defaultAccountStoreMapping")
	directory := linked(t, c.get(t, mapping), "accountStore")
	account := object{"email": "jo@example.test", "password": applicationtest.Password, "givenName": "Jo",
		"surname": "Doe"}
	value := base64.StdEncoding.EncodeToString([]byte("jo@example.test:" + applicationtest.Password))
	tenant := applicationtest.Base.To("tenants", c.tenant)

	for _, scenario := range []struct {
		name, method, path string
		body               any
		status             int
	}{
		{"application", "GET", shop, nil, 200},
		{"application-without-stores", "GET", bare, nil, 200},
		{"application-updated", "POST", bare, object{"description": nil, "status": "disabled"}, 200},
		{"application-created", "POST", "/applications?createDirectory=Customers", object{"name": "Created"}, 201},
		{"applications", "GET", tenant + "/applications?name=S*&offset=0&limit=1", nil, 200},
		{"account-created", "POST", shop + "/accounts", account, 201},
		{"accounts", "GET", shop + "/accounts?q=example", nil, 200},
		{"login-attempt", "POST", shop + "/loginAttempts", object{"type": "basic", "value": value}, 200},
		{"login-attempt-refused", "POST", shop + "/loginAttempts", object{"type": "basic", "value": "am86"}, 400},
		{"mapping", "GET", mapping, nil, 200},
		{"mapping-created", "POST", "/accountStoreMappings",
			object{"application": link(bare), "accountStore": link(second), "listIndex": "3", "isDefaultAccountStore": "true"},
			201},
		{"mappings", "GET", shop + "/accountStoreMappings?orderBy=listIndex%20desc", nil, 200},
		{"directory-applications", "GET", directory + "/applications", nil, 200},
		{"directory-mappings", "GET", directory + "/applicationMappings", nil, 200},
	} {
		t.Run(scenario.name, func(t *testing.T) {
			c.Clock.Tick()
			c.want(t, scenario.status, scenario.method, scenario.path, scenario.body).Golden(scenario.name)
		})
	}
}

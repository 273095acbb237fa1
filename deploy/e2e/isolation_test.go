package e2e_test

import (
	"encoding/base64"
	"testing"

	"github.com/doorward/doorward/deploy/e2e"
)

// Tenant isolation: an API key has access to its own tenant only. A resource of another
// tenant must answer exactly as one that does not exist, so these scenarios use addresses
// of resources that do not exist.
func TestAddressesOfStrangersInBodiesLeadNowhere(t *testing.T) {
	fixture := client.NewFixture(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	value := base64.StdEncoding.EncodeToString([]byte(account.Text("email") + ":" + e2e.Password))
	const nobody = "/0000000000000000000000"

	attempt := func(store e2e.Object) e2e.Request {
		return post(fixture.Application.Link(t, "loginAttempts"), e2e.Object{"type": "basic", "value": value, "accountStore": store})
	}
	for name, store := range map[string]e2e.Object{
		"a directory":           {"href": client.Key.BaseURL + "/directories" + nobody},
		"a group":               {"href": client.Key.BaseURL + "/groups" + nobody},
		"an organization":       {"href": client.Key.BaseURL + "/organizations" + nobody},
		"a name key":            {"nameKey": "nobody-has-this-key"},
		"another deployment":    {"href": "https://elsewhere.example/v1/directories/" + fixture.Directory.ID()},
		"a thing of no kind":    {"href": client.Key.BaseURL + "/nothing" + nobody},
		"an account as a store": {"href": account.Href()},
	} {
		t.Run("login in "+name, func(t *testing.T) { client.Refused(t, 400, 2014, attempt(store)) })
	}
	t.Run("login in a directory that is not mapped", func(t *testing.T) {
		other := client.NewFixture(t)
		client.Refused(t, 400, 5114, attempt(e2e.Object{"href": other.Directory.Href()}))
	})
	t.Run("login in the directory that is mapped", func(t *testing.T) {
		client.WantObject(t, 200, attempt(e2e.Object{"href": fixture.Directory.Href()}))
	})

	t.Run("mappings", func(t *testing.T) {
		for name, body := range map[string]e2e.Object{
			"an application": {"application": e2e.Object{"href": client.Key.BaseURL + "/applications" + nobody}, "accountStore": e2e.Object{"href": fixture.Directory.Href()}},
			"a store":        {"application": e2e.Object{"href": fixture.Application.Href()}, "accountStore": e2e.Object{"href": client.Key.BaseURL + "/directories" + nobody}},
		} {
			t.Run(name, func(t *testing.T) { client.Refused(t, 400, 2014, post("/accountStoreMappings", body)) })
		}
		t.Run("a store twice", func(t *testing.T) {
			client.Refused(t, 409, 5104, post("/accountStoreMappings", e2e.Object{
				"application":  e2e.Object{"href": fixture.Application.Href()},
				"accountStore": e2e.Object{"href": fixture.Directory.Href()},
			}))
		})
	})
}

// Nothing that the server alone decides can be written through a body.
func TestReadOnlyFieldsInABodyAreIgnored(t *testing.T) {
	fixture, other := client.NewFixture(t), client.NewFixture(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	updated := client.Update(t, account.Href(), e2e.Object{
		"href": other.Directory.Href(), "createdAt": "2001-01-01T00:00:00.000Z", "fullName": "Somebody Else",
		"directory": e2e.Object{"href": other.Directory.Href()}, "tenant": e2e.Object{"href": other.Directory.Href()},
		"givenName": "Joan",
	})
	if updated.Text("givenName") != "Joan" || updated.Text("fullName") != "Joan Doe" {
		t.Errorf("the name is %q, %q", updated.Text("givenName"), updated.Text("fullName"))
	}
	for _, field := range []string{"href", "createdAt"} {
		if updated.Text(field) != account.Text(field) {
			t.Errorf("%s is now %q, was %q", field, updated.Text(field), account.Text(field))
		}
	}
	for _, link := range []string{"directory", "tenant"} {
		if updated.Link(t, link) != account.Link(t, link) {
			t.Errorf("%s leads to %s now", link, updated.Link(t, link))
		}
	}
	t.Run("the whole resource can be posted back", func(t *testing.T) {
		client.Update(t, account.Href(), updated)
		client.Update(t, fixture.Application.Href(), client.Get(t, fixture.Application.Href()))
		client.Update(t, fixture.Directory.Href(), client.Get(t, fixture.Directory.Href()))
	})
}

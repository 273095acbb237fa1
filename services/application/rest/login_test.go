package rest_test

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/services/application/applicationtest"
)

func value(login, password string) string {
	return base64.StdEncoding.EncodeToString([]byte(login + ":" + password))
}

// The table of docs/interface/applications.md#login-attempts.
func TestLoginAttempts(t *testing.T) {
	t.Parallel()
	c := open(t)
	shop, bare := c.application(t, "Shop"), c.application(t, "Bare")
	first, second, unmapped, closed := c.directory(t, "First"), c.directory(t, "Second"), c.directory(t, "Unmapped"),
		c.directory(t, "Closed")
	for _, directory := range []string{first, second, closed} {
		c.mapping(t, shop, directory, nil)
	}
	account := func(directory, email, status string) string {
		made := c.create(t, shopless(c, t, directory)+"/accounts",
			object{"email": email, "password": applicationtest.Password, "status": status})
		return text(made["href"])
	}
	jo := account(first, "jo@example.test", "ENABLED")
	secondJo := account(second, "jo@example.test", "ENABLED")
	sam := account(second, "sam@example.test", "ENABLED")
	account(first, "idle@example.test", "DISABLED")
	account(first, "new@example.test", "UNVERIFIED")
	account(closed, "shut@example.test", "ENABLED")
	c.Directories.Disable(t, directoryapi.Ref{Tenant: c.tenant, ID: idOf(t, closed)})

	password := applicationtest.Password
	basic := func(login, password string) object {
		return object{"type": "basic", "value": value(login, password)}
	}
	at := func(store any, login string) object {
		return object{"type": "basic", "value": value(login, password), "accountStore": store}
	}
	for what, scenario := range map[string]struct {
		body    any
		account string
	}{
		"by email":    {basic("jo@example.test", password), jo},
		"in any case": {object{"type": "BASIC", "value": value("JO@example.test", password)}, jo},
		"in URL-safe Base64": {object{"type": "basic",
			"value": strings.TrimRight(base64.URLEncoding.EncodeToString([]byte("jo@example.test:"+password)), "=")}, jo},
		"in a later store": {basic("sam@example.test", password), sam},
		"in a named store": {at(link(second), "jo@example.test"), secondJo},
		"in a named store, with its fields": {at(object{"href": second, "name": "Second", "nameKey": "x"}, "jo@example.test"),
			secondJo},
		"in a null store": {at(nil, "jo@example.test"), jo},
	} {
		t.Run(what, func(t *testing.T) {
			a := c.want(t, 200, "POST", shop+"/loginAttempts", scenario.body)
			if location := a.header.Get("Location"); location != scenario.account {
				t.Errorf("the Location is %q, want %q", location, scenario.account)
			}
			if got := a.object(t); len(got) != 1 || linked(t, got, "account") != scenario.account {
				t.Errorf("the answer is %s", a.body)
			}
		})
	}

	generic := ""
	for _, scenario := range []struct {
		what, application string
		body              any
		code              int
		generic           bool
	}{
		{"no account", shop, basic("nobody@example.test", password), 7104, true},
		{"a wrong password", shop, basic("jo@example.test", "Wrong1234"), 7100, true},
		{"no password", shop, basic("jo@example.test", ""), 7100, true},
		{"a disabled account", shop, basic("idle@example.test", password), 7101, true},
		{"an unverified account", shop, basic("new@example.test", password), 7102, true},
		{"a disabled directory", shop, basic("shut@example.test", password), 7106, true},
		{"no account in the named store", shop, at(link(first), "sam@example.test"), 7104, true},
		{"an application without stores", bare, basic("jo@example.test", password), 5105, true},
		{"a store that is not mapped", shop, at(link(unmapped), "jo@example.test"), 5114, true},
		{"a store that is not mapped, where there are none", bare, at(link(first), "jo@example.test"), 5114, true},
		{"a store that never was", shop, at(link(applicationtest.Base.To("directories", c.NewID())), "jo@example.test"), 2014,
			false},
		{"a store of another kind", shop, at(link(shop), "jo@example.test"), 2014, false},
		{"a store of another deployment", shop, at(link("https://elsewhere.example/v1/directories/x"), "jo@example.test"),
			2014, false},
		{"an unknown key", shop, at(object{"nameKey": "nobody"}, "jo@example.test"), 2014, false},
		{"a store without name", shop, at(object{}, "jo@example.test"), 2004, false},
		{"a store that is text", shop, at(first, "jo@example.test"), 2004, false},
		{"no Base64", shop, object{"type": "basic", "value": "%%%"}, 2006, false},
		{"no colon", shop, object{"type": "basic", "value": "am8="}, 2006, false},
		{"no UTF-8", shop, object{"type": "basic", "value": base64.StdEncoding.EncodeToString([]byte("jo:\xff"))}, 2005,
			false},
		{"a login with NUL", shop, basic("jo\x00", password), 2006, false},
		{"another type", shop, object{"type": "digest", "value": value("jo@example.test", password)}, 2003, false},
		{"no type", shop, object{"value": value("jo@example.test", password)}, 2000, false},
		{"a null type", shop, object{"type": nil, "value": value("jo@example.test", password)}, 2000, false},
		{"no value", shop, object{"type": "basic"}, 2000, false},
		{"an empty value", shop, object{"type": "basic", "value": ""}, 2000, false},
		{"a value of another type", shop, object{"type": "basic", "value": 7}, 2004, false},
		{"an unknown property", shop, object{"type": "basic", "value": value("jo@example.test", password), "remember": true},
			2015, false},
		{"no object", shop, `7`, 2006, false},
	} {
		t.Run("refused: "+scenario.what, func(t *testing.T) {
			message := text(c.refused(t, 400, scenario.code, "POST", scenario.application+"/loginAttempts",
				scenario.body)["message"])
			if !scenario.generic {
				return
			}
			if generic == "" {
				generic = message
			}
			if message != generic {
				t.Errorf("a user can tell it from the others: %q and %q", message, generic)
			}
		})
	}
	t.Run("refused with the literal that clients compare: a store that is not mapped", func(t *testing.T) {
		const literal = "The specified Account Store is not one of the Application's assigned Account Stores."
		for _, store := range []object{link(unmapped),
			{"nameKey": text(c.get(t, c.organization(t, "elsewhere"))["nameKey"])}} {
			refusal := c.refused(t, 400, 5114, "POST", shop+"/loginAttempts", at(store, "jo@example.test"))
			if !strings.Contains(text(refusal["developerMessage"]), literal) {
				t.Errorf("the refusal says %q", refusal["developerMessage"])
			}
		}
	})
	t.Run("refused: an application that never was", func(t *testing.T) {
		c.refused(t, 404, 404, "POST", applicationtest.Base.To("applications", c.NewID())+"/loginAttempts",
			basic("jo@example.test", password))
	})
	t.Run("refused: a disabled application, like an unknown login", func(t *testing.T) {
		c.update(t, shop, object{"status": "DISABLED"})
		unknown := c.refused(t, 400, 7104, "POST", shop+"/loginAttempts", basic("nobody@example.test", password))
		for _, body := range []object{basic("jo@example.test", password), basic("jo@example.test", "Wrong1234"),
			at(link(unmapped), "jo@example.test"), at(object{"nameKey": "x"}, "jo@example.test")} {
			refusal := c.refused(t, 400, 7104, "POST", shop+"/loginAttempts", body)
			if refusal["developerMessage"] != unknown["developerMessage"] {
				t.Errorf("the refusal can be told from an unknown login: %v", refusal)
			}
		}
		c.update(t, shop, object{"status": "ENABLED"})
		c.want(t, 200, "POST", shop+"/loginAttempts", basic("jo@example.test", password))
	})
	t.Run("refused: as soon as the mapping is gone", func(t *testing.T) {
		for _, m := range items(t, c.get(t, shop+"/accountStoreMappings"), "href") {
			c.want(t, 204, "DELETE", m, nil)
		}
		c.refused(t, 400, 5105, "POST", shop+"/loginAttempts", basic("jo@example.test", password))
	})
}

// After too many failures every login gets the same answer, whether its account is unknown,
// disabled, unverified or in a mirror directory.
func TestARefusedLoginTellsNothingOfTheAccount(t *testing.T) {
	t.Parallel()
	c := open(t)
	shop, people, mirror := c.application(t, "Shop"), c.directory(t, "People"), c.directory(t, "Mirror")
	for _, directory := range []string{people, mirror} {
		c.mapping(t, shop, directory, nil)
		c.create(t, shopless(c, t, directory)+"/accounts",
			object{"email": "in-" + idOf(t, directory).String() + "@example.test", "password": applicationtest.Password})
	}
	c.Directories.Mirror(t, directoryapi.Ref{Tenant: c.tenant, ID: idOf(t, mirror)}, "ldap")
	through := shopless(c, t, people)
	for login, status := range map[string]string{"idle@example.test": "DISABLED", "new@example.test": "UNVERIFIED"} {
		c.create(t, through+"/accounts", object{"email": login, "password": applicationtest.Password, "status": status})
	}
	logins := []string{
		"nobody@example.test", "idle@example.test", "new@example.test",
		"in-" + idOf(t, people).String() + "@example.test", "in-" + idOf(t, mirror).String() + "@example.test",
	}
	wrong := func(login string) answer {
		return c.send(t, "POST", shop+"/loginAttempts", object{"type": "basic", "value": value(login, "Wrong1234")})
	}
	var first, refused answer
	for _, login := range logins {
		for i := range applicationtest.Config.Throttle.Pair.Failures {
			a := wrong(login)
			if i == 0 && login == logins[0] {
				first = a
			}
			if a.status != 400 || a.object(t)["message"] != first.object(t)["message"] {
				t.Fatalf("the try %d of %s returns %d %s", i+1, login, a.status, a.body)
			}
		}
		a := wrong(login)
		if login == logins[0] {
			refused = a
		}
		if a.status != 429 || a.object(t)["code"] != 429.0 || a.header.Get("Retry-After") != "900" {
			t.Errorf("%s is refused with %d %s, to be tried again after %q s", login, a.status, a.body,
				a.header.Get("Retry-After"))
		}
		right := c.send(t, "POST", shop+"/loginAttempts",
			object{"type": "basic", "value": value(login, applicationtest.Password)})
		for _, other := range []answer{a, right} {
			if !bytes.Equal(other.body, refused.body) || other.header.Get("Retry-After") != refused.header.Get("Retry-After") {
				t.Errorf("%s is refused with %s, an unknown login with %s", login, other.body, refused.body)
			}
		}
	}
}

// shopless creates an application whose only account store, and default store, is a directory, for
// the creation of accounts in it.
func shopless(c *client, t *testing.T, directory string) string {
	t.Helper()
	application := c.application(t, "Through "+c.NewID().String())
	c.mapping(t, application, directory, object{"isDefaultAccountStore": true})
	return application
}

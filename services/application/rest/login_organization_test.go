package rest_test

import (
	"errors"
	"testing"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/services/application/applicationtest"
)

// The rows of docs/interface/applications.md#login-attempts that speak of
// organizations and groups.
func TestLoginsThroughOrganizationsAndGroups(t *testing.T) {
	t.Parallel()
	c := open(t)
	shop, bare := c.application(t, "Shop"), c.application(t, "Bare")
	front, vault, staff, shared := c.directory(t, "Front"), c.directory(t, "Vault"), c.directory(t, "Staff"),
		c.directory(t, "Shared")
	tellers, idle, admins := c.group(t, staff, "Tellers"), c.group(t, staff, "Idle"), c.group(t, shared, "Admins")
	bank, closed, empty, elsewhere := c.organization(t, "bank"), c.organization(t, "closed"), c.organization(t, "empty"),
		c.organization(t, "elsewhere")
	c.mapping(t, shop, front, nil)
	c.mapping(t, shop, bank, nil)
	c.mapping(t, shop, closed, nil)
	c.mapping(t, shop, empty, nil)
	c.mapping(t, shop, idle, nil)
	c.mapping(t, shop, admins, nil)
	c.organizationMapping(t, bank, vault, nil)
	c.organizationMapping(t, bank, tellers, object{"listIndex": 0})
	c.organizationMapping(t, closed, shared, nil)
	c.organizationMapping(t, closed, front, nil)
	c.update(t, closed, object{"status": "DISABLED"})
	c.Directories.DisableGroup(t, c.ref(t, idle))

	account := map[string]string{}
	add := func(name, directory, email string, groups ...string) {
		v := c.Account(t, c.tenant, idOf(t, directory), email)
		for _, group := range groups {
			c.join(t, v, group)
		}
		account[name] = applicationtest.Base.To("accounts", v)
	}
	add("front jo", front, "jo@example.test")
	add("teller jo", staff, "jo@example.test", tellers)
	add("vault jo", vault, "jo@example.test")
	add("teller sam", staff, "sam@example.test", tellers)
	add("vault sam", vault, "sam@example.test")
	add("vault ann", vault, "ann@example.test")
	add("staff bob", staff, "bob@example.test")
	add("idle eve", staff, "eve@example.test", idle)
	add("shared kim", shared, "kim@example.test")
	add("shared lee", shared, "lee@example.test", admins)

	at := func(store object, login string) object {
		body := object{"type": "basic", "value": value(login+"@example.test", applicationtest.Password)}
		if store != nil {
			body["accountStore"] = store
		}
		return body
	}
	key := func(key string) object { return object{"nameKey": key} }
	for _, scenario := range []struct {
		what  string
		body  object
		who   string // empty: refused
		code  int
		bland bool // the message is the same for every 71xx
	}{
		{"a store before an organization", at(nil, "jo"), "front jo", 0, false},
		{"the first store of an organization", at(nil, "sam"), "teller sam", 0, false},
		{"a later store of an organization", at(nil, "ann"), "vault ann", 0, false},
		{"an organization by its key", at(key("bank"), "jo"), "teller jo", 0, false},
		{"an organization by its key in another case", at(key("BANK"), "jo"), "teller jo", 0, false},
		{"an organization by its href", at(link(bank), "jo"), "teller jo", 0, false},
		{"a member of a group that is mapped, beside a disabled organization", at(nil, "lee"), "shared lee", 0, false},
		{"a group by its href", at(link(admins), "lee"), "shared lee", 0, false},
		{"a directory that a disabled organization has too", at(link(front), "jo"), "front jo", 0, false},

		{"nobody else of a group's directory", at(nil, "bob"), "", 7104, true},
		{"a disabled group", at(nil, "eve"), "", 7105, true},
		{"a disabled group by its href", at(link(idle), "eve"), "", 7105, true},
		{"reached only through a disabled organization", at(nil, "kim"), "", 7107, true},
		{"a disabled organization by its key", at(key("closed"), "kim"), "", 7107, true},
		{"a disabled organization by its href", at(link(closed), "jo"), "", 7107, true},
		{"nobody outside of the organization", at(key("bank"), "lee"), "", 7104, true},
		{"an organization without stores", at(key("empty"), "jo"), "", 4605, true},
		{"an organization without stores by its href", at(link(empty), "jo"), "", 4605, true},
		{"an organization that is not mapped", at(link(elsewhere), "jo"), "", 5114, true},
		{"an organization that is not mapped, by its key", at(key("elsewhere"), "jo"), "", 5114, true},
		{"a group that is not mapped", at(link(c.group(t, front, "Other")), "jo"), "", 5114, true},
		{"a directory that only an organization has", at(link(vault), "jo"), "", 5114, true},
		{"an unknown key", at(key("nobody"), "jo"), "", 2014, false},
		{"a key of no form", at(key("\x00"), "jo"), "", 2014, false},
		{"an empty key", at(key(""), "jo"), "", 2004, false},
		{"a group that never was", at(link(applicationtest.Base.To("groups", c.NewID())), "jo"), "", 2014, false},
		{"an organization that never was", at(link(applicationtest.Base.To("organizations", c.NewID())), "jo"), "", 2014,
			false},
	} {
		t.Run(scenario.what, func(t *testing.T) {
			if scenario.who != "" {
				if got := linked(t, c.want(t, 200, "POST", shop+"/loginAttempts", scenario.body).object(t),
					"account"); got != account[scenario.who] {
					t.Errorf("%s logged in, want %s", got, account[scenario.who])
				}
				return
			}
			refusal := c.refused(t, 400, scenario.code, "POST", shop+"/loginAttempts", scenario.body)
			if bland := refusal["message"] == "Invalid username or password."; bland != scenario.bland {
				t.Errorf("the message is %q", refusal["message"])
			}
		})
	}
	t.Run("a wrong password shows nothing of the organization", func(t *testing.T) {
		c.refused(t, 400, 7100, "POST", shop+"/loginAttempts",
			object{"type": "basic", "value": value("kim@example.test", "Wrong1234")})
	})
	t.Run("an organization without stores is not an application without stores", func(t *testing.T) {
		c.refused(t, 400, 5105, "POST", bare+"/loginAttempts", at(nil, "jo"))
		c.mapping(t, bare, empty, nil)
		c.refused(t, 400, 7104, "POST", bare+"/loginAttempts", at(nil, "jo"))
	})
	t.Run("tokens stand and fall with the way to the account", func(t *testing.T) {
		for who, want := range map[string]*apierr.Error{
			"front jo": nil, "teller sam": nil, "vault ann": nil, "shared lee": nil,
			"staff bob": apierr.TokenAccountUnreachable, "idle eve": apierr.TokenStoreDisabled,
			"shared kim": apierr.TokenStoreDisabled,
		} {
			_, err := c.Service.CheckAccess(t.Context(),
				applicationapi.CheckAccess{Tenant: c.tenant, Application: idOf(t, shop), Account: idOf(t, account[who])})
			if got := apierr.From(err); got != want && (got == nil || want == nil || got.Code != want.Code) {
				t.Errorf("%s: the error is %v, want %v", who, err, want)
			}
		}
	})
	t.Run("a peer names an organization by its key", func(t *testing.T) {
		in := applicationapi.Login{Tenant: c.tenant, Application: idOf(t, shop), Login: "jo@example.test",
			Password: applicationtest.Password, NameKey: "Bank"}
		logged, err := c.Service.Login(t.Context(), in)
		if err != nil || applicationtest.Base.To("accounts", logged.Account.ID) != account["teller jo"] ||
			logged.Organization != idOf(t, bank) {
			t.Errorf("%v logged in to %v, %v", logged.Account.Email, logged.Organization, err)
		}
		in.NameKey = "closed"
		if _, err := c.Service.Login(t.Context(), in); !errors.Is(err, apierr.OrganizationDisabled) {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("resets go where logins do", func(t *testing.T) {
		reset := func(store object, login string) object {
			body := object{"email": login + "@example.test"}
			if store != nil {
				body["accountStore"] = store
			}
			return body
		}
		if got := linked(t, c.want(t, 200, "POST", shop+"/passwordResetTokens", reset(key("bank"), "jo")).object(t),
			"account"); got != account["teller jo"] {
			t.Errorf("the reset is for %s", got)
		}
		for what, scenario := range map[string]struct {
			body object
			code int
		}{
			"a disabled organization":              {reset(key("closed"), "kim"), 2016},
			"reached only through a disabled one":  {reset(nil, "kim"), 2016},
			"an organization without stores":       {reset(key("empty"), "jo"), 2016},
			"an organization that is not mapped":   {reset(key("elsewhere"), "jo"), 5114},
			"an unknown key":                       {reset(key("nobody"), "jo"), 2014},
			"nobody outside of the named group":    {reset(link(admins), "jo"), 2016},
			"not a member of the group but beside": {reset(nil, "bob"), 2016},
		} {
			t.Run(what, func(t *testing.T) {
				c.refused(t, 400, scenario.code, "POST", shop+"/passwordResetTokens", scenario.body)
			})
		}
	})
	t.Run("as soon as a mapping is gone, or an organization", func(t *testing.T) {
		for _, m := range items(t, c.get(t, tellers+"/accountStoreMappings"), "href") {
			t.Errorf("the group is mapped to an application: %s", m)
		}
		own := items(t, c.get(t, bank+"/accountStoreMappings?orderBy=listIndex"), "href")
		c.want(t, 204, "DELETE", own[0], nil)
		if got := linked(t, c.want(t, 200, "POST", shop+"/loginAttempts", at(nil, "sam")).object(t),
			"account"); got != account["vault sam"] {
			t.Errorf("%s logged in", got)
		}
		c.want(t, 204, "DELETE", bank, nil)
		c.refused(t, 400, 7104, "POST", shop+"/loginAttempts", at(nil, "sam"))
		c.refused(t, 400, 2014, "POST", shop+"/loginAttempts", at(key("bank"), "sam"))
	})
}

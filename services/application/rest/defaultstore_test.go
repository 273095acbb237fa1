package rest_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/services/application/applicationtest"
)

// mapped is one of the two kinds of owner of mappings: application or organization.
type mapped struct {
	name string // of the member that links to it
	path string // of its mappings
	make func(t *testing.T, key string) string

	// The codes of its refusals.
	twice, social, mirror, mirrorGroup, mirrorForGroups, groupForGroups int
	noAccounts, accountsDisabled, noGroups, groupsDisabled              int
}

func kindsOf(c *client) []mapped {
	return []mapped{
		{"application", "/accountStoreMappings", c.application, 5104, 5200, 5106, 5108, 5110, 5112, 5100, 5101, 5102, 5103},
		{"organization", "/organizationAccountStoreMappings", c.organization, 4604, 4700, 4606, 4608, 4610, 4612, 4600, 4601,
			4602, 4603},
	}
}

func TestStoresThatCannotBeDefaults(t *testing.T) {
	t.Parallel()
	c := open(t)
	people, mirror := c.directory(t, "People"), c.directory(t, "Mirror")
	staff, mirrored := c.group(t, people, "Staff"), c.group(t, mirror, "Mirrored")
	c.Directories.Mirror(t, c.ref(t, mirror), "ldap")
	for _, kind := range kindsOf(c) {
		owner := kind.make(t, "of-"+kind.name)
		for _, scenario := range []struct {
			what, store, flag string
			code              int
		}{
			{"a mirror for accounts", mirror, "isDefaultAccountStore", kind.mirror},
			{"a group of a mirror for accounts", mirrored, "isDefaultAccountStore", kind.mirrorGroup},
			{"a mirror for groups", mirror, "isDefaultGroupStore", kind.mirrorForGroups},
			{"a group for groups", staff, "isDefaultGroupStore", kind.groupForGroups},
			{"a group of a mirror for groups", mirrored, "isDefaultGroupStore", kind.groupForGroups},
		} {
			t.Run("of an "+kind.name+": "+scenario.what, func(t *testing.T) {
				body := object{kind.name: link(owner), "accountStore": link(scenario.store), scenario.flag: true}
				c.refused(t, 400, scenario.code, "POST", kind.path, body)
				delete(body, scenario.flag)
				made := text(c.create(t, kind.path, body)["href"])
				c.refused(t, 409, kind.twice, "POST", kind.path, body)
				c.refused(t, 400, scenario.code, "POST", made, object{scenario.flag: "true", "listIndex": 0})
				if m := c.update(t, made, object{scenario.flag: false}); m[scenario.flag] != false {
					t.Errorf("the mapping is %v", m)
				}
				c.want(t, 204, "DELETE", made, nil)
			})
		}
		t.Run("a group of an "+kind.name+" takes accounts", func(t *testing.T) {
			made := c.create(t, kind.path,
				object{kind.name: link(owner), "accountStore": link(staff), "isDefaultAccountStore": true})
			if made["isDefaultAccountStore"] != true || linked(t, made, "accountStore") != staff {
				t.Errorf("the mapping is %v", made)
			}
		})
	}
}

func TestOneDirectoryOfEachSocialProvider(t *testing.T) {
	t.Parallel()
	c := open(t)
	of := func(provider string) string {
		directory := c.directory(t, provider+" "+c.NewID().String())
		c.Directories.Mirror(t, c.ref(t, directory), provider)
		return directory
	}
	for _, kind := range kindsOf(c) {
		t.Run("of an "+kind.name, func(t *testing.T) {
			owner := kind.make(t, "social-"+kind.name)
			body := func(store string) object { return object{kind.name: link(owner), "accountStore": link(store)} }
			google := of("google")
			first := text(c.create(t, kind.path, body(google))["href"])
			c.refused(t, 409, kind.social, "POST", kind.path, body(of("google")))
			c.refused(t, 409, kind.social, "POST", kind.path, body(of("Google")))
			c.refused(t, 409, kind.twice, "POST", kind.path, body(google))
			for _, store := range []string{of("facebook"), of("forge"), of("ldap"), of("ldap"), of("saml"), of("saml"),
				of("ad")} {
				c.create(t, kind.path, body(store))
			}
			c.want(t, 204, "DELETE", first, nil)
			c.create(t, kind.path, body(of("google")))
			var made, refused atomic.Int32
			var all sync.WaitGroup
			for range 6 {
				store := of("github")
				all.Go(func() {
					switch a := c.send(t, "POST", kind.path, body(store)); {
					case a.status == 201:
						made.Add(1)
					case a.status == 409 && a.object(t)["code"] == float64(kind.social):
						refused.Add(1)
					default:
						t.Errorf("the request answers %d %s", a.status, a.body)
					}
				})
			}
			all.Wait()
			if made.Load() != 1 || refused.Load() != 5 {
				t.Errorf("%d were made and %d refused", made.Load(), refused.Load())
			}
		})
	}
}

func TestOrganizationsAsStores(t *testing.T) {
	t.Parallel()
	c := open(t)
	bank, other, shop := c.organization(t, "bank"), c.organization(t, "other"), c.application(t, "Shop")
	gone := applicationtest.Base.To("organizations", c.NewID())
	inside := c.refused(t, 400, 4614, "POST", "/organizationAccountStoreMappings",
		object{"organization": link(bank), "accountStore": link(other)})
	if literal := "An Organization cannot be mapped as an Account Store for another Organization."; inside["developerMessage"] != literal {
		t.Errorf("the refusal says %q, and clients compare %q", inside["developerMessage"], literal)
	}
	c.refused(t, 400, 4614, "POST", "/organizationAccountStoreMappings",
		object{"organization": link(bank), "accountStore": link(bank)})
	c.refused(t, 400, 2014, "POST", "/accountStoreMappings", object{"application": link(shop), "accountStore": link(gone)})
	c.refused(t, 400, 2014, "POST", "/organizationAccountStoreMappings",
		object{"organization": link(gone), "accountStore": link(c.directory(t, "D"))})
	c.refused(t, 400, 2014, "POST", "/organizationAccountStoreMappings",
		object{"organization": link(shop), "accountStore": link(c.directory(t, "E"))})
	c.refused(t, 400, 2000, "POST", "/organizationAccountStoreMappings", object{"accountStore": link(c.directory(t, "F"))})
	c.refused(t, 400, 2015, "POST", "/organizationAccountStoreMappings",
		object{"application": link(shop), "accountStore": link(c.directory(t, "G"))})
	mapping := c.mapping(t, shop, bank, object{"isDefaultAccountStore": true, "isDefaultGroupStore": true})
	c.refused(t, 409, 5104, "POST", "/accountStoreMappings", object{"application": link(shop), "accountStore": link(bank)})
	t.Run("a mapping is one of its own kind", func(t *testing.T) {
		own := c.organizationMapping(t, bank, c.directory(t, "H"), nil)
		for _, path := range []string{"/organizationAccountStoreMappings/" + idOf(t, mapping).String(),
			"/accountStoreMappings/" + idOf(t, own).String()} {
			c.refused(t, 404, 404, "GET", path, nil)
			c.refused(t, 404, 404, "POST", path, object{"listIndex": 0})
			c.want(t, 204, "DELETE", path, nil)
		}
	})
}

// The default stores of section 15: a directory, a group whose members the
// accounts become, or an organization that leads on to its own.
func TestCreationThroughDefaultStores(t *testing.T) {
	t.Parallel()
	c := open(t)
	people := c.directory(t, "People")
	staff := c.group(t, people, "Staff")
	n := 0
	account := func() object {
		n++
		return object{"email": fmt.Sprintf("jo%d@example.test", n), "password": applicationtest.Password}
	}
	group := func() object {
		n++
		return object{"name": fmt.Sprintf("Group %d", n)}
	}
	for _, kind := range kindsOf(c) {
		t.Run("of an "+kind.name, func(t *testing.T) {
			owner := kind.make(t, "through-"+kind.name)
			own, closed := c.directory(t, "Own "+kind.name), c.directory(t, "Closed "+kind.name)
			idle := c.group(t, own, "Idle")
			c.Directories.Disable(t, c.ref(t, closed))
			c.Directories.DisableGroup(t, c.ref(t, idle))
			add := func(store string) string {
				return text(c.create(t, kind.path, object{kind.name: link(owner), "accountStore": link(store)})["href"])
			}
			c.refused(t, 400, kind.noAccounts, "POST", owner+"/accounts", account())
			c.refused(t, 400, kind.noGroups, "POST", owner+"/groups", group())
			mapping := add(own)
			c.refused(t, 400, kind.noAccounts, "POST", owner+"/accounts", account())
			c.update(t, mapping, object{"isDefaultAccountStore": true})
			c.refused(t, 400, kind.noGroups, "POST", owner+"/groups", group())
			c.update(t, mapping, object{"isDefaultGroupStore": true})
			if made := c.create(t, owner+"/accounts", account()); linked(t, made, "directory") != own {
				t.Errorf("the account is %v", made)
			}
			made := group()
			if got := c.create(t, owner+"/groups", made); linked(t, got, "directory") != own {
				t.Errorf("the group is %v", got)
			}
			c.refused(t, 409, 2001, "POST", owner+"/groups", made)
			c.refused(t, 400, 2000, "POST", owner+"/groups", object{})
			c.refused(t, 400, 2015, "POST", owner+"/groups", object{"name": "x", "accountStore": "x"})

			shut := add(closed)
			c.update(t, shut, object{"isDefaultAccountStore": true, "isDefaultGroupStore": true})
			c.refused(t, 400, kind.accountsDisabled, "POST", owner+"/accounts", account())
			c.refused(t, 400, kind.groupsDisabled, "POST", owner+"/groups", group())
			c.update(t, add(idle), object{"isDefaultAccountStore": true})
			c.refused(t, 400, kind.accountsDisabled, "POST", owner+"/accounts", account())

			members := add(staff)
			c.update(t, members, object{"isDefaultAccountStore": true})
			joined := c.create(t, owner+"/accounts", account())
			stores, err := c.Directories.StoresOf(t.Context(), c.ref(t, text(joined["href"])))
			if err != nil || len(stores.Stores) != 2 || stores.Stores[1].ID != idOf(t, staff) ||
				linked(t, joined, "directory") != people {
				t.Errorf("the account %v is in %v, %v", joined, stores, err)
			}
			t.Run("one that is gone, before its event is here", func(t *testing.T) {
				fleeting := c.group(t, people, "Fleeting "+kind.name)
				m := add(fleeting)
				c.update(t, m, object{"isDefaultAccountStore": true})
				c.Directories.DeleteGroup(t, c.ref(t, fleeting))
				c.refused(t, 400, kind.noAccounts, "POST", owner+"/accounts", account())
				c.refused(t, 404, 404, "POST", m, object{"isDefaultAccountStore": true})
				c.refused(t, 404, 404, "GET", m, nil)
				if err := c.Service.GroupDeleted(t.Context(), events.Envelope{ID: c.NewID(), Tenant: c.tenant},
					events.GroupDeleted{Tenant: c.tenant, Group: idOf(t, fleeting)}); err != nil {
					t.Fatal(err)
				}
				c.refused(t, 404, 404, "GET", m, nil)
			})
		})
	}
	t.Run("of an organization that is a default store", func(t *testing.T) {
		shop, bank := c.application(t, "Shop"), c.organization(t, "bank")
		c.mapping(t, shop, bank, object{"isDefaultAccountStore": true, "isDefaultGroupStore": true})
		c.refused(t, 400, 5116, "POST", shop+"/accounts", account())
		c.refused(t, 400, 5118, "POST", shop+"/groups", group())
		vault := c.directory(t, "Vault")
		c.organizationMapping(t, bank, vault, object{"isDefaultAccountStore": true, "isDefaultGroupStore": true})
		if made := c.create(t, shop+"/accounts", account()); linked(t, made, "directory") != vault {
			t.Errorf("the account is %v", made)
		}
		if made := c.create(t, shop+"/groups", group()); linked(t, made, "directory") != vault {
			t.Errorf("the group is %v", made)
		}
		c.update(t, bank, object{"status": "DISABLED"})
		c.refused(t, 400, 5101, "POST", shop+"/accounts", account())
		c.refused(t, 400, 5103, "POST", shop+"/groups", group())
		c.update(t, bank, object{"status": "ENABLED"})
		c.Directories.Disable(t, c.ref(t, vault))
		c.refused(t, 400, 5117, "POST", shop+"/accounts", account())
		c.refused(t, 400, 5119, "POST", shop+"/groups", group())
	})
}

package rest_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/doorward/doorward/services/application/applicationtest"
)

// Golden test of every representation, byte by byte but for its ids.
func TestOrganizationAnswers(t *testing.T) {
	t.Parallel()
	c := open(t)
	bank := c.organization(t, "bank-of-o")
	people := c.directory(t, "People")
	mapping := c.organizationMapping(t, bank, people, object{"isDefaultAccountStore": true})
	policy := linked(t, c.get(t, bank), "accountLinkingPolicy")
	for _, scenario := range []struct {
		name, method, path string
		body               any
		status             int
	}{
		{"organization", "GET", bank, nil, 200},
		{"organization-created", "POST", "/organizations?createDirectory=true",
			object{"name": "Café", "nameKey": "CAFE", "description": "Coffee", "status": "disabled",
				"customData": object{"plan": "gold"}}, 201},
		{"organization-updated", "POST", bank,
			object{"name": "Bank", "nameKey": "bank", "description": nil, "href": "x", "tenant": nil, "accounts": object{}},
			200},
		{"organizations", "GET", applicationtest.Base.To("tenants", c.tenant) + "/organizations?nameKey=ba*&limit=1", nil,
			200},
		{"organization-mapping", "GET", mapping, nil, 200},
		{"organization-mapping-updated", "POST", mapping, object{"isDefaultGroupStore": "true"}, 200},
		{"organization-mappings", "GET", bank + "/accountStoreMappings", nil, 200},
		{"directory-organizations", "GET", people + "/organizations", nil, 200},
		{"directory-organization-mappings", "GET", people + "/organizationMappings", nil, 200},
		{"linking-policy", "GET", policy, nil, 200},
		{"linking-policy-updated", "POST", policy,
			object{"status": "enabled", "automaticProvisioning": "ENABLED", "matchingProperty": "EMAIL"}, 200},
		{"organization-account-created", "POST", bank + "/accounts",
			object{"email": "jo@example.test", "password": applicationtest.Password}, 201},
		{"organization-group-created", "POST", bank + "/groups", object{"name": "Tellers", "description": "They count"}, 201},
	} {
		t.Run(scenario.name, func(t *testing.T) {
			c.Clock.Tick()
			c.want(t, scenario.status, scenario.method, scenario.path, scenario.body).Golden(scenario.name)
		})
	}
}

func TestOrganizationsThatAreRefused(t *testing.T) {
	t.Parallel()
	c := open(t)
	c.organization(t, "taken")
	bank := c.organization(t, "bank")
	before := c.want(t, 200, "GET", bank, nil).body
	long := func(n int) string { return strings.Repeat("é", n) }
	for _, scenario := range []struct {
		what         string
		body         object
		status, code int
	}{
		{"a taken name, in another case and with spaces", object{"name": " tAKEN "}, 409, 2001},
		{"a taken key", object{"nameKey": "taken"}, 409, 2001},
		{"a taken key in another case", object{"nameKey": "TAKEN"}, 409, 2001},
		{"a null name", object{"name": nil}, 400, 2000},
		{"a blank name", object{"name": " "}, 400, 2000},
		{"a long name", object{"name": long(256)}, 400, 2008},
		{"a name of another type", object{"name": 7}, 400, 2004},
		{"a null key", object{"nameKey": nil}, 400, 2000},
		{"an empty key", object{"nameKey": ""}, 400, 2000},
		{"a long key", object{"nameKey": strings.Repeat("k", 64)}, 400, 2008},
		{"a key that begins with a hyphen", object{"nameKey": "-bank"}, 400, 2006},
		{"a key that ends with a hyphen", object{"nameKey": "bank-"}, 400, 2006},
		{"a key that is a hyphen", object{"nameKey": "-"}, 400, 2006},
		{"a key with a space", object{"nameKey": "my bank"}, 400, 2006},
		{"a key with a dot", object{"nameKey": "my.bank"}, 400, 2006},
		{"a key with a line end", object{"nameKey": "my\nbank"}, 400, 2006},
		{"a key with an umlaut", object{"nameKey": "bänk"}, 400, 2006},
		{"a key with the Kelvin sign", object{"nameKey": "ban\u212a"}, 400, 2006},
		{"a key with NUL", object{"nameKey": "bank\x00"}, 400, 2006},
		{"a long description", object{"description": long(1001)}, 400, 2008},
		{"an unknown status", object{"status": "UNVERIFIED"}, 400, 2003},
		{"an empty status", object{"status": ""}, 400, 2000},
		{"customData with a reserved key", object{"customData": object{"meta": 1}}, 400, 3003},
		{"an unknown property", object{"key": "bank"}, 400, 2015},
	} {
		t.Run(scenario.what, func(t *testing.T) {
			c.refused(t, scenario.status, scenario.code, "POST", bank, scenario.body)
			body := object{"name": "New", "nameKey": "new"}
			for name, value := range scenario.body {
				body[name] = value
			}
			c.refused(t, scenario.status, scenario.code, "POST", "/organizations", body)
			c.refused(t, scenario.status, scenario.code, "POST", "/organizations?createDirectory=true", body)
		})
	}
	for what, body := range map[string]object{
		"without a name": {"nameKey": "new"}, "without a key": {"name": "New"},
		"a long name without a key": {"name": strings.Repeat("a", 4001)},
	} {
		t.Run(what, func(t *testing.T) { c.refused(t, 400, 2000, "POST", "/organizations", body) })
	}
	t.Run("without a key, in words that clients compare", func(t *testing.T) {
		refusal := c.refused(t, 400, 2000, "POST", "/organizations", object{"name": "New"})
		if refusal["message"] != "Organization nameKey cannot be null, empty, or blank." ||
			refusal["developerMessage"] != "Organization nameKey is required; it cannot be null, empty, or blank." {
			t.Errorf("the messages are %q and %q", refusal["message"], refusal["developerMessage"])
		}
	})
	t.Run("with the name of a directory that is taken", func(t *testing.T) {
		c.refused(t, 409, 4520, "POST", "/organizations?createDirectory=service%20ADMINISTRATORS",
			object{"name": "New", "nameKey": "new"})
	})
	t.Run("nothing was made or changed", func(t *testing.T) {
		page := c.get(t, applicationtest.Base.To("tenants", c.tenant)+"/organizations")
		if keys := items(t, page, "nameKey"); !slices.Equal(keys, []string{"taken", "bank"}) {
			t.Errorf("the organizations are %q", keys)
		}
		if after := c.want(t, 200, "GET", bank, nil).body; string(after) != string(before) {
			t.Errorf("the organization was %s and is %s", before, after)
		}
		if names := c.Directories.Names(t, c.tenant); len(names) != 1 {
			t.Errorf("refusals left the directories %q", names)
		}
	})
}

func TestOrganizationsAtTheirLimits(t *testing.T) {
	t.Parallel()
	c := open(t)
	for i, body := range []object{
		{"name": "x", "nameKey": "k"},
		{"name": strings.Repeat("é", 255), "nameKey": strings.Repeat("k", 63), "description": strings.Repeat("é", 1000)},
		{"name": "Digits", "nameKey": "7-0"},
		{"name": "Empty description", "nameKey": "empty", "description": ""},
	} {
		made := c.create(t, "/organizations", body)
		for name, want := range body {
			if made[name] != want {
				t.Errorf("%d: the %s is %v", i, name, made[name])
			}
		}
	}
	made := c.create(t, "/organizations", object{"name": " Trimmed ", "nameKey": " Upper-CASE "})
	if made["name"] != "Trimmed" || made["nameKey"] != "upper-case" || made["status"] != "ENABLED" ||
		made["defaultAccountStoreMapping"] != nil {
		t.Errorf("the organization is %v", made)
	}
	t.Run("a key that is given up is free", func(t *testing.T) {
		c.update(t, text(made["href"]), object{"nameKey": "Other"})
		c.create(t, "/organizations", object{"name": "Next", "nameKey": "upper-case"})
	})
	t.Run("its own name and key are not taken", func(t *testing.T) {
		c.update(t, text(made["href"]), object{"name": "TRIMMED", "nameKey": "OTHER"})
	})
}

func TestAnOrganizationBeginsWithADirectory(t *testing.T) {
	t.Parallel()
	c := open(t)
	made := c.create(t, "/organizations?createDirectory=true", object{"name": "Bank", "nameKey": "bank"})
	mapping := linked(t, made, "defaultAccountStoreMapping")
	if linked(t, made, "defaultGroupStoreMapping") != mapping ||
		linked(t, c.get(t, mapping), "organization") != text(made["href"]) {
		t.Errorf("the organization is %v", made)
	}
	c.create(t, "/organizations?createDirectory=Customers", object{"name": "Second", "nameKey": "second"})
	c.create(t, "/organizations?createDirectory=false", object{"name": "Third", "nameKey": "third"})
	names := c.Directories.Names(t, c.tenant)
	slices.Sort(names)
	if !slices.Equal(names, []string{"Bank Directory", "Customers", "Service Administrators"}) {
		t.Errorf("the directories are %q", names)
	}
	c.create(t, text(made["href"])+"/accounts", object{"email": "jo@example.test", "password": applicationtest.Password})
}

func TestOfParallelOrganizationsOfOneKeyOneIsMade(t *testing.T) {
	t.Parallel()
	c := open(t)
	var made, taken atomic.Int32
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			a := c.send(t, "POST", "/organizations?createDirectory=true",
				object{"name": fmt.Sprintf("Bank %d", i), "nameKey": []string{"bank", "BANK"}[i%2]})
			switch a.status {
			case 201:
				made.Add(1)
			case 409:
				taken.Add(1)
			default:
				t.Errorf("the organization answers %d %s", a.status, a.body)
			}
		})
	}
	all.Wait()
	if made.Load() != 1 || taken.Load() != 19 {
		t.Errorf("%d were made and %d refused", made.Load(), taken.Load())
	}
	if names := c.Directories.Names(t, c.tenant); len(names) != 2 {
		t.Errorf("the directories are %q", names)
	}
}

func TestOrganizationsAreListed(t *testing.T) {
	t.Parallel()
	c := open(t)
	tenant := applicationtest.Base.To("tenants", c.tenant)
	for _, key := range []string{"beta", "alpha", "gamma"} {
		c.update(t, c.organization(t, key),
			object{"name": strings.ToUpper(key), "description": "The " + key + " bank",
				"status": map[bool]string{true: "DISABLED", false: "ENABLED"}[key == "gamma"]})
	}
	for query, want := range map[string]string{
		"":                              "3 [beta alpha gamma]",
		"?orderBy=nameKey":              "3 [alpha beta gamma]",
		"?orderBy=name+desc&limit=1":    "3 [gamma]",
		"?offset=2":                     "3 [gamma]",
		"?nameKey=ALPHA":                "1 [alpha]",
		"?nameKey=*ta":                  "1 [beta]",
		"?name=alpha":                   "1 [alpha]",
		"?description=*BETA*":           "1 [beta]",
		"?q=GAMMA":                      "1 [gamma]",
		"?status=disabled":              "1 [gamma]",
		"?createdAt=[2027,]":            "0 []",
		"?name=a*&status=DISABLED":      "0 []",
		"?orderBy=status,createdAt+asc": "3 [gamma beta alpha]",
	} {
		t.Run(query, func(t *testing.T) {
			page := c.get(t, tenant+"/organizations"+query)
			if got := fmt.Sprint(page["size"], " ", append([]string{}, items(t, page, "nameKey")...)); got != want {
				t.Errorf("the page is %s, want %s", got, want)
			}
		})
	}
	for query, code := range map[string]int{"?tenant=x": 2105, "?orderBy=tenant": 2106, "?limit=0": 2103} {
		c.refused(t, 400, code, "GET", tenant+"/organizations"+query, nil)
	}
}

func TestCustomDataOfAnOrganization(t *testing.T) {
	t.Parallel()
	c := open(t)
	bank := text(c.create(t, "/organizations",
		object{"name": "Bank", "nameKey": "bank", "customData": object{"plan": "gold"}})["href"])
	modified := c.get(t, bank)["modifiedAt"]
	c.Clock.Tick()
	if after := c.update(t, bank, object{"customData": object{"seats": 3}}); after["modifiedAt"] != modified {
		t.Errorf("customData alone changed the organization at %v", after["modifiedAt"])
	}
	if data := c.get(t, bank+"/customData"); data["plan"] != "gold" || data["seats"] != 3.0 || data["href"] != bank+
		"/customData" {
		t.Errorf("the organization is %v", data)
	}
	c.want(t, 200, "POST", bank+"/customData", object{"plan": "silver"})
	c.want(t, 204, "DELETE", bank+"/customData/seats", nil)
	if data := c.get(t, bank+"/customData"); data["plan"] != "silver" || data["seats"] != nil {
		t.Errorf("the organization is %v", data)
	}
	c.want(t, 204, "DELETE", bank, nil)
	c.refused(t, 404, 404, "GET", bank+"/customData", nil)
	if n := c.count(t, "custom_data"); n != 0 {
		t.Errorf("%d documents are left", n)
	}
}

// The row of docs/interface/conventions.md#cascades.
func TestWhatGoesWithAnOrganization(t *testing.T) {
	t.Parallel()
	c := open(t)
	bank, kept := c.organization(t, "bank"), c.organization(t, "kept")
	people, staff := c.directory(t, "People"), c.directory(t, "Staff")
	shop := c.application(t, "Shop")
	own := c.organizationMapping(t, bank, people, object{"isDefaultAccountStore": true, "isDefaultGroupStore": true})
	c.organizationMapping(t, kept, people, nil)
	first := c.mapping(t, shop, bank, object{"isDefaultAccountStore": true, "isDefaultGroupStore": true})
	last := c.mapping(t, shop, staff, nil)
	jo := applicationtest.Base.To("accounts", c.Account(t, c.tenant, idOf(t, people), "jo@example.test"))
	policy := linked(t, c.get(t, bank), "accountLinkingPolicy")
	if names := items(t, c.get(t, jo+"/applications"), "name"); !slices.Equal(names, []string{"Shop"}) {
		t.Errorf("the account's applications are %q", names)
	}

	c.want(t, 204, "DELETE", bank, nil)
	for _, gone := range []string{bank, own, first, policy, bank + "/accounts", bank + "/groups", bank +
		"/accountStoreMappings", bank + "/customData"} {
		c.refused(t, 404, 404, "GET", gone, nil)
	}
	c.want(t, 204, "DELETE", bank, nil)
	c.refused(t, 404, 404, "POST", bank, object{"name": "Again"})
	if m := c.get(t, last); m["listIndex"] != 0.0 {
		t.Errorf("the mapping behind it is at %v", m["listIndex"])
	}
	if a := c.get(t, shop); a["defaultAccountStoreMapping"] != nil || a["defaultGroupStoreMapping"] != nil {
		t.Errorf("the application is %v", a)
	}
	if n := len(items(t, c.get(t, jo+"/applications"), "name")); n != 0 {
		t.Errorf("the account has %d applications", n)
	}
	if keys := items(t, c.get(t, people+"/organizations"), "nameKey"); !slices.Equal(keys, []string{"kept"}) {
		t.Errorf("the directory's organizations are %q", keys)
	}
	if size := c.get(t, kept+"/accounts")["size"]; size != 1.0 {
		t.Errorf("the accounts that are kept are %v", size)
	}
}

// count returns the number of rows of a table.
func (c *client) count(t *testing.T, table string) (n int) {
	t.Helper()
	if err := c.DB.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

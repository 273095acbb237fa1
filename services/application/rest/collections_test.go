package rest_test

import (
	"fmt"
	"testing"

	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/services/application/applicationtest"
)

// An application A has the directory D1, a group of the directory D2, and an
// organization that has a group of D1, the whole of D3 and a group of D4.
func TestCollectionsFromEverySide(t *testing.T) {
	t.Parallel()
	c := open(t)
	shop, beside, bank := c.application(t, "Shop"), c.application(t, "Beside"), c.organization(t, "bank")
	var d, g [5]string
	for i := 1; i <= 4; i++ {
		d[i] = c.directory(t, fmt.Sprint("D", i))
		g[i] = c.group(t, d[i], fmt.Sprint("G", i))
	}
	account := map[string]string{} // by name
	newAccount := func(name, directory string, groups ...string) {
		v := c.Account(t, c.tenant, idOf(t, directory), name+"@example.test")
		for _, group := range groups {
			c.join(t, v, group)
		}
		account[name] = applicationtest.Base.To("accounts", v)
	}
	for i := 1; i <= 4; i++ {
		newAccount(fmt.Sprint("in", i), d[i], g[i])
		newAccount(fmt.Sprint("out", i), d[i])
	}
	c.mapping(t, shop, d[1], nil)
	c.mapping(t, shop, g[2], nil)
	c.mapping(t, shop, bank, object{"listIndex": 0})
	c.mapping(t, beside, g[1], nil)
	c.organizationMapping(t, bank, g[1], nil)
	c.organizationMapping(t, bank, d[3], nil)
	c.organizationMapping(t, bank, g[4], nil)

	list := func(path, member string) string {
		page := c.get(t, path)
		return fmt.Sprint(page["size"], append([]string{}, items(t, page, member)...))
	}
	check := func(t *testing.T, member string, wants map[string]string) {
		t.Helper()
		for path, want := range wants {
			if got := list(path, member); got != want {
				t.Errorf("%s returns %s, want %s", path, got, want)
			}
		}
	}
	t.Run("accounts", func(t *testing.T) {
		check(t, "email", map[string]string{
			shop + "/accounts?orderBy=email": "6 [in1@example.test in2@example.test in3@example.test in4@example.test " +
				"out1@example.test out3@example.test]",
			shop + "/accounts?email=in*":     "4 [in1@example.test in2@example.test in3@example.test in4@example.test]",
			bank + "/accounts?orderBy=email": "4 [in1@example.test in3@example.test in4@example.test out3@example.test]",
			bank + "/accounts?q=out":         "1 [out3@example.test]",
			beside + "/accounts":             "1 [in1@example.test]",
		})
	})
	t.Run("groups", func(t *testing.T) {
		check(t, "name", map[string]string{
			shop + "/groups":                    "4 [G1 G2 G3 G4]",
			shop + "/groups?name=g2":            "1 [G2]",
			shop + "/groups?orderBy=name+desc":  "4 [G4 G3 G2 G1]",
			shop + "/groups?limit=1&offset=3":   "4 [G4]",
			bank + "/groups":                    "3 [G1 G3 G4]",
			beside + "/groups?status=enabled":   "1 [G1]",
			beside + "/groups?description=none": "0 []",
		})
		for query, code := range map[string]int{"?directory=x": 2105, "?orderBy=directory": 2106, "?limit=x": 2103} {
			c.refused(t, 400, code, "GET", shop+"/groups"+query, nil)
			c.refused(t, 400, code, "GET", bank+"/groups"+query, nil)
		}
	})
	t.Run("applications and organizations", func(t *testing.T) {
		check(t, "name", map[string]string{
			d[1] + "/applications": "1 [Shop]", d[2] + "/applications": "0 []", g[2] + "/applications": "1 [Shop]", g[1] +
				"/applications": "1 [Beside]",
			d[3] + "/organizations": "1 [bank]", d[1] + "/organizations": "0 []",
			account["in1"] + "/applications": "2 [Shop Beside]", account["out1"] + "/applications": "1 [Shop]",
			account["in2"] + "/applications": "1 [Shop]", account["out2"] + "/applications": "0 []",
			account["in3"] + "/applications": "1 [Shop]", account["out3"] + "/applications": "1 [Shop]",
			account["in4"] + "/applications": "1 [Shop]", account["out4"] + "/applications": "0 []",
			account["in1"] + "/applications?name=b*": "1 [Beside]", account["in1"] +
				"/applications?orderBy=name&limit=1": "2 [Beside]",
		})
	})
	t.Run("mappings", func(t *testing.T) {
		for path, want := range map[string]string{
			shop + "/accountStoreMappings?orderBy=listIndex": "[" + bank + " " + d[1] + " " + g[2] + "]",
			bank + "/accountStoreMappings?orderBy=listIndex": "[" + g[1] + " " + d[3] + " " + g[4] + "]",
			d[3] + "/organizationMappings":                   "[" + d[3] + "]", d[3] + "/applicationMappings": "[]", d[1] +
				"/organizationMappings": "[]",
			g[1] + "/accountStoreMappings": "[" + g[1] + "]", g[4] + "/accountStoreMappings": "[]", g[2] +
				"/accountStoreMappings": "[" + g[2] + "]",
		} {
			got := []string{}
			for _, item := range c.get(t, path)["items"].([]any) {
				got = append(got, linked(t, item.(map[string]any), "accountStore"))
			}
			if fmt.Sprint(got) != want {
				t.Errorf("%s returns %v, want %s", path, got, want)
			}
		}
	})
	t.Run("of what never was", func(t *testing.T) {
		for _, path := range []string{"/organizations/%s/accounts", "/organizations/%s/groups",
			"/organizations/%s/accountStoreMappings", "/applications/%s/groups", "/groups/%s/applications",
			"/groups/%s/accountStoreMappings", "/accounts/%s/applications", "/directories/%s/organizations",
			"/directories/%s/organizationMappings", "/accountLinkingPolicies/%s"} {
			c.refused(t, 404, 404, "GET", fmt.Sprintf(path, c.NewID()), nil)
			c.refused(t, 404, 404, "GET", fmt.Sprintf(path, "x"), nil)
		}
	})
	t.Run("a deleted directory takes the mappings of its groups along", func(t *testing.T) {
		if _, err := c.Directories.DeleteDirectory(t.Context(), c.ref(t, d[1])); err != nil {
			t.Fatal(err)
		}
		if err := c.Service.DirectoryDeleted(t.Context(), events.Envelope{ID: c.NewID(), Tenant: c.tenant},
			events.DirectoryDeleted{Tenant: c.tenant, Directory: idOf(t, d[1])}); err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]string{shop: "[" + bank + "0 " + g[2] + "1]", bank: "[" + d[3] + "0 " + g[4] +
			"1]", beside: "[]"} {
			got := []string{}
			for _, item := range c.get(t, path+"/accountStoreMappings?orderBy=listIndex")["items"].([]any) {
				m := item.(map[string]any)
				got = append(got, fmt.Sprint(linked(t, m, "accountStore"), m["listIndex"]))
			}
			if fmt.Sprint(got) != want {
				t.Errorf("%s has %v, want %s", path, got, want)
			}
		}
	})
}

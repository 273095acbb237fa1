package rest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/doorward/doorward/services/application/applicationtest"
)

func TestMappingsThatAreRefused(t *testing.T) {
	t.Parallel()
	c := open(t)
	shop, directory, mapped := c.application(t, "Shop"), c.directory(t, "People"), c.directory(t, "Mapped")
	mapping := c.mapping(t, shop, mapped, object{"isDefaultAccountStore": true})
	nowhere := func(kind string) string { return applicationtest.Base.To(kind, c.NewID()) }
	body := func(application, store any) object {
		return object{"application": application, "accountStore": store}
	}

	for _, scenario := range []struct {
		what         string
		body         any
		status, code int
	}{
		{"a store that is mapped already", body(link(shop), link(mapped)), 409, 5104},
		{"no application", object{"accountStore": link(directory)}, 400, 2000},
		{"no store", object{"application": link(shop)}, 400, 2000},
		{"a null application", body(nil, link(directory)), 400, 2000},
		{"a null store", body(link(shop), nil), 400, 2000},
		{"a store that is text", body(link(shop), directory), 400, 2004},
		{"a store without href", body(link(shop), object{}), 400, 2004},
		{"a store whose href is null", body(link(shop), object{"href": nil}), 400, 2004},
		{"a store whose href is empty", body(link(shop), link("")), 400, 2002},
		{"an application whose href is empty", body(link(""), link(directory)), 400, 2014},
		{"an application that never was", body(link(nowhere("applications")), link(directory)), 400, 2014},
		{"a directory that never was", body(link(shop), link(nowhere("directories"))), 400, 2014},
		{"a group that never was", body(link(shop), link(nowhere("groups"))), 400, 2014},
		{"an organization that never was", body(link(shop), link(nowhere("organizations"))), 400, 2014},
		{"a store that is no store", body(link(shop), link(nowhere("accounts"))), 400, 2014},
		{"a directory as application", body(link(directory), link(directory)), 400, 2014},
		{"an application as store", body(link(shop), link(shop)), 400, 2014},
		{"a store of another deployment",
			body(link(shop), link(strings.Replace(directory, "doorward.test", "elsewhere.example", 1))), 400, 2014},
		{"what is below a store", body(link(shop), link(directory+"/accounts")), 400, 2014},
		{"a store that is no address", body(link(shop), link("directory")), 400, 2002},
		{"a store that is an address without a host", body(link(shop), link("directories:1")), 400, 2002},
		{"a store that is no address, of no application", object{"accountStore": link("directory")}, 400, 2000},
		{"a store whose id has another form", body(link(shop), link(string(applicationtest.Base)+"/directories/x")), 400,
			2014},
		{"the id of nothing", body(link(shop), link(string(applicationtest.Base)+"/directories/0000000000000000000000")), 400,
			2014},
		{"an index of another type", object{"application": link(shop), "accountStore": link(directory), "listIndex": "first"},
			400, 2004},
		{"a broken index", object{"application": link(shop), "accountStore": link(directory), "listIndex": 1.5}, 400, 2004},
		{"a flag of another type", object{"application": link(shop), "accountStore": link(directory),
			"isDefaultAccountStore": "yes"}, 400, 2004},
		{"an unknown property", object{"application": link(shop), "accountStore": link(directory), "priority": 1}, 400, 2015},
	} {
		t.Run("created with "+scenario.what, func(t *testing.T) {
			c.refused(t, scenario.status, scenario.code, "POST", "/accountStoreMappings", scenario.body)
		})
	}
	for what, scenario := range map[string]struct {
		body any
		code int
	}{
		"an index of another type": {object{"listIndex": "first"}, 2004},
		"a flag of another type":   {object{"isDefaultGroupStore": 1}, 2004},
		"an unknown property":      {object{"priority": 1}, 2015},
		"no object":                {`"x"`, 2006},
	} {
		t.Run("updated with "+what, func(t *testing.T) { c.refused(t, 400, scenario.code, "POST", mapping, scenario.body) })
	}
	t.Run("nothing was made or changed", func(t *testing.T) {
		page := c.get(t, shop+"/accountStoreMappings")
		if page["size"] != 1.0 || linked(t, c.get(t, shop), "defaultAccountStoreMapping") != mapping {
			t.Errorf("the mappings are %v", page)
		}
	})
}

func TestMappingsAreMoved(t *testing.T) {
	t.Parallel()
	c := open(t)
	shop := c.application(t, "Shop")
	names := map[string]string{} // directory → letter
	mapping := map[string]string{}
	add := func(letter string, more object) {
		directory := c.directory(t, letter)
		names[directory] = letter
		mapping[letter] = c.mapping(t, shop, directory, more)
	}
	// order is the order of login, and the default account and group store.
	order := func() (order string) {
		defaults := []string{"-", "-"}
		for _, item := range c.get(t, shop+"/accountStoreMappings?orderBy=listIndex")["items"].([]any) {
			m := item.(map[string]any)
			letter := names[linked(t, m, "accountStore")]
			order += letter
			if m["isDefaultAccountStore"] == true {
				defaults[0] = letter
			}
			if m["isDefaultGroupStore"] == true {
				defaults[1] = letter
			}
		}
		return order + " " + strings.Join(defaults, "")
	}
	want := func(t *testing.T, after, want string) {
		t.Helper()
		if got := order(); got != want {
			t.Errorf("after %s the order is %q, want %q", after, got, want)
		}
	}

	add("a", nil)
	add("b", object{"isDefaultAccountStore": "true", "isDefaultGroupStore": true})
	want(t, "two that name no place", "ab bb")
	add("c", object{"listIndex": 0})
	want(t, "one at the front", "cab bb")
	add("d", object{"listIndex": -7, "isDefaultGroupStore": true})
	want(t, "one before the front", "dcab bd")
	add("e", object{"listIndex": "99"})
	want(t, "one behind the end", "dcabe bd")

	for _, step := range []struct {
		letter string
		body   object
		want   string
	}{
		{"e", object{"listIndex": 0}, "edcab bd"},
		{"e", object{"listIndex": 2}, "dceab bd"},
		{"c", object{"listIndex": 99}, "deabc bd"},
		{"c", object{"listIndex": -1}, "cdeab bd"},
		{"c", object{"listIndex": 0}, "cdeab bd"},
		{"c", object{"isDefaultAccountStore": true}, "cdeab cd"},
		{"c", object{"isDefaultAccountStore": false}, "cdeab -d"},
		{"a", object{"isDefaultGroupStore": false}, "cdeab -d"},
		{"a", object{"isDefaultGroupStore": "true", "isDefaultAccountStore": true, "listIndex": 1}, "cadeb aa"},
		{"a", object{}, "cadeb aa"},
		{"a", object{"listIndex": nil, "application": link("x"), "accountStore": nil, "href": "x"}, "cadeb aa"},
		{"a", object{"isDefaultGroupStore": nil}, "cadeb a-"},
	} {
		t.Run(fmt.Sprintf("%s %v", step.letter, step.body), func(t *testing.T) {
			after := c.update(t, mapping[step.letter], step.body)
			want(t, "the change", step.want)
			if index := strings.Index(step.want, step.letter); after["listIndex"] != float64(index) {
				t.Errorf("the answer says %v, want %d", after["listIndex"], index)
			}
			if read := c.get(t, mapping[step.letter]); fmt.Sprint(read) != fmt.Sprint(after) {
				t.Errorf("read %v, answered %v", read, after)
			}
		})
	}
	c.want(t, 204, "DELETE", mapping["a"], nil)
	want(t, "a default was deleted", "cdeb --")
	if a := c.get(t, shop); a["defaultAccountStoreMapping"] != nil || a["defaultGroupStoreMapping"] != nil {
		t.Errorf("the application has the defaults %v and %v", a["defaultAccountStoreMapping"], a["defaultGroupStoreMapping"])
	}
	c.want(t, 204, "DELETE", mapping["a"], nil)
	c.want(t, 204, "DELETE", mapping["c"], nil)
	want(t, "the first was deleted", "deb --")
}

func TestMappingsAreListed(t *testing.T) {
	t.Parallel()
	c := open(t)
	first, second := c.application(t, "First"), c.application(t, "Second")
	shared, own := c.directory(t, "Shared"), c.directory(t, "Own")
	c.mapping(t, first, shared, nil)
	c.mapping(t, second, shared, nil)
	c.mapping(t, first, own, object{"listIndex": 0})

	for path, want := range map[string]string{
		first + "/accountStoreMappings":                                                   "[First:Own First:Shared]",
		first + "/accountStoreMappings?orderBy=createdAt":                                 "[First:Shared First:Own]",
		first + "/accountStoreMappings?listIndex=0":                                       "[First:Own]",
		first + "/accountStoreMappings?listIndex=1":                                       "[First:Shared]",
		first + "/accountStoreMappings?listIndex=99":                                      "[]",
		first + "/accountStoreMappings?orderBy=listIndex":                                 "[First:Own First:Shared]",
		first + "/accountStoreMappings?orderBy=createdAt%20desc":                          "[First:Own First:Shared]",
		first + "/accountStoreMappings?offset=1":                                          "[First:Shared]",
		first + "/accountStoreMappings?createdAt=[2027,]":                                 "[]",
		second + "/accountStoreMappings":                                                  "[Second:Shared]",
		shared + "/applicationMappings":                                                   "[Second:Shared First:Shared]",
		shared + "/applicationMappings?orderBy=createdAt%20desc":                          "[Second:Shared First:Shared]",
		own + "/applicationMappings":                                                      "[First:Own]",
		first + "/accountStoreMappings?orderBy=isDefaultAccountStore,isDefaultGroupStore": "[First:Shared First:Own]",
	} {
		t.Run(path, func(t *testing.T) {
			names := map[string]string{first: "First", second: "Second", shared: "Shared", own: "Own"}
			got := []string{}
			for _, item := range c.get(t, path)["items"].([]any) {
				m := item.(map[string]any)
				got = append(got, names[linked(t, m, "application")]+":"+names[linked(t, m, "accountStore")])
			}
			if fmt.Sprint(got) != want {
				t.Errorf("the mappings are %v, want %s", got, want)
			}
		})
	}
	for path, want := range map[string]string{
		shared + "/applications": "[First Second]", own + "/applications": "[First]", shared +
			"/applications?name=S*": "[Second]", shared + "/applications?orderBy=name%20desc&limit=1": "[Second]",
	} {
		t.Run(path, func(t *testing.T) {
			if got := fmt.Sprint(items(t, c.get(t, path), "name")); got != want {
				t.Errorf("the applications are %s, want %s", got, want)
			}
		})
	}
	for query, code := range map[string]int{"?listIndex=x": 2103, "?listIndex=1.5": 2103,
		"?isDefaultAccountStore=true": 2105, "?orderBy=application": 2106, "?limit=0": 2103} {
		c.refused(t, 400, code, "GET", first+"/accountStoreMappings"+query, nil)
		c.refused(t, 400, code, "GET", shared+"/applicationMappings"+query, nil)
	}
}

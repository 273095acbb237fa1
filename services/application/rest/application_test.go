package rest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/services/application/applicationtest"
)

func TestApplicationsThatAreRefused(t *testing.T) {
	t.Parallel()
	c := open(t)
	c.application(t, "Taken")
	shop := c.application(t, "Shop")
	long := func(n int) string { return strings.Repeat("é", n) }
	for _, scenario := range []struct {
		what         string
		body         any
		status, code int
	}{
		{"a taken name", object{"name": "Taken"}, 409, 2001},
		{"a taken name, in another case and with spaces", object{"name": "  tAKEN "}, 409, 2001},
		{"a null name", object{"name": nil}, 400, 2000},
		{"an empty name", object{"name": ""}, 400, 2000},
		{"a blank name", object{"name": " \t "}, 400, 2000},
		{"a long name", object{"name": long(256)}, 400, 2008},
		{"a name of another type", object{"name": 7}, 400, 2004},
		{"a name with NUL", `{"name":"a\u0000b"}`, 400, 2006},
		{"a long description", object{"name": "New", "description": long(4001)}, 400, 2008},
		{"an unknown status", object{"name": "New", "status": "asleep"}, 400, 2003},
		{"an empty status", object{"name": "New", "status": ""}, 400, 2000},
		{"an unknown property", object{"name": "New", "colour": "red"}, 400, 2015},
		{"callbacks that are no list", object{"name": "New", "authorizedCallbackUris": "https://app.localhost/cb"}, 400,
			2004},
		{"a callback that is no URI", object{"name": "New", "authorizedCallbackUris": []string{"app.localhost"}}, 400, 2006},
		{"callbacks that are too long",
			object{"name": "New", "authorizedCallbackUris": []string{"https://app.localhost/" + long(4000)}}, 400, 2008},
		{"an origin with a path", object{"name": "New", "authorizedOriginUris": []string{"https://app.localhost/cb"}}, 400,
			2006},
		{"a home that is no address", object{"name": "New", "homeUrl": "app.localhost"}, 400, 2006},
		{"a home that is neither of https nor of the loopback", object{"name": "New", "homeUrl": "http://app.example.test/"},
			400, 2006},
		{"a home that runs a script", object{"name": "New", "homeUrl": "javascript:alert(1)"}, 400, 2006},
		{"a home that is too long", object{"name": "New", "homeUrl": "https://app.localhost/" + strings.Repeat("x", 2000)},
			400, 2008},
		{"no object", `[]`, 400, 2006},
		{"no JSON", `{`, 400, 2006},
		{"no UTF-8", "{\"name\":\"\xff\"}", 400, 2005},
	} {
		t.Run("created with "+scenario.what, func(t *testing.T) {
			c.refused(t, scenario.status, scenario.code, "POST", "/applications", scenario.body)
		})
		t.Run("updated with "+scenario.what,
			func(t *testing.T) { c.refused(t, scenario.status, scenario.code, "POST", shop, scenario.body) })
	}
	t.Run("created without a name", func(t *testing.T) {
		c.refused(t, 400, 2000, "POST", "/applications", object{"description": "nameless"})
		c.refused(t, 400, 2000, "POST", shop, object{"description": long(4001), "status": nil})
		c.refused(t, 400, 2003, "POST", shop, object{"description": long(4001), "status": "LOST"})
	})
	t.Run("nothing was made or changed", func(t *testing.T) {
		page := c.get(t, applicationtest.Base.To("tenants", c.tenant, "applications"))
		if names := items(t, page, "name"); !slices.Equal(names, []string{"Taken", "Shop"}) {
			t.Errorf("the applications are %q", names)
		}
	})
}

func TestCreateDirectory(t *testing.T) {
	t.Parallel()
	c := open(t)
	for _, scenario := range []struct {
		what, query  string
		status, code int
	}{
		{"a taken name", "createDirectory=service%20administrators", 409, 5010},
		{"no value", "createDirectory=", 400, 2000},
		{"no value and no =", "createDirectory", 400, 2000},
		{"a blank value", "createDirectory=+", 400, 2000},
		{"two values", "createDirectory=A&createDirectory=B", 400, 2102},
		{"a name that is too long", "createDirectory=" + strings.Repeat("x", 256), 400, 2008},
		{"a name with NUL", "createDirectory=a%00b", 400, 2100},
		{"a name that is no UTF-8", "createDirectory=%ff", 400, 2100},
	} {
		t.Run("refuses "+scenario.what, func(t *testing.T) {
			c.refused(t, scenario.status, scenario.code, "POST", "/applications?"+scenario.query, object{"name": "Refused"})
		})
	}
	t.Run("refuses a taken name of the application, without a directory", func(t *testing.T) {
		c.application(t, "Taken")
		c.refused(t, 409, 2001, "POST", "/applications?createDirectory=Unmade", object{"name": "Taken"})
	})
	if names := c.Directories.Names(t, c.tenant); len(names) != 1 {
		t.Errorf("refusals left the directories %q", names)
	}
	for i, scenario := range []struct{ query, directory string }{
		{"createDirectory=true", "App 0 Directory"}, {"createDirectory=TRUE", "App 1 Directory"},
		{"createDirectory=Bl%C3%BCte+und%20Blatt", "Blüte und Blatt"}, {"createDirectory=+Trimmed+", "Trimmed"},
		{"createDirectory=false", ""}, {"", ""}, {"createDirectory=Once&createDirectory=Once", "Once"},
	} {
		t.Run(scenario.query, func(t *testing.T) {
			before := c.Directories.Names(t, c.tenant)
			made := c.create(t, "/applications?"+scenario.query, object{"name": fmt.Sprintf("App %d", i)})
			var added []string
			for _, name := range c.Directories.Names(t, c.tenant) {
				if !slices.Contains(before, name) {
					added = append(added, name)
				}
			}
			if scenario.directory == "" {
				if len(added) > 0 || made["defaultAccountStoreMapping"] != nil || made["defaultGroupStoreMapping"] != nil {
					t.Errorf("the application has the directories %q and %v", added, made["defaultAccountStoreMapping"])
				}
				return
			}
			mapping := c.get(t, linked(t, made, "defaultAccountStoreMapping"))
			if !slices.Equal(added, []string{scenario.directory}) || mapping["isDefaultGroupStore"] != true ||
				mapping["listIndex"] != 0.0 {
				t.Errorf("the application has the directories %q, mapped by %v", added, mapping)
			}
		})
	}
}

func TestAnApplicationIsUpdated(t *testing.T) {
	t.Parallel()
	c := open(t)
	shop := text(c.create(t, "/applications?createDirectory=true",
		object{"name": "Shop", "description": "Sells",
			"authorizedCallbackUris": []string{"https://app.localhost/cb"}})["href"])
	c.Clock.Tick()
	before := c.get(t, shop)

	t.Run("what is not named stays", func(t *testing.T) {
		after := c.update(t, shop, object{"status": "disabled"})
		if after["status"] != "DISABLED" || after["name"] != "Shop" || after["description"] != "Sells" {
			t.Errorf("the application is %v", after)
		}
		if fmt.Sprint(after["authorizedCallbackUris"], after["defaultAccountStoreMapping"]) != fmt.Sprint(
			before["authorizedCallbackUris"], before["defaultAccountStoreMapping"]) {
			t.Errorf("the application is %v", after)
		}
		if after["modifiedAt"] == before["modifiedAt"] || after["createdAt"] != before["createdAt"] {
			t.Errorf("the times are %v and %v", after["createdAt"], after["modifiedAt"])
		}
	})
	t.Run("null clears what is optional", func(t *testing.T) {
		after := c.update(t, shop, object{"description": nil, "authorizedCallbackUris": nil})
		if after["description"] != nil || len(after["authorizedCallbackUris"].([]any)) != 0 {
			t.Errorf("the application is %v", after)
		}
	})
	t.Run("its own name is not taken", func(t *testing.T) {
		if after := c.update(t, shop, object{"name": " SHOP "}); after["name"] != "SHOP" {
			t.Errorf("the name is %v", after["name"])
		}
	})
	t.Run("the whole resource can be posted back", func(t *testing.T) {
		whole := c.get(t, shop)
		whole["defaultAccountStoreMapping"], whole["createdAt"] = nil, "2001-01-01T00:00:00.000Z"
		after := c.update(t, shop, whole)
		if after["defaultAccountStoreMapping"] == nil || after["createdAt"] != before["createdAt"] {
			t.Errorf("a read-only field was written: %v", after)
		}
	})
	t.Run("the answer is what is read afterwards", func(t *testing.T) {
		after := c.update(t, shop, object{"name": "Shop", "status": "ENABLED"})
		if read := c.get(t, shop); fmt.Sprint(read) != fmt.Sprint(after) {
			t.Errorf("read %v, answered %v", read, after)
		}
	})
	t.Run("the longest texts fit", func(t *testing.T) {
		c.update(t, shop, object{"name": strings.Repeat("é", 255), "description": strings.Repeat("é", 4000)})
	})
}

func TestADeletedApplicationIsGone(t *testing.T) {
	t.Parallel()
	c := open(t)
	shop := c.create(t, "/applications?createDirectory=true", object{"name": "Shop"})
	href, mapping := text(shop["href"]), linked(t, shop, "defaultAccountStoreMapping")
	directory := linked(t, c.get(t, mapping), "accountStore")
	c.want(t, 204, "DELETE", href, nil)
	for _, path := range []string{href, href + "/accounts", href + "/accountStoreMappings", mapping} {
		c.refused(t, 404, 404, "GET", path, nil)
	}
	c.want(t, 204, "DELETE", href, nil)
	c.refused(t, 404, 404, "POST", href, object{"status": "enabled"})
	if page := c.get(t, directory+"/applicationMappings"); page["size"] != 0.0 {
		t.Errorf("the directory has the mappings %v", page)
	}
	t.Run("and others learn of it, once", func(t *testing.T) {
		sent, err := pg.All[struct{ Envelope []byte }](t.Context(), c.DB, `SELECT envelope FROM outbox`)
		if err != nil {
			t.Fatal(err)
		}
		if len(sent) != 1 || !strings.Contains(string(sent[0].Envelope), `"ApplicationDeleted"`) ||
			!strings.Contains(string(sent[0].Envelope), idOf(t, href).String()) {
			t.Errorf("the outbox holds %q", sent)
		}
	})
}

func TestTheConsoleCannotBeDeleted(t *testing.T) {
	t.Parallel()
	c := open(t)
	in := applicationapi.SignUp{
		Tenant: c.tenant, Console: c.NewID(), ConsoleName: "Service", Administrators: c.administrators,
		ConsoleMapping: c.NewID(),
		Application:    c.NewID(), ApplicationMapping: c.NewID(), Directory: c.NewID(),
	}
	if _, err := c.Service.SignUp(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	console := applicationtest.Base.To("applications", in.Console)
	c.refused(t, 400, 400, "DELETE", console, nil)
	c.refused(t, 400, 400, "DELETE", applicationtest.Base.To("accountStoreMappings", in.ConsoleMapping), nil)
	if name := c.get(t, console)["name"]; name != "Service" {
		t.Errorf("its name is %v", name)
	}
}

func TestApplicationsAreListed(t *testing.T) {
	t.Parallel()
	c := open(t)
	for i := range 30 {
		c.Clock.Tick()
		c.create(t, "/applications", object{"name": fmt.Sprintf("App %02d", i), "description": strings.Repeat("odd", i%2),
			"status": []string{"ENABLED", "DISABLED"}[i/29]})
	}
	all := applicationtest.Base.To("tenants", c.tenant, "applications")
	for _, scenario := range []struct {
		query            string
		size, limit, got int
		first            string
	}{
		{"", 30, 25, 25, "App 00"},
		{"?limit=100", 30, 100, 30, "App 00"},
		{"?limit=1000", 30, 100, 30, "App 00"},
		{"?offset=28", 30, 25, 2, "App 28"},
		{"?offset=30", 30, 25, 0, ""},
		{"?name=app%2007", 1, 25, 1, "App 07"},
		{"?name=app*", 30, 25, 25, "App 00"},
		{"?name=*9&orderBy=name%20desc", 3, 25, 3, "App 29"},
		{"?name=*1*", 12, 25, 12, "App 01"},
		{"?name=*%25*", 0, 25, 0, ""},
		{"?q=2&orderBy=name+desc&limit=2", 12, 2, 2, "App 29"},
		{"?q=ODD", 15, 25, 15, "App 01"},
		{"?status=disabled", 1, 25, 1, "App 29"},
		{"?createdAt=2026-11-20", 30, 25, 25, "App 00"},
		{"?createdAt=[2027,]", 0, 25, 0, ""},
		{"?orderBy=description,name%20desc&limit=1", 30, 1, 1, "App 28"},
		{"?orderBy=createdAt%20desc&limit=1", 30, 1, 1, "App 29"},
	} {
		t.Run(scenario.query, func(t *testing.T) {
			page := c.get(t, all+scenario.query)
			names := items(t, page, "name")
			if page["size"] != float64(scenario.size) || page["limit"] != float64(scenario.limit) || len(names) != scenario.got {
				t.Errorf("the page has the size %v, the limit %v and %d items", page["size"], page["limit"], len(names))
			}
			if len(names) > 0 && names[0] != scenario.first {
				t.Errorf("the first is %q, want %q", names[0], scenario.first)
			}
			if page["href"] != all {
				t.Errorf("the href is %v", page["href"])
			}
		})
	}
	for query, code := range map[string]int{
		"?limit=0": 2103, "?limit=x": 2103, "?offset=-1": 2103, "?colour=red": 2105, "?status=asleep": 2105,
		"?orderBy=tenant":    2106,
		"?orderBy=name%20up": 2104, "?name": 2101, "?name=a&name=b": 2102, "?createdAt=yesterday": 2103,
		"?createdAt=[2016,2015]":    2108,
		"?authorizedCallbackUris=x": 2105, "?orderBy=authorizedCallbackUris": 2106, "?name=%ff": 2100,
	} {
		t.Run("refuses "+query, func(t *testing.T) { c.refused(t, 400, code, "GET", all+query, nil) })
	}
}

func TestPathsThatLeadNowhere(t *testing.T) {
	t.Parallel()
	c := open(t)
	shop := c.application(t, "Shop")
	for _, v := range []string{"x", "0000000000000000000000", "zzzzzzzzzzzzzzzzzzzzzz", c.NewID().String(), "%00",
		"%2e%2e"} {
		for method, paths := range map[string][]string{
			"GET": {"/applications/%s", "/applications/%s/accounts", "/applications/%s/accountStoreMappings",
				"/accountStoreMappings/%s",
				"/tenants/%s/applications", "/directories/%s/applications", "/directories/%s/applicationMappings"},
			"POST":   {"/applications/%s", "/accountStoreMappings/%s"},
			"DELETE": {"/applications/%s", "/accountStoreMappings/%s"},
		} {
			for _, path := range paths {
				var body any
				if method == "POST" {
					body = object{}
				}
				if method == "DELETE" && id.HasShape(v) {
					c.want(t, 204, method, fmt.Sprintf(path, v), nil)
					continue
				}
				c.refused(t, 404, 404, method, fmt.Sprintf(path, v), body)
			}
		}
	}
	c.refused(t, 404, 404, "GET", shop+"/nothing", nil)
	if a := c.want(t, 405, "DELETE", "/applications", nil); !strings.Contains(a.header.Get("Allow"), "POST") {
		t.Errorf("Allow is %q", a.header.Get("Allow"))
	}
	c.refused(t, 405, 1100, "GET", shop+"/loginAttempts", nil)
}

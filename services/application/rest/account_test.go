package rest_test

import (
	"fmt"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/services/application/applicationtest"
)

func TestAccountsAreMadeInTheDefaultStore(t *testing.T) {
	t.Parallel()
	c := open(t)
	shop := c.application(t, "Shop")
	first, second := c.directory(t, "First"), c.directory(t, "Second")
	body := object{"email": "jo@example.test", "password": applicationtest.Password, "customData": object{},
		"directory": link(second)}

	t.Run("not without one", func(t *testing.T) { c.refused(t, 400, 5100, "POST", shop+"/accounts", body) })
	c.mapping(t, shop, second, nil)
	mapping := c.mapping(t, shop, first, nil)
	t.Run("not without a flag", func(t *testing.T) { c.refused(t, 400, 5100, "POST", shop+"/accounts", body) })
	c.update(t, mapping, object{"isDefaultAccountStore": true})

	t.Run("whatever directory the body names", func(t *testing.T) {
		made := c.create(t, shop+"/accounts", body)
		if linked(t, made, "directory") != first || made["status"] != "ENABLED" {
			t.Errorf("the account is %v", made)
		}
	})
	t.Run("with its refusals", func(t *testing.T) {
		for what, scenario := range map[string]struct {
			path         string
			body         any
			status, code int
		}{
			"a taken email":    {"", body, 409, 2001},
			"no email":         {"", object{"password": applicationtest.Password}, 400, 2000},
			"a short password": {"", object{"email": "sam@example.test", "password": "Short1"}, 400, 2007},
			"two workflows at a time": {"?registrationWorkflowEnabled=false&registrationWorkflowEnabled=true",
				object{"email": "sam@example.test", "password": applicationtest.Password}, 400, 2102},
			"a bad workflow": {"?registrationWorkflowEnabled=maybe",
				object{"email": "sam@example.test", "password": applicationtest.Password}, 400, 2103},
		} {
			t.Run(what, func(t *testing.T) {
				c.refused(t, scenario.status, scenario.code, "POST", shop+"/accounts"+scenario.path, scenario.body)
			})
		}
	})
	t.Run("with the directory's workflow, or without", func(t *testing.T) {
		c.Directories.EnableVerification(t, directoryapi.Ref{Tenant: c.tenant, ID: idOf(t, first)})
		waiting := c.create(t, shop+"/accounts", object{"email": "new@example.test", "password": applicationtest.Password})
		if waiting["status"] != "UNVERIFIED" || waiting["emailVerificationToken"] == nil {
			t.Errorf("the account is %v", waiting)
		}
		quiet := c.create(t, shop+"/accounts?registrationWorkflowEnabled=false",
			object{"email": "quiet@example.test", "password": applicationtest.Password})
		if quiet["status"] != "ENABLED" || quiet["emailVerificationToken"] != nil {
			t.Errorf("the account is %v", quiet)
		}
	})
	t.Run("not in a disabled one", func(t *testing.T) {
		c.Directories.Disable(t, directoryapi.Ref{Tenant: c.tenant, ID: idOf(t, first)})
		c.refused(t, 400, 5101, "POST", shop+"/accounts",
			object{"email": "sam@example.test", "password": applicationtest.Password})
	})
	t.Run("not in one that is gone, before its event is here", func(t *testing.T) {
		if _, err := c.Directories.DeleteDirectory(t.Context(),
			directoryapi.Ref{Tenant: c.tenant, ID: idOf(t, first)}); err != nil {
			t.Fatal(err)
		}
		c.refused(t, 400, 5100, "POST", shop+"/accounts",
			object{"email": "sam@example.test", "password": applicationtest.Password})
	})
	t.Run("not through an application that never was", func(t *testing.T) {
		c.refused(t, 404, 404, "POST", applicationtest.Base.To("applications", c.NewID())+"/accounts", body)
	})
}

// A client that knows the organization of a user names it in the body, too.
func TestAnAccountNamesTheOrganizationItIsMadeIn(t *testing.T) {
	t.Parallel()
	c := open(t)
	bank, people := c.organization(t, "bank"), c.directory(t, "People")
	c.organizationMapping(t, bank, people, object{"isDefaultAccountStore": true})
	body := func(at any) object {
		return object{"email": "jo@example.test", "password": applicationtest.Password, "accountStore": at}
	}
	for what, s := range map[string]struct {
		at   any
		code int
	}{
		"another organization":              {link(c.organization(t, "other")), 2014},
		"the directory that it would enter": {link(people), 2014},
		"an address elsewhere":              {link("https://elsewhere.test/v1/organizations/x"), 2014},
		"a text":                            {bank, 2004},
	} {
		t.Run("not "+what, func(t *testing.T) { c.refused(t, 400, s.code, "POST", bank+"/accounts", body(s.at)) })
	}
	if made := c.create(t, bank+"/accounts", body(link(bank))); linked(t, made, "directory") != people {
		t.Errorf("the account is %v", made)
	}
}

func TestAccountsOfAllStoresAreListed(t *testing.T) {
	t.Parallel()
	c := open(t)
	shop, bare := c.application(t, "Shop"), c.application(t, "Bare")
	first, second, unmapped := c.directory(t, "First"), c.directory(t, "Second"), c.directory(t, "Unmapped")
	c.mapping(t, shop, second, nil)
	c.mapping(t, shop, first, nil)
	for i, directory := range []string{first, second, first, second, unmapped} {
		c.Account(t, c.tenant, idOf(t, directory), fmt.Sprintf("jo%d@example.test", i))
	}
	for query, want := range map[string]string{
		"":                                   "4 [jo0@example.test jo1@example.test jo2@example.test jo3@example.test]",
		"?limit=2&offset=1":                  "4 [jo1@example.test jo2@example.test]",
		"?email=JO3*":                        "1 [jo3@example.test]",
		"?q=jo2":                             "1 [jo2@example.test]",
		"?status=enabled&orderBy=email+desc": "4 [jo3@example.test jo2@example.test jo1@example.test jo0@example.test]",
		"?createdAt=[,2001]":                 "0 []",
		"?orderBy=emailVerificationStatus,fullName,username+desc": "4 [jo3@example.test jo2@example.test jo1@example.test " +
			"jo0@example.test]",
	} {
		t.Run(query, func(t *testing.T) {
			page := c.get(t, shop+"/accounts"+query)
			if got := fmt.Sprint(page["size"], " ", append([]string{}, items(t, page, "email")...)); got != want {
				t.Errorf("the page is %s, want %s", got, want)
			}
		})
	}
	if page := c.get(t, bare+"/accounts"); page["size"] != 0.0 {
		t.Errorf("an application without stores has the accounts %v", page)
	}
	for query, code := range map[string]int{"?customData.colour=red": 2105, "?fullName=Jo": 2105,
		"?emailVerificationStatus=VERIFIED": 2105, "?orderBy=directory": 2106, "?passwordModifiedAt=x": 2103} {
		c.refused(t, 400, code, "GET", shop+"/accounts"+query, nil)
	}
}

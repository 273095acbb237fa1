package rest_test

import (
	"bytes"
	"testing"

	"github.com/doorward/doorward/services/application/applicationtest"
)

// Tenant isolation: a resource of another tenant is answered like one that does not exist, in a path
// and in a body, and is not changed.
func TestAnotherTenantsThingsDoNotExist(t *testing.T) {
	t.Parallel()
	victim := open(t)
	shop := victim.create(t, "/applications?createDirectory=true", object{"name": "Shop"})
	application, mapping := text(shop["href"]), linked(t, shop, "defaultAccountStoreMapping")
	directory := linked(t, victim.get(t, mapping), "accountStore")
	victim.create(t, application+"/accounts", object{"email": "jo@example.test", "password": applicationtest.Password})
	spare := victim.directory(t, "Spare")
	victim.update(t, application+"/customData", object{"plan": "gold"})
	bank := victim.organization(t, "bank")
	group := victim.group(t, spare, "Staff")
	own := victim.organizationMapping(t, bank, group, nil)
	victim.organizationMapping(t, bank, directory, object{"isDefaultAccountStore": true, "isDefaultGroupStore": true})
	victim.mapping(t, application, bank, nil)
	victim.update(t, bank+"/customData", object{"plan": "gold"})
	policy, account := linked(t, victim.get(t, bank), "accountLinkingPolicy"),
		items(t, victim.get(t, application+"/accounts"), "href")[0]
	tenant := applicationtest.Base.To("tenants", victim.tenant)
	seen := func() [][]byte {
		var all [][]byte
		for _, path := range []string{tenant + "/applications", application, application + "/accounts", application +
			"/accountStoreMappings", application + "/customData",
			mapping, directory + "/applications", spare + "/applicationMappings", application + "/groups",
			tenant + "/organizations", bank, bank + "/accounts", bank + "/groups", bank + "/accountStoreMappings", bank +
				"/customData", own, policy,
			directory + "/organizations", directory + "/organizationMappings", group + "/applications", group +
				"/accountStoreMappings", account + "/applications"} {
			all = append(all, victim.want(t, 200, "GET", path, nil).body)
		}
		return all
	}
	before := seen()

	intruder := victim.another(t)
	// the name is free in this tenant
	made := intruder.create(t, "/applications?createDirectory=true", object{"name": "Shop"})
	ownApplication, ownMapping := text(made["href"]), linked(t, made, "defaultAccountStoreMapping")
	ownOrganization := intruder.organization(t, "bank") // and so is the key
	intruder.mapping(t, ownApplication, ownOrganization, nil)
	ownDirectory := linked(t, intruder.get(t, ownMapping), "accountStore")
	basic := object{"type": "basic", "value": value("jo@example.test", applicationtest.Password)}

	for _, scenario := range []struct {
		method, path string
		body         any
		status, code int
	}{
		{"GET", tenant + "/applications", nil, 404, 404},
		{"GET", application, nil, 404, 404},
		{"POST", application, object{"name": "Stolen", "status": "DISABLED"}, 404, 404},
		{"DELETE", application, nil, 204, 0},
		{"GET", application + "/accounts", nil, 404, 404},
		{"POST", application + "/accounts", object{"email": "sam@example.test", "password": applicationtest.Password}, 404,
			404},
		{"GET", application + "/accountStoreMappings", nil, 404, 404},
		{"POST", application + "/loginAttempts", basic, 404, 404},
		{"GET", application + "/customData", nil, 404, 404},
		{"POST", application + "/customData", object{"plan": "stolen"}, 404, 404},
		{"DELETE", application + "/customData", nil, 204, 0},
		{"DELETE", application + "/customData/plan", nil, 204, 0},
		{"GET", mapping, nil, 404, 404},
		{"POST", mapping, object{"isDefaultAccountStore": false, "listIndex": 1}, 404, 404},
		{"DELETE", mapping, nil, 204, 0},
		{"GET", directory + "/applications", nil, 404, 404},
		{"GET", directory + "/applicationMappings", nil, 404, 404},
		{"GET", application + "/groups", nil, 404, 404},
		{"POST", application + "/groups", object{"name": "Stolen"}, 404, 404},
		{"GET", tenant + "/organizations", nil, 404, 404},
		{"GET", bank, nil, 404, 404},
		{"POST", bank, object{"name": "Stolen", "status": "DISABLED"}, 404, 404},
		{"DELETE", bank, nil, 204, 0},
		{"GET", bank + "/accounts", nil, 404, 404},
		{"POST", bank + "/accounts", object{"email": "sam@example.test", "password": applicationtest.Password}, 404, 404},
		{"GET", bank + "/groups", nil, 404, 404},
		{"POST", bank + "/groups", object{"name": "Stolen"}, 404, 404},
		{"GET", bank + "/accountStoreMappings", nil, 404, 404},
		{"GET", bank + "/customData", nil, 404, 404},
		{"POST", bank + "/customData", object{"plan": "stolen"}, 404, 404},
		{"DELETE", bank + "/customData", nil, 204, 0},
		{"DELETE", bank + "/customData/plan", nil, 204, 0},
		{"GET", own, nil, 404, 404},
		{"POST", own, object{"isDefaultAccountStore": true, "listIndex": 1}, 404, 404},
		{"DELETE", own, nil, 204, 0},
		{"GET", policy, nil, 404, 404},
		{"POST", policy, object{"status": "ENABLED"}, 404, 404},
		{"GET", directory + "/organizations", nil, 404, 404},
		{"GET", directory + "/organizationMappings", nil, 404, 404},
		{"GET", group + "/applications", nil, 404, 404},
		{"GET", group + "/accountStoreMappings", nil, 404, 404},
		{"GET", account + "/applications", nil, 404, 404},
		{"POST", "/accountStoreMappings", object{"application": link(ownApplication), "accountStore": link(bank)}, 400, 2014},
		{"POST", "/accountStoreMappings", object{"application": link(ownApplication), "accountStore": link(group)}, 400,
			2014},
		{"POST", "/accountStoreMappings", object{"application": link(application), "accountStore": link(ownOrganization)},
			400, 2014},
		{"POST", "/organizationAccountStoreMappings", object{"organization": link(bank), "accountStore": link(ownDirectory)},
			400, 2014},
		{"POST", "/organizationAccountStoreMappings",
			object{"organization": link(ownOrganization), "accountStore": link(spare)}, 400, 2014},
		{"POST", "/organizationAccountStoreMappings",
			object{"organization": link(ownOrganization), "accountStore": link(group)}, 400, 2014},
		{"POST", ownApplication + "/loginAttempts",
			object{"type": "basic", "value": basic["value"], "accountStore": link(bank)}, 400, 2014},
		{"POST", ownApplication + "/loginAttempts",
			object{"type": "basic", "value": basic["value"], "accountStore": link(group)}, 400, 2014},
		{"POST", ownApplication + "/loginAttempts",
			object{"type": "basic", "value": basic["value"], "accountStore": object{"nameKey": "bank"}}, 400, 4605},
		{"POST", "/accountStoreMappings", object{"application": link(application), "accountStore": link(ownDirectory)}, 400,
			2014},
		{"POST", "/accountStoreMappings", object{"application": link(application), "accountStore": link(spare)}, 400, 2014},
		{"POST", "/accountStoreMappings", object{"application": link(ownApplication), "accountStore": link(spare)}, 400,
			2014},
		{"POST", ownApplication + "/loginAttempts",
			object{"type": "basic", "value": basic["value"], "accountStore": link(directory)}, 400, 2014},
		{"POST", ownApplication + "/loginAttempts", basic, 400, 7104},
	} {
		t.Run(scenario.method+" "+scenario.path, func(t *testing.T) {
			if scenario.method == "DELETE" { // answers the same for what is not there, and nothing happens
				intruder.want(t, scenario.status, scenario.method, scenario.path, nil)
				return
			}
			intruder.refused(t, scenario.status, scenario.code, scenario.method, scenario.path, scenario.body)
		})
	}
	t.Run("read-only links in a body lead nowhere", func(t *testing.T) {
		changed := intruder.update(t, ownApplication,
			object{"href": application, "tenant": link(tenant), "defaultAccountStoreMapping": link(mapping)})
		if text(changed["href"]) != ownApplication || linked(t, changed, "defaultAccountStoreMapping") != ownMapping {
			t.Errorf("the application is %v", changed)
		}
		moved := intruder.update(t, ownMapping, object{"application": link(application), "accountStore": link(directory)})
		if linked(t, moved, "application") != ownApplication || linked(t, moved, "accountStore") != ownDirectory {
			t.Errorf("the mapping is %v", moved)
		}
	})
	for i, after := range seen() {
		if !bytes.Equal(before[i], after) {
			t.Errorf("the other tenant reads %s, before it was %s", after, before[i])
		}
	}
	t.Run("no caller, no answer", func(t *testing.T) {
		stranger := *intruder
		stranger.signer = otherSigner()
		stranger.refused(t, 403, 403, "GET", ownApplication, nil)
	})
}

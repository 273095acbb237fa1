package rest_test

import (
	"bytes"
	"testing"

	"github.com/doorward/doorward/services/application/applicationtest"
)

// What belongs to another tenant looks like what never was, in a path and in a
// body, and stays as it is.
func TestAnotherTenantsThingsDoNotExist(t *testing.T) {
	victim := open(t)
	shop := victim.create(t, "/applications?createDirectory=true", object{"name": "Shop"})
	application, mapping := text(shop["href"]), linked(t, shop, "defaultAccountStoreMapping")
	directory := linked(t, victim.get(t, mapping), "accountStore")
	victim.create(t, application+"/accounts", object{"email": "jo@example.test", "password": applicationtest.Password})
	spare := victim.directory(t, "Spare")
	victim.update(t, application+"/customData", object{"plan": "gold"})
	tenant := applicationtest.Base.To("tenants", victim.tenant)
	seen := func() [][]byte {
		var all [][]byte
		for _, path := range []string{tenant + "/applications", application, application + "/accounts", application + "/accountStoreMappings", application + "/customData",
			mapping, directory + "/applications", spare + "/applicationMappings"} {
			all = append(all, victim.want(t, 200, "GET", path, nil).body)
		}
		return all
	}
	before := seen()

	intruder := victim.another(t)
	own := intruder.create(t, "/applications?createDirectory=true", object{"name": "Shop"}) // the name is free in this tenant
	ownApplication, ownMapping := text(own["href"]), linked(t, own, "defaultAccountStoreMapping")
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
		{"DELETE", application, nil, 404, 404},
		{"GET", application + "/accounts", nil, 404, 404},
		{"POST", application + "/accounts", object{"email": "sam@example.test", "password": applicationtest.Password}, 404, 404},
		{"GET", application + "/accountStoreMappings", nil, 404, 404},
		{"POST", application + "/loginAttempts", basic, 404, 404},
		{"GET", application + "/customData", nil, 404, 404},
		{"POST", application + "/customData", object{"plan": "stolen"}, 404, 404},
		{"DELETE", application + "/customData", nil, 404, 404},
		{"DELETE", application + "/customData/plan", nil, 404, 404},
		{"GET", mapping, nil, 404, 404},
		{"POST", mapping, object{"isDefaultAccountStore": false, "listIndex": 1}, 404, 404},
		{"DELETE", mapping, nil, 404, 404},
		{"GET", directory + "/applications", nil, 404, 404},
		{"GET", directory + "/applicationMappings", nil, 404, 404},
		{"POST", "/accountStoreMappings", object{"application": link(application), "accountStore": link(ownDirectory)}, 400, 2014},
		{"POST", "/accountStoreMappings", object{"application": link(application), "accountStore": link(spare)}, 400, 2014},
		{"POST", "/accountStoreMappings", object{"application": link(ownApplication), "accountStore": link(spare)}, 400, 2014},
		{"POST", ownApplication + "/loginAttempts", object{"type": "basic", "value": basic["value"], "accountStore": link(directory)}, 400, 2014},
		{"POST", ownApplication + "/loginAttempts", basic, 400, 7104},
	} {
		t.Run(scenario.method+" "+scenario.path, func(t *testing.T) {
			intruder.refused(t, scenario.status, scenario.code, scenario.method, scenario.path, scenario.body)
		})
	}
	t.Run("read-only links in a body lead nowhere", func(t *testing.T) {
		changed := intruder.update(t, ownApplication, object{"href": application, "tenant": link(tenant), "defaultAccountStoreMapping": link(mapping)})
		if text(changed["href"]) != ownApplication || linked(t, changed, "defaultAccountStoreMapping") != ownMapping {
			t.Errorf("it is %v", changed)
		}
		moved := intruder.update(t, ownMapping, object{"application": link(application), "accountStore": link(directory)})
		if linked(t, moved, "application") != ownApplication || linked(t, moved, "accountStore") != ownDirectory {
			t.Errorf("it is %v", moved)
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

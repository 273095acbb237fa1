package rest_test

import "testing"

func TestLinkingPolicies(t *testing.T) {
	t.Parallel()
	c := open(t)
	shop, bank := c.application(t, "Shop"), c.organization(t, "bank")
	for owner, member := range map[string]string{shop: "application", bank: "organization"} {
		t.Run("of an "+member, func(t *testing.T) {
			policy := linked(t, c.get(t, owner), "accountLinkingPolicy")
			begun := c.get(t, policy)
			if begun["status"] != "DISABLED" || begun["automaticProvisioning"] != "DISABLED" ||
				begun["matchingProperty"] != nil || linked(t, begun, member) != owner {
				t.Errorf("the linking policy begins as %v", begun)
			}
			for _, scenario := range []struct {
				what string
				body object
				code int
			}{
				{"an unknown status", object{"status": "ON"}, 2003},
				{"a null status", object{"status": nil}, 2000},
				{"unknown provisioning", object{"automaticProvisioning": true}, 2004},
				{"null provisioning", object{"automaticProvisioning": nil}, 2000},
				{"another property", object{"matchingProperty": "username"}, 2003},
				{"an empty property", object{"matchingProperty": ""}, 2003},
				{"an unknown member", object{"name": "x"}, 2015},
			} {
				t.Run("refuses "+scenario.what,
					func(t *testing.T) { c.refused(t, 400, scenario.code, "POST", policy, scenario.body) })
			}
			c.Clock.Tick()
			changed := c.update(t, policy, object{"status": "enabled", "matchingProperty": "Email", "tenant": nil})
			if changed["status"] != "ENABLED" || changed["matchingProperty"] != "email" ||
				changed["automaticProvisioning"] != "DISABLED" || changed["modifiedAt"] == begun["modifiedAt"] {
				t.Errorf("the linking policy is %v", changed)
			}
			if cleared := c.update(t, policy, object{"matchingProperty": nil}); cleared["matchingProperty"] != nil ||
				cleared["status"] != "ENABLED" {
				t.Errorf("the linking policy is %v", cleared)
			}
			c.refused(t, 405, 1100, "DELETE", policy, nil)
			c.want(t, 204, "DELETE", owner, nil)
			c.refused(t, 404, 404, "GET", policy, nil)
			c.refused(t, 404, 404, "POST", policy, object{"status": "DISABLED"})
		})
	}
	if n := c.count(t, "account_linking_policies"); n != 0 {
		t.Errorf("%d policies are left", n)
	}
}

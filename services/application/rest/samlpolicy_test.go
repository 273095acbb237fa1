package rest_test

import (
	"errors"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/application/applicationtest"
)

// saml returns what the SAML policy of an application leads to.
func (c *client) saml(t *testing.T, application string) (policy, serviceProvider, identityProvider string) {
	t.Helper()
	policy = linked(t, c.get(t, application), "samlPolicy")
	links := c.get(t, policy)
	return policy, linked(t, links, "serviceProvider"), linked(t, links, "identityProvider")
}

func TestSAMLPolicyAnswers(t *testing.T) {
	t.Parallel()
	c := open(t)
	shop := c.application(t, "Shop")
	policy, serviceProvider, _ := c.saml(t, shop)
	c.Clock.Tick()
	c.want(t, 200, "GET", policy, nil).Golden("saml-policy")
	c.want(t, 200, "GET", serviceProvider, nil).Golden("saml-service-provider")
	if initiation := linked(t, c.get(t, serviceProvider), "ssoInitiationEndpoint"); initiation != shop+
		"/saml/sso/idpRedirect" {
		t.Errorf("logins begin at %s", initiation)
	}
	for _, path := range []string{policy, serviceProvider} {
		c.refused(t, 405, 1100, "POST", path, object{})
		c.refused(t, 405, 1100, "DELETE", path, nil)
	}
	c.want(t, 204, "DELETE", shop, nil)
	c.refused(t, 404, 404, "GET", policy, nil)
	c.refused(t, 404, 404, "GET", serviceProvider, nil)
}

// relayState asks for a default relay state and reads it with the key that the
// service keeps for the tenant.
func (c *client) relayState(t *testing.T, serviceProvider string,
	body any) (header map[string]any, claims secure.Claims) {
	t.Helper()
	answer := c.want(t, 200, "POST", serviceProvider+"/defaultRelayStates", body).object(t)
	if len(answer) != 1 {
		t.Errorf("the answer is %v", answer)
	}
	header, claims, err := secure.ParseJWT(text(answer["defaultRelayState"]),
		func(header map[string]any, _ secure.Claims) (secure.Secret, error) {
			if header["tid"] != c.tenant.String() {
				return "", errors.New("it is another tenant's")
			}
			var sealed []byte
			if err := c.DB.QueryRow(t.Context(), "SELECT key_sealed FROM saml_relay_keys WHERE tenant_id = $1", c.tenant).Scan(
				&sealed); err != nil {
				return "", err
			}
			return c.Ring.Open(sealed, "application.relay/"+c.tenant.String())
		})
	if err != nil {
		t.Fatal(err)
	}
	return header, claims
}

func TestADefaultRelayState(t *testing.T) {
	t.Parallel()
	c := open(t)
	shop := c.application(t, "Shop")
	_, serviceProvider, _ := c.saml(t, shop)
	bank := c.organization(t, "bank")
	c.mapping(t, shop, bank, nil)
	c.update(t, shop, object{"authorizedCallbackUris": []string{"https://*.shop.example.test/cb",
		"https://app.localhost/cb"}})

	t.Run("says little where little is asked for", func(t *testing.T) {
		for _, body := range []any{nil, "", "{}", object{"callbackUri": nil, "organization": nil, "state": nil}} {
			header, claims := c.relayState(t, serviceProvider, body)
			if len(header) != 3 || header["tid"] != c.tenant.String() || header["stt"] != "assertion" ||
				header["alg"] != "HS256" {
				t.Errorf("its header is %v", header)
			}
			if jti, _ := claims["jti"].(string); len(claims) != 2 || claims["spUid"] != idOf(t, serviceProvider).String() ||
				len(jti) != 22 {
				t.Errorf("its claims are %v", claims)
			}
		}
	})
	t.Run("says what is asked for", func(t *testing.T) {
		for _, organization := range []object{link(bank), {"nameKey": "bank"}, {"nameKey": "BANK"},
			{"href": bank, "nameKey": "other", "name": "Bank"}} {
			_, claims := c.relayState(t, serviceProvider,
				object{"callbackUri": "https://eu.shop.example.test/cb?x=1", "organization": organization, "state": "s1"})
			if len(claims) != 5 || claims["cb_uri"] != "https://eu.shop.example.test/cb?x=1" || claims["ash"] != bank ||
				claims["state"] != "s1" {
				t.Errorf("its claims are %v", claims)
			}
		}
	})
	t.Run("is another each time", func(t *testing.T) {
		_, first := c.relayState(t, serviceProvider, nil)
		_, second := c.relayState(t, serviceProvider, nil)
		if first["jti"] == second["jti"] {
			t.Errorf("twice it is %v", first["jti"])
		}
	})
	t.Run("of every tenant has a key of the tenant's own", func(t *testing.T) {
		stranger := c.another(t)
		_, own, _ := stranger.saml(t, stranger.application(t, "Shop"))
		stranger.relayState(t, own, nil)
		if keys := c.count(t, "saml_relay_keys"); keys != 2 {
			t.Errorf("there are %d keys", keys)
		}
	})
}

func TestRelayStatesThatAreRefused(t *testing.T) {
	t.Parallel()
	c := open(t)
	shop := c.application(t, "Shop")
	_, serviceProvider, _ := c.saml(t, shop)
	path := serviceProvider + "/defaultRelayStates"
	unmapped := c.organization(t, "unmapped")
	c.refused(t, 400, 5120, "POST", path, object{"callbackUri": "https://app.localhost/cb"})
	c.update(t, shop, object{"authorizedCallbackUris": []string{"https://app.localhost/cb"}})
	stranger := c.another(t)
	theirs := stranger.organization(t, "theirs")
	for _, scenario := range []struct {
		what string
		body any
		code int // 0: accepted
	}{
		{"the callback that is listed", object{"callbackUri": "https://app.localhost/cb"}, 0},
		{"another callback", object{"callbackUri": "https://evil.example/cb"}, 5121},
		{"an empty callback", object{"callbackUri": ""}, 5121},
		{"a callback that is no text", object{"callbackUri": 1}, 2004},
		{"an organization of no form", object{"organization": "bank"}, 2004},
		{"an organization without a name", object{"organization": object{}}, 2004},
		{"an unknown key", object{"organization": object{"nameKey": "nobody"}}, 2014},
		{"a key that is none", object{"organization": object{"nameKey": "a b"}}, 2014},
		{"a key that no database holds", `{"organization":{"nameKey":"a\u0000"}}`, 2014},
		{"a state that no database holds", `{"state":"a\u0000"}`, 2006},
		{"an unknown organization", object{"organization": link(applicationtest.Base.To("organizations", c.NewID()))}, 2014},
		{"an application for an organization", object{"organization": link(shop)}, 2014},
		{"an href that is none", object{"organization": link("bank")}, 2014},
		{"another tenant's organization", object{"organization": link(theirs)}, 2014},
		{"another tenant's key", object{"organization": object{"nameKey": "theirs"}}, 2014},
		{"an organization that is not mapped", object{"organization": link(unmapped)}, 0},
		{"the key of one that is not mapped", object{"organization": object{"nameKey": "unmapped"}}, 0},
		{"the longest state", object{"state": strings.Repeat("é", 4000)}, 0},
		{"a longer state", object{"state": strings.Repeat("é", 4001)}, 2008},
		{"a state that is no text", object{"state": true}, 2004},
		{"an unknown member", object{"defaultRelayState": "x"}, 2015},
		{"no object", "[]", 2006},
		{"no JSON", "{", 2006},
	} {
		t.Run(scenario.what, func(t *testing.T) {
			if scenario.code == 0 {
				c.relayState(t, serviceProvider, scenario.body)
				return
			}
			c.refused(t, 400, scenario.code, "POST", path, scenario.body)
		})
	}
	c.refused(t, 405, 1100, "GET", path, nil)
	c.refused(t, 404, 404, "POST", applicationtest.Base.To("samlServiceProviders", c.NewID())+"/defaultRelayStates", nil)
	stranger.refused(t, 404, 404, "POST", path, nil)
}

// Fifty that ask at once for the first relay states of a tenant get states of one
// key.
func TestATenantHasOneRelayKey(t *testing.T) {
	t.Parallel()
	c := open(t)
	_, serviceProvider, _ := c.saml(t, c.application(t, "Shop"))
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() { c.relayState(t, serviceProvider, nil) })
	}
	group.Wait()
	if keys := c.count(t, "saml_relay_keys"); keys != 1 {
		t.Errorf("there are %d keys", keys)
	}
}

// samlBodies are requests that change what is there, or make more of it, by
// route; the others are sent {"status":"DISABLED"}.
var samlBodies = map[string]object{
	"/v1/samlServiceProviders/:id/defaultRelayStates":  {},
	"/v1/samlIdentityProviders/:id/authnVerifications": {"samlRequest": "x"},
	"/v1/samlIdentityProviders/:id/samlResponses":      {"requestId": "_a1"},
	"/v1/attributeStatementMappingRules/:id":           {"items": []any{}},
	"/v1/registeredSamlServiceProviders/:id":           {"name": "Stolen"},
}

// Every SAML path with the ids of another tenant answers as for ids that never
// were, and changes nothing.
func TestSAMLOfATenantIsItsAlone(t *testing.T) {
	t.Parallel()
	c := open(t)
	policy, serviceProvider, identityProvider := c.saml(t, c.application(t, "Shop"))
	wiki := c.serviceProvider(t, "urn:wiki")
	registrations := identityProvider + "/samlServiceProviderRegistrations"
	registration := text(c.create(t, registrations, object{"serviceProvider": link(wiki)})["href"])
	provider := c.get(t, identityProvider)
	estate := map[string]string{
		"samlPolicies": policy, "samlServiceProviders": serviceProvider, "samlIdentityProviders": identityProvider,
		"samlIdentityProviderMetadatas":    linked(t, provider, "metadata"),
		"x509certificates":                 linked(t, provider, "x509SigningCert"),
		"attributeStatementMappingRules":   linked(t, provider, "attributeStatementMappingRules"),
		"samlServiceProviderRegistrations": registration,
		"registeredSamlServiceProviders":   wiki,
	}
	read := func() map[string]string {
		seen := map[string]string{registrations: string(c.want(t, 200, "GET", registrations, nil).body)}
		for _, path := range estate {
			seen[path] = string(c.want(t, 200, "GET", path, nil).body)
		}
		return seen
	}
	before, stranger := read(), c.another(t)
	own := stranger.serviceProvider(t, "urn:wiki")
	tried := map[string]bool{}
	for _, route := range c.app.GetRoutes(true) {
		kind, below, _ := strings.Cut(strings.TrimPrefix(route.Path, "/v1/"), "/:id")
		if route.Method == http.MethodHead || estate[kind] == "" || !strings.Contains(route.Path, ":id") {
			continue
		}
		tried[kind] = true
		var body any
		if route.Method == http.MethodPost {
			body = object{"status": "DISABLED"}
			if special, ok := samlBodies[route.Path]; ok {
				body = special
			}
			if below == "/samlServiceProviderRegistrations" {
				body = object{"serviceProvider": link(own)}
			}
		}
		for _, path := range []string{estate[kind] + below, applicationtest.Base.To(kind, c.NewID()) + below} {
			if route.Method == http.MethodDelete { // answers the same for what is not there, and nothing happens
				stranger.want(t, 204, route.Method, path, nil)
				continue
			}
			stranger.refused(t, 404, 404, route.Method, path, body)
		}
	}
	if len(tried) != len(estate) {
		t.Errorf("tried was only %v", tried)
	}
	_, _, theirs := stranger.saml(t, stranger.application(t, "Shop"))
	stranger.refused(t, 400, 2014, "POST", theirs+"/samlServiceProviderRegistrations",
		object{"serviceProvider": link(wiki)})
	stranger.refused(t, 400, 2014, "POST", theirs+"/samlServiceProviderRegistrations",
		object{"serviceProvider": link(own), "identityProvider": link(identityProvider)})
	if after := read(); !maps.Equal(before, after) {
		t.Errorf("the list of registrations changed from %s to %s", before, after)
	}
}

package rest_test

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/doorward/doorward/services/application/applicationtest"
)

func TestRegistrationAnswers(t *testing.T) {
	t.Parallel()
	c := open(t)
	_, _, provider := c.saml(t, c.application(t, "Shop"))
	wiki, chat := c.serviceProvider(t, "urn:wiki"), c.serviceProvider(t, "urn:chat")
	c.serviceProvider(t, "urn:unregistered")
	registrations := provider + "/samlServiceProviderRegistrations"
	c.Clock.Tick()
	registration := text(c.create(t, registrations, object{"serviceProvider": link(chat)})["href"])
	for _, scenario := range []struct {
		name, method, path string
		body               any
		status             int
	}{
		{"registration", "GET", registration, nil, 200},
		{"registration-created", "POST", registrations, object{
			"serviceProvider": link(wiki), "identityProvider": link(provider), "status": "disabled",
			"defaultRelayState": "https://wiki.example.test/home"}, 201},
		{"registration-updated", "POST", registration,
			object{"status": "DISABLED", "defaultRelayState": "x", "serviceProvider": link(wiki), "identityProvider": nil}, 200},
		{"registrations", "GET", registrations + "?orderBy=defaultRelayState", nil, 200},
		{"registered-with", "GET", provider + "/registeredSamlServiceProviders?entityId=*CHAT", nil, 200},
	} {
		t.Run(scenario.name, func(t *testing.T) {
			c.Clock.Tick()
			c.want(t, scenario.status, scenario.method, scenario.path, scenario.body).Golden(scenario.name)
		})
	}
	for query, want := range map[string]float64{"": 2, "?status=disabled": 2, "?status=ENABLED": 0,
		"?defaultRelayState=https*": 1, "?q=home": 1, "?createdAt=2000": 0, "?limit=1": 2} {
		if size := c.get(t, registrations+query)["size"]; size != want {
			t.Errorf("%s finds %v, want %v", query, size, want)
		}
	}
	c.refused(t, 400, 2105, "GET", registrations+"?entityId=x", nil)
	c.refused(t, 400, 2105, "GET", registrations+"?status=x", nil)
	c.refused(t, 400, 2106, "GET", registrations+"?orderBy=serviceProvider", nil)
	if size := c.get(t, provider+"/registeredSamlServiceProviders")["size"]; size != 2.0 {
		t.Errorf("%v are registered", size)
	}
	t.Run("what is read can be sent back", func(t *testing.T) {
		was := c.get(t, registration)
		was["serviceProvider"], was["identityProvider"] = c.get(t, wiki), c.get(t, provider)
		if now := c.update(t, registration, was); linked(t, now, "serviceProvider") != chat {
			t.Errorf("the registration is %v", now)
		}
		if now := c.update(t, registration, object{"defaultRelayState": nil}); now["defaultRelayState"] != nil ||
			now["status"] != "DISABLED" {
			t.Errorf("the registration is %v", now)
		}
	})
	c.want(t, 204, "DELETE", registration, nil)
	c.refused(t, 404, 404, "GET", registration, nil)
	c.refused(t, 404, 404, "POST", registration, object{"status": "ENABLED"})
	c.want(t, 204, "DELETE", registration, nil)
	c.get(t, chat)
	c.create(t, registrations, object{"serviceProvider": link(chat)}) // it can come back
}

func TestRegistrationsThatAreRefused(t *testing.T) {
	t.Parallel()
	c := open(t)
	_, _, provider := c.saml(t, c.application(t, "Shop"))
	_, _, other := c.saml(t, c.application(t, "Other"))
	wiki, chat := c.serviceProvider(t, "urn:wiki"), c.serviceProvider(t, "urn:chat")
	registrations := provider + "/samlServiceProviderRegistrations"
	registration := text(c.create(t, registrations, object{"serviceProvider": link(chat)})["href"])
	with := func(more object) object {
		body := object{"serviceProvider": link(wiki)}
		for name, value := range more {
			body[name] = value
		}
		return body
	}
	for _, scenario := range []struct {
		what, path string
		body       any
		code       int
	}{
		{"no service provider", registrations, object{}, 2002},
		{"a null service provider", registrations, object{"serviceProvider": nil}, 2002},
		{"a service provider that is no link", registrations, object{"serviceProvider": wiki}, 2004},
		{"a link to nowhere", registrations, with(object{"serviceProvider": link("x")}), 2014},
		{"a service provider that never was", registrations,
			with(object{"serviceProvider": link(applicationtest.Base.To("registeredSamlServiceProviders", c.NewID()))}), 2014},
		{"an identity provider for a service provider", registrations, with(object{"serviceProvider": link(provider)}), 2014},
		{"the application's own service provider", registrations,
			with(object{"serviceProvider": link(strings.Replace(provider, "Identity", "Service", 1))}), 2014},
		{"another identity provider", registrations, with(object{"identityProvider": link(other)}), 2014},
		{"an identity provider that is none", registrations, with(object{"identityProvider": link("x")}), 2014},
		{"a registration that is there", registrations, object{"serviceProvider": link(chat)}, 10111},
		{"an unknown status", registrations, with(object{"status": "ON"}), 2003},
		{"an empty status", registrations, with(object{"status": ""}), 2000},
		{"a long relay state", registrations, with(object{"defaultRelayState": strings.Repeat("é", 4001)}), 2008},
		{"a relay state that is no text", registrations, with(object{"defaultRelayState": 1}), 2004},
		{"an unknown member", registrations, with(object{"name": "x"}), 2015},
		{"an unknown status of one that is there", registration, object{"status": "ON"}, 2003},
		{"a null status of one that is there", registration, object{"status": nil}, 2000},
		{"a long relay state of one that is there", registration, object{"defaultRelayState": strings.Repeat("é", 4001)},
			2008},
		{"an unknown member of one that is there", registration, object{"name": "x"}, 2015},
	} {
		t.Run(scenario.what, func(t *testing.T) {
			before := c.want(t, 200, "GET", registrations, nil).body
			c.refused(t, 400, scenario.code, "POST", scenario.path, scenario.body)
			if after := c.want(t, 200, "GET", registrations, nil).body; !slices.Equal(before, after) {
				t.Errorf("the list of registrations changed from %s to %s", before, after)
			}
		})
	}
	c.create(t, registrations, with(object{"defaultRelayState": strings.Repeat("é", 4000)}))
	c.create(t, other+"/samlServiceProviderRegistrations", object{"serviceProvider": link(chat)}) // elsewhere it is free
	nowhere := applicationtest.Base.To("samlIdentityProviders", c.NewID())
	c.refused(t, 404, 404, "POST", nowhere+"/samlServiceProviderRegistrations", object{"serviceProvider": link(chat)})
	c.refused(t, 404, 404, "GET", nowhere+"/samlServiceProviderRegistrations", nil)
	c.refused(t, 404, 404, "GET", nowhere+"/registeredSamlServiceProviders", nil)
}

func TestAServiceProviderIsRegisteredOnce(t *testing.T) {
	t.Parallel()
	c := open(t)
	_, _, provider := c.saml(t, c.application(t, "Shop"))
	wiki := c.serviceProvider(t, "urn:wiki")
	var made atomic.Int32
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			switch a := c.send(t, "POST", provider+"/samlServiceProviderRegistrations",
				object{"serviceProvider": link(wiki)}); a.status {
			case 201:
				made.Add(1)
			case 400:
			default:
				t.Errorf("the answer is %d %s", a.status, a.body)
			}
		})
	}
	group.Wait()
	if made.Load() != 1 || c.count(t, "saml_registrations") != 1 {
		t.Errorf("%d were made, %d are there", made.Load(), c.count(t, "saml_registrations"))
	}
}

func TestRegistrationsGoWithWhatTheyJoin(t *testing.T) {
	t.Parallel()
	c := open(t)
	shop := c.application(t, "Shop")
	_, _, provider := c.saml(t, shop)
	wiki, chat := c.serviceProvider(t, "urn:wiki"), c.serviceProvider(t, "urn:chat")
	register := func(what string) string {
		return text(c.create(t, provider+"/samlServiceProviderRegistrations", object{"serviceProvider": link(what)})["href"])
	}
	ofWiki, ofChat := register(wiki), register(chat)
	c.want(t, 204, "DELETE", wiki, nil)
	c.refused(t, 404, 404, "GET", ofWiki, nil)
	if size := c.get(t, provider+"/registeredSamlServiceProviders")["size"]; size != 1.0 {
		t.Errorf("%v are registered", size)
	}
	c.get(t, ofChat)
	links := c.get(t, provider)
	c.want(t, 204, "DELETE", shop, nil)
	for _, path := range []string{ofChat, provider, linked(t, links, "metadata"), linked(t, links, "x509SigningCert"),
		linked(t, links, "attributeStatementMappingRules"),
		linked(t, links, "samlServiceProviderRegistrations"), linked(t, links, "registeredSamlServiceProviders")} {
		c.refused(t, 404, 404, "GET", path, nil)
	}
	c.get(t, chat)
	for _, table := range []string{"saml_identity_providers", "saml_registrations"} {
		if n := c.count(t, table); n != 0 {
			t.Errorf("%d %s are left", n, table)
		}
	}
}

package rest_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/doorward/doorward/pkg/certificate/certtest"
	"github.com/doorward/doorward/services/application/applicationtest"
)

const consumer = "https://sp.example.test/acs"

func (c *client) serviceProvider(t *testing.T, entity string) string {
	t.Helper()
	return text(c.create(t, "/registeredSamlServiceProviders",
		object{"assertionConsumerServiceUrl": consumer, "entityId": entity})["href"])
}

func TestServiceProviderAnswers(t *testing.T) {
	t.Parallel()
	c := open(t)
	wiki := c.serviceProvider(t, "urn:wiki")
	tenant := applicationtest.Base.To("tenants", c.tenant)
	for _, scenario := range []struct {
		name, method, path string
		body               any
		status             int
	}{
		{"service-provider", "GET", wiki, nil, 200},
		{"service-provider-created", "POST", "/registeredSamlServiceProviders", object{
			"name": "Chat", "description": "Talks", "assertionConsumerServiceURL": consumer,
			"entityId": "https://Chat.example.test", "nameIdFormat": "persistent"}, 201},
		{"service-provider-updated", "POST", wiki,
			object{"name": "Wiki", "nameIdFormat": "urn:oasis:names:tc:SAML:2.0:nameid-format:transient", "href": "x",
				"tenant": nil}, 200},
		{"service-providers", "GET", tenant + "/registeredSamlServiceProviders?entityId=URN:*&orderBy=name%20desc", nil, 200},
	} {
		t.Run(scenario.name, func(t *testing.T) {
			c.Clock.Tick()
			c.want(t, scenario.status, scenario.method, scenario.path, scenario.body).Golden(scenario.name)
		})
	}
	c.want(t, 204, "DELETE", wiki, nil)
	c.want(t, 204, "DELETE", wiki, nil)
	c.refused(t, 404, 404, "GET", wiki, nil)
	c.refused(t, 404, 404, "POST", wiki, object{"name": "Wiki"})
}

func TestServiceProvidersThatAreRefused(t *testing.T) {
	t.Parallel()
	c := open(t)
	wiki := c.serviceProvider(t, "urn:wiki")
	c.serviceProvider(t, "urn:Taken")
	certificate := certtest.Now().Chain()
	for _, scenario := range []struct {
		what string
		body object
		code int // 0: accepted
	}{
		{"no address", object{"assertionConsumerServiceUrl": nil}, 2000},
		{"a blank address", object{"assertionConsumerServiceUrl": " "}, 2000},
		{"an address that is none", object{"assertionConsumerServiceUrl": "sp.example.test/acs"}, 2006},
		{"an address that runs code", object{"assertionConsumerServiceUrl": "javascript:alert(1)"}, 2006},
		{"an address with a password", object{"assertionConsumerServiceUrl": "https://jo:x@sp.example.test"}, 2006},
		{"a long address", object{"assertionConsumerServiceUrl": "https://sp.example.test/" + strings.Repeat("x", 2000)},
			2008},
		{"an http address", object{"assertionConsumerServiceUrl": "http://sp.internal/acs"}, 0},
		{"no entity", object{"entityId": nil}, 2000},
		{"a long entity", object{"entityId": strings.Repeat("x", 1025)}, 2008},
		{"the longest entity", object{"entityId": strings.Repeat("x", 1024)}, 0},
		{"a taken entity", object{"entityId": "urn:Taken"}, 10110},
		{"an entity in another case", object{"entityId": "urn:taken"}, 0},
		{"its own entity again", object{"entityId": "urn:taken"}, 0},
		{"a null format", object{"nameIdFormat": nil}, 2002},
		{"an unknown format", object{"nameIdFormat": "urn:oasis:names:tc:SAML:1.1:nameid-format:X509SubjectName"}, 2002},
		{"the URN of a format", object{"nameIdFormat": "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress"}, 0},
		{"a certificate that is none",
			object{"encodedX509Certificate": "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----"}, 2006},
		{"a certificate", object{"encodedX509Certificate": certificate}, 0},
		{"two certificates", object{"encodedX509Certificate": certificate + certificate}, 2006},
		{"no certificate", object{"encodedX509Certificate": nil}, 0},
		{"an empty name", object{"name": ""}, 2007},
		{"a long name", object{"name": strings.Repeat("é", 256)}, 2008},
		{"the longest name", object{"name": strings.Repeat("é", 255)}, 0},
		{"no name", object{"name": nil}, 0},
		{"a long description", object{"description": strings.Repeat("é", 1001)}, 2008},
		{"an unknown member", object{"status": "ENABLED"}, 2015},
		{"a number for a text", object{"entityId": 1}, 2004},
	} {
		t.Run(scenario.what, func(t *testing.T) {
			if scenario.code == 0 {
				c.update(t, wiki, scenario.body)
				return
			}
			before := c.want(t, 200, "GET", wiki, nil).body
			c.refused(t, 400, scenario.code, "POST", wiki, scenario.body)
			if after := c.want(t, 200, "GET", wiki, nil).body; !slices.Equal(before, after) {
				t.Errorf("the service provider changed from %s to %s", before, after)
			}
		})
	}
	c.refused(t, 400, 2000, "POST", "/registeredSamlServiceProviders", object{"entityId": "urn:new"})
	c.refused(t, 400, 2002, "POST", wiki,
		object{"name": "", "assertionConsumerServiceUrl": "no address", "nameIdFormat": "LOST"})
	c.refused(t, 400, 2000, "POST", "/registeredSamlServiceProviders", object{"assertionConsumerServiceUrl": consumer})
}

func TestAnEntityIsRegisteredOnce(t *testing.T) {
	t.Parallel()
	c := open(t)
	var made atomic.Int32
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			a := c.send(t, "POST", "/registeredSamlServiceProviders",
				object{"assertionConsumerServiceUrl": consumer, "entityId": "urn:wiki"})
			switch a.status {
			case 201:
				made.Add(1)
			case 400:
			default:
				t.Errorf("the status is %d", a.status)
			}
		})
	}
	group.Wait()
	if made.Load() != 1 {
		t.Errorf("%d were made", made.Load())
	}
}

func TestServiceProvidersAreTheirTenantsAlone(t *testing.T) {
	t.Parallel()
	c := open(t)
	wiki, tenant := c.serviceProvider(t, "urn:wiki"), applicationtest.Base.To("tenants", c.tenant)
	stranger := c.another(t)
	stranger.serviceProvider(t, "urn:wiki") // the entity is free there
	stranger.refused(t, 404, 404, "GET", wiki, nil)
	stranger.refused(t, 404, 404, "POST", wiki, object{"name": "Stolen"})
	stranger.want(t, 204, "DELETE", wiki, nil)
	stranger.refused(t, 404, 404, "GET", tenant+"/registeredSamlServiceProviders", nil)
	for query, want := range map[string]int{"": 1, "?q=wiki": 1, "?q=sp.example": 1, "?nameIdFormat=email": 1,
		"?nameIdFormat=EM*": 1, "?nameIdFormat=*ail": 1, "?nameIdFormat=PERS*": 0, "?nameIdFormat=x": 0,
		"?assertionConsumerServiceUrl=*ACS": 1, "?entityId=urn:other": 0, "?createdAt=2000": 0} {
		if size := c.get(t, tenant+"/registeredSamlServiceProviders"+query)["size"]; fmt.Sprint(size) != fmt.Sprint(want) {
			t.Errorf("%s finds %v, want %d", query, size, want)
		}
	}
	c.refused(t, 400, 2105, "GET", tenant+"/registeredSamlServiceProviders?nameFormat=x", nil)
}

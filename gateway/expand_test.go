package gateway

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/gateway/expansion"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/rest"
)

// linked writes {"href":…} for a path below /v1.
func linked(path string) string { return `{"href":"` + string(base) + path + `"}` }

// exampleResources are a few resources, with JSON that decoding and encoding would change.
func exampleResources(s *testGateway) {
	s.services["directory"].setAnswers(map[string]string{
		"/accounts/A1": `{"href":"` + string(base) + `/accounts/A1","n":12345678901234567890.10,"b":"\u003c","directory":` + linked("/directories/D1") +
			`,"tenant":` + linked("/tenants/T1") + `,"groups":` + linked("/accounts/A1/groups") + `,"customData":` + linked("/accounts/A1/customData") +
			`,"providerData":null,"a":1}`,
		"/accounts/A1/customData":              `{"n":1e400,"z":1,"a":{"tenant":` + linked("/tenants/T1") + `}}`,
		"/accounts/A1/groups":                  `{"href":"x","offset":0,"limit":25,"size":0,"items":[]}`,
		"/accounts/A1/groups?offset=5&limit=2": `{"href":"x","offset":5,"limit":2,"size":0,"items":[]}`,
		"/accounts/A1/groups?limit=2":          `{"limit":2}`,
		"/directories/D1":                      `{"name":"D1","tenant":` + linked("/tenants/T1") + `}`,
		"/directories/D1/accounts":             `{"href":"x","items":[{"directory":` + linked("/directories/D1") + `,"i":1},{"i":2,"directory":` + linked("/directories/D1") + `},{"directory":null},7],"directory":` + linked("/directories/D1") + `}`,
		"/tenants/T1":                          `{"name":"T1"}`,
	})
}

func TestLinksAreExpanded(t *testing.T) {
	s := openGateway(t)
	exampleResources(s)
	account := func(directory, tenant, groups, customData string) string {
		return `{"href":"` + string(base) + `/accounts/A1","n":12345678901234567890.10,"b":"\u003c","directory":` + directory + `,"tenant":` + tenant +
			`,"groups":` + groups + `,"customData":` + customData + `,"providerData":null,"a":1}`
	}
	directory, tenant := linked("/directories/D1"), linked("/tenants/T1")
	groups, data := linked("/accounts/A1/groups"), linked("/accounts/A1/customData")
	fullDirectory, fullTenant, fullData := `{"name":"D1","tenant":`+tenant+`}`, `{"name":"T1"}`, `{"n":1e400,"z":1,"a":{"tenant":`+tenant+`}}`
	for query, want := range map[string]string{
		"":                                 account(directory, tenant, groups, data),
		"?expand=tenant":                   account(directory, fullTenant, groups, data),
		"?expand=tenant&expand=tenant":     account(directory, fullTenant, groups, data),
		"?expand=tenant&%65xpand=+tenant":  account(directory, fullTenant, groups, data),
		"?expand=tenant,directory,tenant":  account(fullDirectory, fullTenant, groups, data),
		"?expand=customData":               account(directory, tenant, groups, fullData),
		"?expand=groups":                   account(directory, tenant, `{"href":"x","offset":0,"limit":25,"size":0,"items":[]}`, data),
		"?expand=groups(offset:5,limit:2)": account(directory, tenant, `{"href":"x","offset":5,"limit":2,"size":0,"items":[]}`, data),
		"?expand=tenant,groups%28offset%3A5%2C+limit%3A2%29": account(directory, fullTenant, `{"href":"x","offset":5,"limit":2,"size":0,"items":[]}`, data),
		"?%65xpand=%20groups%20(limit:2)%20,%20tenant%20":    account(directory, fullTenant, `{"limit":2}`, data),
		"?expand=providerData,phones":                        account(directory, tenant, groups, data),
	} {
		if got := s.get(t, "/v1/accounts/A1"+query).want(200); string(got.body) != want {
			t.Errorf("%s gives\n%s, want\n%s", query, got.body, want)
		}
	}
	for _, e := range s.services["directory"].requests() {
		if strings.Contains(e.Target, "expand") {
			t.Errorf("the service was asked to expand: %s", e.Target)
		}
		if e.Method != "GET" || e.Caller.Key != keyID || e.Caller.RequestID == "" {
			t.Errorf("%s was fetched for %+v", e.Target, e.Caller)
		}
	}
}

func TestOnACollectionTheNamesApplyToItems(t *testing.T) {
	s := openGateway(t)
	exampleResources(s)
	full := `{"name":"D1","tenant":` + linked("/tenants/T1") + `}`
	want := `{"href":"x","items":[{"directory":` + full + `,"i":1},{"i":2,"directory":` + full + `},{"directory":null},7],"directory":` + linked("/directories/D1") + `}`
	if got := s.get(t, "/v1/directories/D1/accounts?expand=directory").want(200); string(got.body) != want {
		t.Errorf("the expanded collection is %s, want %s", got.body, want)
	}
	if n := s.services["directory"].calls.Load(); n != 2 {
		t.Errorf("the service was asked %d times: each resource is fetched once", n)
	}
}

func TestExpansionOfWhatAPostAnswers(t *testing.T) {
	s := openGateway(t)
	s.services["application"].setHandler(func(c *fiber.Ctx) error {
		c.Set("Location", string(base)+"/accounts/A1")
		c.Set("Content-Type", rest.MIME)
		if c.Method() == "GET" {
			return c.SendString(`{"name":"P1"}`)
		}
		return c.Status(201).SendString(`{"items":[{"application":` + linked("/applications/P1") + `}],"account":` + linked("/accounts/A1") +
			`,"application":` + linked("/applications/P1") + `,"tenant":` + linked("/tenants/T1") + `}`)
	})
	s.services["directory"].setAnswers(map[string]string{"/accounts/A1": `{"name":"A1"}`, "/tenants/T1": `{"name":"T1"}`})
	a := s.post(t, "/v1/applications/P1/loginAttempts?expand=account", "{}").want(201)
	if !strings.Contains(string(a.body), `"account":{"name":"A1"}`) || a.header.Get("Location") != string(base)+"/accounts/A1" {
		t.Errorf("%s with %v", a.body, a.header)
	}
	if a := s.post(t, "/v1/accountStoreMappings?expand=application", "{}").want(201); !strings.Contains(string(a.body), `,"application":{"name":"P1"}`) {
		t.Errorf("the expanded answer to a POST is %s", a.body)
	}
	if a := s.post(t, "/v1/organizations/1/accounts?expand=tenant", "{}").want(201); !strings.Contains(string(a.body), `"tenant":{"name":"T1"}`) {
		t.Errorf("a POST to a collection answers one resource: %s", a.body)
	}
}

func TestNamesThatCannotBeExpandedAreRefusedFirst(t *testing.T) {
	s := openGateway(t)
	exampleResources(s)
	for _, c := range []struct {
		method, path string
		code         int
	}{
		{"GET", "/accounts/A1?expand=accessTokens", 2107}, {"GET", "/accounts/A1?expand=Tenant", 2107}, {"GET", "/accounts/A1?expand=tenant,nothing", 2107},
		{"POST", "/applications?expand=loginAttempts", 2107}, {"POST", "/applications/1/loginAttempts?expand=tenant", 2107}, {"DELETE", "/accounts/A1?expand=x", 2107},
		{"GET", "/accounts/A1?expand=directory.tenant", 2107}, {"GET", "/accounts/A1/customData?expand=tenant", 2107}, {"GET", "/applications/1?expand=idSiteModel", 2107},
		{"GET", "/accounts/A1?expand=tenant(directory)", 2100}, {"GET", "/accounts/A1?expand=tenant,", 2100}, {"GET", "/accounts/A1?expand=,", 2100},
		{"GET", "/accounts/A1?expand=groups(", 2100}, {"GET", "/accounts/A1?expand=groups)", 2100}, {"GET", "/accounts/A1?expand=groups()", 2100},
		{"GET", "/accounts/A1?expand=groups(limit:2)tenant", 2100}, {"GET", "/accounts/A1?expand=groups((limit:2))", 2100},
		{"GET", "/accounts/A1?expand=groups(limit:2,limit:3)", 2100}, {"GET", "/accounts/A1?expand=groups(limit:1e9)", 2103},
		{"GET", "/accounts/A1?expand=groups(limit:x)", 2103}, {"GET", "/accounts/A1?expand=groups(offset:x,limit:2)", 2103},
		{"GET", "/accounts/A1?expand=groups(limit:)", 2100}, {"GET", "/accounts/A1?expand=groups(limit)", 2100},
		{"GET", "/accounts/A1?expand=tenant(limit:x)", 2100}, {"GET", "/accounts/A1?expand=tenant(limit:0)", 2100},
		{"GET", "/accounts/A1?expand=groups(limit:2,offset:1,limit:3)", 2100}, {"GET", "/accounts/A1?expand=groups(size:2)", 2100},
		{"GET", "/accounts/A1?expand=groups(limit:0)", 2103}, {"GET", "/accounts/A1?expand=groups(offset:-1)", 2103}, {"GET", "/accounts/A1?expand=groups(offset:99999999999)", 2103},
		{"GET", "/accounts/A1?expand=%zz", 2100}, {"GET", "/accounts/A1?expand=", 2101}, {"GET", "/accounts/A1?expand", 2101}, {"GET", "/accounts/A1?expand=tenant&expand=groups", 2102},
		{"GET", "/accounts/A1?expand=tenant(limit:1)", 2100}, {"GET", "/accounts/A1?expand=customData(offset:0)", 2100}, {"GET", "/applications/1?expand=apiKeys", 2107},
		{"GET", "/samlIdentityProviders/1?expand=ssoLoginEndpoint", 2107}, {"GET", "/samlIdentityProviders/1?expand=x509SigningCert", 2107},
		{"GET", "/accounts/A1?expand=" + strings.Repeat("tenant(", 200), 2100},
	} {
		s.do(t, call{method: c.method, path: "/v1" + c.path, body: map[bool]string{true: "{}"}[c.method == "POST"]}).wantError(400, c.code)
	}
	for name, service := range s.services {
		if n := service.calls.Load(); n > 0 {
			t.Errorf("the %s service was sent %d requests", name, n)
		}
	}
}

func TestLinksThatAreNotExpanded(t *testing.T) {
	s := openGateway(t)
	world := map[string]string{}
	for name, href := range map[string]string{
		"tenant": string(base) + "/tenants/gone", "directory": "https://elsewhere.example/v1/directories/D1", "groups": string(base) + "/../internal/x",
		"customData": string(base) + "/internal/oauth.Authenticate", "providerData": "https://id.example.com/client/calm-otter/me", "apiKeys": "/v1/apiKeys/1",
		"phones": string(base) + "/applications/1/loginAttempts", "factors": string(base) + "/accounts/1\\r\\nX: y", "applications": string(base) + "/applications/1/saml/sso/idpRedirect",
	} {
		body := `{"` + name + `":{"href":"` + href + `"}}`
		world["/accounts/"+name] = body
	}
	for name, value := range map[string]string{"linkedAccounts": `"text"`, "accountLinks": `{"href":1}`, "groupMemberships": `{"href":"` + string(base) + `/tenants/1","more":1}`} {
		world["/accounts/"+name] = `{"` + name + `":` + value + `}`
	}
	s.services["directory"].setAnswers(world)
	for path, body := range world {
		name := strings.TrimPrefix(path, "/accounts/")
		if a := s.get(t, "/v1"+path+"?expand="+name).want(200); string(a.body) != body {
			t.Errorf("%s became %s", body, a.body)
		}
	}
	for name, service := range s.services {
		if name != "directory" && service.calls.Load() > 0 {
			t.Errorf("the %s service was asked", name)
		}
	}
	t.Run("a resource that is refused", func(t *testing.T) {
		body := `{"apiKeys":` + linked("/accounts/1/apiKeys") + `}`
		s.services["directory"].setAnswers(map[string]string{"/accounts/1": body})
		for _, status := range []int{400, 403, 404, 302, 204} {
			s.services["oauth"].setHandler(func(c *fiber.Ctx) error { return c.Status(status).SendString("{}") })
			if a := s.get(t, "/v1/accounts/1?expand=apiKeys").want(200); string(a.body) != body {
				t.Errorf("a link answered with %d is expanded: %s", status, a.body)
			}
		}
		s.services["oauth"].setHandler(func(c *fiber.Ctx) error { return c.SendString("no JSON") })
		if a := s.get(t, "/v1/accounts/1?expand=apiKeys").want(200); string(a.body) != body {
			t.Errorf("a link answered with text is expanded: %s", a.body)
		}
	})
}

func TestAServiceThatFailsFailsTheExpansion(t *testing.T) {
	s := openGateway(t)
	body := `{"apiKeys":` + linked("/accounts/1/apiKeys") + `}`
	s.services["directory"].setHandler(func(c *fiber.Ctx) error {
		c.Set("ETag", `W/"1"`)
		c.Set("Content-Type", rest.MIME)
		return c.SendString(body)
	})
	s.services["oauth"].setHandler(func(*fiber.Ctx) error { return apierr.Unavailable })
	a := s.get(t, "/v1/accounts/1?expand=apiKeys").wantError(503, 503)
	if a.header.Get("Retry-After") != "1" || a.header.Get("ETag") != "" {
		t.Errorf("the headers are %v", a.header)
	}
	s.services["oauth"].setHandler(func(c *fiber.Ctx) error { return c.Status(502).SendString("{}") })
	s.get(t, "/v1/accounts/1?expand=apiKeys").wantError(500, 500)
	t.Run("but not what has changed something already", func(t *testing.T) {
		if a := s.post(t, "/v1/accounts/1?expand=apiKeys", "{}").want(200); string(a.body) != body {
			t.Errorf("a POST whose expansion fails is answered with %s", a.body)
		}
	})
}

// Only the resources that are API keys get the parameters, and the others of the query stay with the request.
func TestExpandedAPIKeysAreEncrypted(t *testing.T) {
	s := openGateway(t)
	const encryption = "encryptSecret=true&encryptionKeySalt=AAECAwQFBgcICQoLDA0ODw&%65ncryptionKeySize=256&encryptionKeyIterations=1"
	s.services["directory"].setHandler(func(c *fiber.Ctx) error {
		c.Set("Content-Type", rest.MIME)
		return c.SendString(`{"apiKeys":` + linked("/accounts/1/apiKeys") + `,"customData":` + linked("/accounts/1/customData") + `}`)
	})
	s.services["oauth"].setHandler(func(c *fiber.Ctx) error {
		c.Set("Content-Type", rest.MIME)
		if c.Path() == "/v1/applicationWebConfigs/1" {
			return c.SendString(`{"signingApiKey":` + linked("/apiKeys/1") + `,"tenant":` + linked("/tenants/1") + `}`)
		}
		return c.SendString(`{"fetched":true}`)
	})
	for path, want := range map[string]string{
		"/accounts/1?expand=apiKeys,customData&":                "/accounts/1/apiKeys?" + encryption,
		"/accounts/1?x=y&expand=apiKeys(limit:2)&":              "/accounts/1/apiKeys?limit=2&" + encryption,
		"/applicationWebConfigs/1?expand=signingApiKey,tenant&": "/apiKeys/1?" + encryption,
	} {
		if a := s.get(t, "/v1"+path+encryption).want(200); !strings.Contains(string(a.body), `{"fetched":true}`) {
			t.Errorf("%s gives %s", path, a.body)
		}
		asked := s.services["oauth"].requests()
		if got := asked[len(asked)-1].Target; got != "/v1"+want {
			t.Errorf("%s fetches %s, want %s", path, got, want)
		}
	}
	for _, e := range s.services["directory"].requests() {
		if strings.Contains(e.Target, "/customData?") || strings.HasPrefix(e.Target, "/v1/tenants/1?") {
			t.Errorf("%s was fetched", e.Target)
		}
	}
	t.Run("wrong parameters are the error of the service", func(t *testing.T) {
		s.services["oauth"].setHandler(func(*fiber.Ctx) error { return apierr.ParameterEmpty.Because("a salt is required") })
		a := s.get(t, "/v1/accounts/1?expand=apiKeys&encryptSecret=true").wantError(400, apierr.ParameterEmpty.Code)
		if !strings.Contains(string(a.body), `"developerMessage":"a salt is required"`) {
			t.Errorf("the error of a missing salt is %s", a.body)
		}
		if a := s.post(t, "/v1/accounts/1?expand=apiKeys&encryptSecret=true", "{}").want(200); strings.Contains(string(a.body), "fetched") {
			t.Errorf("a POST expands keys: %s", a.body)
		}
	})
}

func TestRedirectsCarryTheExpansion(t *testing.T) {
	s := openGateway(t)
	for _, name := range []string{"directory", "oauth"} {
		s.services[name].setHandler(func(c *fiber.Ctx) error { return rest.Redirect(c, string(base)+"/there/1") })
	}
	for path, want := range map[string]string{
		"/tenants/current": "",
		"/tenants/current?expand=applications(limit:5)":           "?expand=applications(limit:5)",
		"/tenants/current?expand=applications%28limit%3A5%29&a=b": "?a=b&expand=applications%28limit%3A5%29",
		"/applications/1/authTokens/a.b.c?expand=account":         "?expand=account",
	} {
		if a := s.get(t, "/v1"+path).want(302); a.header.Get("Location") != string(base)+"/there/1"+want || len(a.body) > 0 {
			t.Errorf("%s leads to %s", path, a.header.Get("Location"))
		}
	}
}

func TestValidatorsDoNotMixWithExpansion(t *testing.T) {
	s := openGateway(t)
	s.services["directory"].setHandler(func(c *fiber.Ctx) error {
		if c.Get("If-None-Match") == `W/"1"` {
			return c.SendStatus(304)
		}
		c.Set("ETag", `W/"1"`)
		c.Set("Content-Type", rest.MIME)
		return c.SendString(`{"tenant":` + linked("/tenants/1") + `}`)
	})
	known := http.Header{"If-None-Match": {`W/"1"`}}
	s.do(t, call{method: "GET", path: "/v1/accounts/1", header: known}).want(304)
	if a := s.do(t, call{method: "GET", path: "/v1/accounts/1?expand=tenant", header: known}).want(200); a.header.Get("ETag") != "" {
		t.Errorf("an expanded answer has the ETag %s", a.header.Get("ETag"))
	}
}

// A page of a hundred items with several links each is fetched a few at a
// time; one that asks for more than that is refused.
func TestExpansionIsBounded(t *testing.T) {
	s := openGateway(t)
	names := []string{"tenant", "directory", "groups", "customData", "groupMemberships", "providerData"}
	var running atomic.Int64
	var mu sync.Mutex
	asked := map[string]int{}
	large := 100
	gate := make(chan struct{})
	s.services["directory"].setHandler(func(c *fiber.Ctx) error {
		c.Set("Content-Type", rest.MIME)
		if strings.HasSuffix(c.Path(), "/directories/D1/accounts") {
			var items []string
			for i := range 100 {
				var links []string
				for _, name := range names {
					links = append(links, fmt.Sprintf(`%q:%s`, name, linked(fmt.Sprintf("/accounts/%d/customData?x=%s", i, name))))
				}
				items = append(items, "{"+strings.Join(links, ",")+"}")
			}
			return c.SendString(`{"items":[` + strings.Join(items, ",") + `]}`)
		}
		running.Add(1)
		defer running.Add(-1)
		mu.Lock()
		asked[string(c.Request().Header.RequestURI())]++
		mu.Unlock()
		<-gate
		return c.SendString(`{"x":"` + strings.Repeat("x", large) + `"}`)
	})
	var a answer
	var group sync.WaitGroup
	group.Go(func() { a = s.get(t, "/v1/directories/D1/accounts?expand="+strings.Join(names[:5], ",")) })
	eventually(t, "the first are fetched", func() bool { return running.Load() >= expansion.MaxFetching })
	for range 50 { // time in which more could be
		s.get(t, "/v1/applications/1").want(200)
	}
	if n := running.Load(); n != expansion.MaxFetching {
		t.Errorf("%d are fetched at a time", n)
	}
	close(gate)
	group.Wait()
	a.want(200)
	if n := strings.Count(compactJSON(t, a.body), `"xxx`); n != 500 {
		t.Errorf("%d links were expanded", n)
	}
	for address, n := range asked {
		if n != 1 {
			t.Errorf("%s was fetched %d times", address, n)
		}
	}
	if len(asked) != 500 {
		t.Errorf("%d addresses were fetched", len(asked))
	}
	s.get(t, "/v1/directories/D1/accounts?expand="+strings.Join(names, ",")).wantError(400, 2100)

	large = 1 << 20
	s.get(t, "/v1/directories/D1/accounts?expand=customData").wantError(400, 2100)
	t.Run("also where few resources stand in many places", func(t *testing.T) {
		s.services["directory"].setHandler(func(c *fiber.Ctx) error {
			c.Set("Content-Type", rest.MIME)
			if strings.HasSuffix(c.Path(), "/accounts") {
				return c.SendString(`{"items":[` + strings.TrimSuffix(strings.Repeat(`{"tenant":`+linked("/tenants/1")+`},`, 100), ",") + `]}`)
			}
			return c.SendString(`{"x":"` + strings.Repeat("x", 1<<20) + `"}`)
		})
		s.get(t, "/v1/directories/D1/accounts?expand=tenant").wantError(400, 2100)
	})
}

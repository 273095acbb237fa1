package gateway

import (
	"net/http"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/gateway/requestpath"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/rpc"
)

// documentedEndpoints has the methods and paths that docs/interface documents, by owner.
var documentedEndpoints = map[string]string{
	"directory": `
		GET /tenants/current, GET /tenants/1, POST /tenants/1, GET /tenants/1/directories, GET /tenants/1/accounts, GET /tenants/1/groups, GET /tenants/1/agents,
		POST /directories, GET /directories/1, POST /directories/1, DELETE /directories/1, GET /directories/1/accounts, POST /directories/1/accounts,
		GET /directories/1/groups, POST /directories/1/groups, GET /directories/1/provider, POST /directories/1/provider,
		GET /groups/1, POST /groups/1, DELETE /groups/1, GET /groups/1/accounts, GET /groups/1/accountMemberships,
		POST /groupMemberships, GET /groupMemberships/1, DELETE /groupMemberships/1,
		GET /accounts/1, POST /accounts/1, DELETE /accounts/1, GET /accounts/1/groups, GET /accounts/1/groupMemberships, GET /accounts/1/providerData,
		GET /accounts/1/linkedAccounts, GET /accounts/1/accountLinks, POST /accounts/emailVerificationTokens/1,
		POST /accountLinks, GET /accountLinks/1, DELETE /accountLinks/1,
		GET /accountCreationPolicies/1, POST /accountCreationPolicies/1, GET /accountCreationPolicies/1/verificationEmailTemplates,
		GET /accountCreationPolicies/1/verificationSuccessEmailTemplates, GET /accountCreationPolicies/1/welcomeEmailTemplates, GET /accountCreationPolicies/1/existingAccountEmailTemplates,
		GET /passwordPolicies/1, POST /passwordPolicies/1, GET /passwordPolicies/1/strength, POST /passwordPolicies/1/strength,
		GET /passwordPolicies/1/resetEmailTemplates, GET /passwordPolicies/1/resetSuccessEmailTemplates,
		GET /emailTemplates/1, POST /emailTemplates/1, GET /schemas/1, GET /schemas/1/fields, GET /fields/1, POST /fields/1,
		GET /agents/1, POST /agents/1, POST /agents/1/ping, POST /agents/1/sync, GET /agents/1/authentications, POST /agents/1/authentications/1, GET /agents/1/download,
		GET /agents/1/keys, POST /agents/1/keys, DELETE /agents/1/keys/1, GET /agents/1/configuration, GET /agents/1/refusals,
		GET /userInfoMappingRules/1, POST /userInfoMappingRules/1, GET /attributeStatementMappingRules/1, POST /attributeStatementMappingRules/1,
		GET /samlServiceProviderMetadatas/1, GET /x509certificates/1,
		GET /tenants/1/customData, POST /tenants/1/customData, DELETE /tenants/1/customData, DELETE /tenants/1/customData/k, GET /directories/1/customData,
		POST /directories/1/customData, DELETE /directories/1/customData/k, GET /groups/1/customData, DELETE /groups/1/customData/k,
		GET /accounts/1/customData, POST /accounts/1/customData, DELETE /accounts/1/customData, DELETE /accounts/1/customData/k`,
	"application": `
		GET /tenants/1/applications, GET /tenants/1/organizations, GET /tenants/1/registeredSamlServiceProviders,
		POST /applications, GET /applications/1, POST /applications/1, DELETE /applications/1, GET /applications/1/accounts, POST /applications/1/accounts,
		GET /applications/1/groups, POST /applications/1/groups, GET /applications/1/accountStoreMappings, POST /applications/1/loginAttempts,
		POST /applications/1/verificationEmails, POST /applications/1/passwordResetTokens, GET /applications/1/passwordResetTokens/1,
		POST /applications/1/passwordResetTokens/1, GET /applications/1/customData, POST /applications/1/customData, DELETE /applications/1/customData,
		DELETE /applications/1/customData/k, POST /accountStoreMappings, GET /accountStoreMappings/1, POST /accountStoreMappings/1, DELETE /accountStoreMappings/1,
		GET /accountLinkingPolicies/1, POST /accountLinkingPolicies/1,
		POST /organizations, GET /organizations/1, POST /organizations/1, DELETE /organizations/1, GET /organizations/1/accounts, POST /organizations/1/accounts,
		GET /organizations/1/groups, POST /organizations/1/groups, GET /organizations/1/accountStoreMappings, GET /organizations/1/customData,
		DELETE /organizations/1/customData/k, POST /organizationAccountStoreMappings, GET /organizationAccountStoreMappings/1,
		POST /organizationAccountStoreMappings/1, DELETE /organizationAccountStoreMappings/1,
		GET /directories/1/applications, GET /directories/1/applicationMappings, GET /directories/1/organizations, GET /directories/1/organizationMappings,
		GET /groups/1/applications, GET /groups/1/accountStoreMappings, GET /accounts/1/applications,
		GET /samlPolicies/1, GET /samlServiceProviders/1, POST /samlServiceProviders/1/defaultRelayStates, GET /samlIdentityProviders/1, POST /samlIdentityProviders/1,
		GET /samlIdentityProviders/1/registeredSamlServiceProviders, GET /samlIdentityProviders/1/samlServiceProviderRegistrations,
		POST /samlIdentityProviders/1/samlServiceProviderRegistrations, GET /samlIdentityProviderMetadatas/1,
		POST /registeredSamlServiceProviders, GET /registeredSamlServiceProviders/1, POST /registeredSamlServiceProviders/1, DELETE /registeredSamlServiceProviders/1,
		GET /samlServiceProviderRegistrations/1, POST /samlServiceProviderRegistrations/1, DELETE /samlServiceProviderRegistrations/1`,
	"oauth": `
		GET /applications/1/apiKeys, GET /applications/1/authTokens/1, POST /applications/1/oauth/token, POST /applications/1/oauth/revoke,
		GET /oAuthPolicies/1, POST /oAuthPolicies/1, GET /tenants/1/signingKeys, POST /tenants/1/signingKeys, GET /signingKeys/1, POST /signingKeys/1,
		GET /openIdSettings/1, POST /openIdSettings/1, GET /openIdProviders/1, POST /openIdProviders/1, GET /applications/1/openIdClients,
		POST /applications/1/openIdClients, GET /openIdClients/1, POST /openIdClients/1, DELETE /openIdClients/1, GET /openIdClients/1/secrets,
		POST /openIdClients/1/secrets, DELETE /openIdClients/1/secrets/1, GET /applicationWebConfigs/1, POST /applicationWebConfigs/1, GET /accounts/1/apiKeys, POST /accounts/1/apiKeys, GET /accounts/1/accessTokens,
		GET /accounts/1/refreshTokens, GET /apiKeys/1, POST /apiKeys/1, DELETE /apiKeys/1, GET /accessTokens/1, DELETE /accessTokens/1,
		GET /refreshTokens/1, DELETE /refreshTokens/1`,
	"mfa": `
		GET /tenants/1/phones, GET /accounts/1/phones, POST /accounts/1/phones, GET /accounts/1/factors, POST /accounts/1/factors, GET /factors/1, POST /factors/1,
		DELETE /factors/1, GET /factors/1/challenges, POST /factors/1/challenges, GET /challenges/1, POST /challenges/1, GET /phones/1, POST /phones/1, DELETE /phones/1`,
	"notification": `GET /tenants/1/smtpServers, POST /smtpServers, GET /smtpServers/1, POST /smtpServers/1, DELETE /smtpServers/1`,
	"idsite":       `GET /tenants/1/idSites, GET /tenants/1/idsites, GET /idSites/1, POST /idSites/1, GET /applications/1/saml/sso/idpRedirect, POST /directories/1/saml/sso/post`,
}

func TestEveryDocumentedEndpointIsForwardedToItsService(t *testing.T) {
	s := openGateway(t)
	count := 0
	for owner, promises := range documentedEndpoints {
		for promise := range strings.SplitSeq(promises, ",") {
			method, path, _ := strings.Cut(strings.TrimSpace(promise), " ")
			e := s.do(t, call{method: method, path: "/v1" + path}).echo()
			if e.Service != owner || e.Method != method || e.Target != "/v1"+path {
				t.Errorf("%s %s reached %s as %s %s, want %s", method, path, e.Service, e.Method, e.Target, owner)
			}
			count++
		}
	}
	if count < 180 {
		t.Errorf("only %d promises were checked", count)
	}
}

// What two services may have is asked of the second when the first has it not.
func TestAPathOfTwoServices(t *testing.T) {
	s := openGateway(t)
	directory, application := s.services["directory"], s.services["application"]
	const path = "/v1/attributeStatementMappingRules/1"
	t.Run("the first has it", func(t *testing.T) {
		if e := s.get(t, path).echo(); e.Service != "directory" || application.calls.Load() != 0 {
			t.Errorf("%s answered, the other was asked %d times", e.Service, application.calls.Load())
		}
	})
	directory.setHandler(func(*fiber.Ctx) error { return apierr.NotFound })
	t.Run("the second has it", func(t *testing.T) {
		e := s.post(t, path+"?a=b", `{"items":[]}`).echo()
		if e.Service != "application" || e.Method != "POST" || e.Target != path+"?a=b" || e.Body != `{"items":[]}` || e.Caller.Tenant != tenant {
			t.Errorf("the second service was asked %+v", e)
		}
		if e := s.get(t, "/v1/x509certificates/1").echo(); e.Service != "application" {
			t.Errorf("%s answered", e.Service)
		}
	})
	t.Run("by expansion too", func(t *testing.T) {
		application.setAnswers(map[string]string{
			"/samlIdentityProviders/1":          `{"attributeStatementMappingRules":{"href":"` + string(base) + `/attributeStatementMappingRules/1"}}`,
			"/attributeStatementMappingRules/1": `{"items":[]}`,
		})
		if a := s.get(t, "/v1/samlIdentityProviders/1?expand=attributeStatementMappingRules").want(200); string(a.body) != `{"attributeStatementMappingRules":{"items":[]}}` {
			t.Errorf("the expanded identity provider is %s", a.body)
		}
	})
	t.Run("neither has it", func(t *testing.T) {
		application.setHandler(func(*fiber.Ctx) error { return apierr.NotFound })
		s.get(t, path).want(404)
	})
	t.Run("the first refuses it", func(t *testing.T) {
		before := application.calls.Load()
		directory.setHandler(func(*fiber.Ctx) error { return apierr.Required })
		s.post(t, path, `{}`).want(400)
		if application.calls.Load() != before {
			t.Error("the second was asked")
		}
	})
}

func TestHostedPagesNeedNoKeyAndReachTheirServiceAsTheyAre(t *testing.T) {
	s := openGateway(t)
	for _, c := range []call{
		{method: "GET", path: "/sso?jwtRequest=a.b.c&expand=x&_method=DELETE"},
		{method: "GET", path: "/sso/logout?jwtRequest=a.b.c"},
		{method: "GET", path: "/register"}, {method: "POST", path: "/register", body: "{}"},
		{method: "GET", path: "/emailVerificationTokens?sptoken=1"}, {method: "POST", path: "/passwordReset", body: "{}"},
		{method: "GET", path: "/client/calm-otter/login"}, {method: "POST", path: "/client/calm-otter/oauth/token", body: "{}"},
		{method: "POST", path: "/client/calm-otter/verify?_method=DELETE&expand=x", body: "{}"},
		{method: "OPTIONS", path: "/client/calm-otter/forgot"}, {method: "GET", path: "/client/calm-otter/authorize/callback?code=1"},
	} {
		c.header = anonymous()
		e := s.do(t, c).echo()
		if e.Service != "idsite" || e.Target != c.path || e.Method != c.method || !e.Caller.Tenant.IsZero() {
			t.Errorf("%s %s reached %s as %s %s for %v", c.method, c.path, e.Service, e.Method, e.Target, e.Caller)
		}
	}
}

func TestHostsAndTokensChooseTheRoute(t *testing.T) {
	s := openGateway(t, func(cfg *Config, _ *testGateway) { cfg.ClientSuffix = "apps.example.com" })
	bearer := "Authorization: Bearer a.b.c\r\n"
	for _, c := range []struct{ method, host, path, more, target, sent string }{
		{"GET", "calm-otter.apps.example.com", "/login?a=b", "", "/client/calm-otter/login?a=b", "calm-otter.apps.example.com"},
		{"POST", "Calm-Otter.Apps.Example.Com:8443", "//oauth//token/", "", "/client/calm-otter/oauth/token", "calm-otter.apps.example.com:8443"},
		{"OPTIONS", "calm-otter.apps.example.com", "/forgot", "", "/client/calm-otter/forgot", "calm-otter.apps.example.com"},
		{"GET", "calm-otter.apps.example.com", "/v1/accounts/1", "", "/client/calm-otter/v1/accounts/1", "calm-otter.apps.example.com"},
		{"GET", "calm-otter.id.example.com", "/", "", "/site/", "calm-otter.id.example.com"},
		{"GET", "login.shop.example", "/", "", "/site/", "login.shop.example"},
		{"GET", "shop.calm-otter.id.example.com:8443", "/static/app.js?v=1", "", "/site/static/app.js?v=1", "shop.calm-otter.id.example.com"},
		{"GET", "id.example.com", "/v1/applications/1?expand=idSiteModel", bearer, "/session/v1/applications/1?expand=idSiteModel", ""},
		{"POST", "id.example.com", "//v1/applications/1/loginAttempts", bearer, "/session/v1/applications/1/loginAttempts", ""},
		{"OPTIONS", "id.example.com", "/v1/challenges/1", "Origin: https://x\r\nAccess-Control-Request-Method: POST\r\n", "/session/v1/challenges/1", ""},
		{"GET", "id.example.com", "/v1/nothing", bearer, "/session/v1/nothing", ""},
		{"DELETE", "id.example.com", "/v1/applications/1", bearer, "/session/v1/applications/1", ""},
		{"PUT", "id.example.com", "/v1/applications/1", bearer, "/session/v1/applications/1", ""},
		{"DELETE", "calm-otter.apps.example.com", "/nothing", "", "/client/calm-otter/nothing", "calm-otter.apps.example.com"},
		{"PUT", "id.example.com", "/client/calm-otter/me", "", "/client/calm-otter/me", ""},
	} {
		e := s.raw(t, "%s %s HTTP/1.1\r\nHost: %s\r\nX-Doorward-Host: forged\r\n%sContent-Length: 0\r\n\r\n", c.method, c.path, c.host, c.more).echo()
		if sent := strings.Join(e.Headers["X-Doorward-Host"], ""); e.Service != "idsite" || e.Target != c.target || e.Method != c.method || !e.Caller.Tenant.IsZero() || sent != c.sent {
			t.Errorf("%s %s%s reached %s as %s for %q", c.method, c.host, c.path, e.Service, e.Target, sent)
		}
	}
	for _, c := range []struct{ method, host, path, more string }{
		{"GET", "calm-otter.apps.example.com", "/", ""}, {"GET", "id.example.com", "/site/", ""}, {"GET", "id.example.com", "/session/v1/applications/1", ""},
		{"GET", "id.example.com", "/v1/nothing", ""}, {"GET", "id.example.com", "/login", ""}, {"GET", "127.0.0.1:8443", "/login", ""}, {"OPTIONS", "id.example.com", "/v1/challenges/1", ""},
	} {
		if a := s.raw(t, "%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", c.method, c.path, c.host, c.more); a.status != 401 && a.status != 404 {
			t.Errorf("%s %s%s got %d: %s", c.method, c.host, c.path, a.status, a.body)
		}
	}
}

func TestUnknownPaths(t *testing.T) {
	s := openGateway(t)
	stranger := anonymous()
	for _, path := range []string{"/v1", "/v1/nothing", "/v1/internal/oauth.Authenticate", "/v1/accounts", "/v1/accounts/1/nothing", "/v1/accounts/1/customData/k/more",
		"/v1/applications/1/oauth", "/v1/tenants/1/customdata", "/v1/ACCOUNTS/1", "/v1/client/calm-otter/login", "/v1/_mailbox"} {
		s.get(t, path).want(404)
		s.do(t, call{method: "GET", path: path, header: stranger}).wantError(401, 401)
	}
	for _, path := range []string{"/nothing", "/internal", "/internal/", "/internal/oauth.Authenticate", "/healthz", "/readyz", "/metrics", "/V1/accounts/1",
		"/v1x/accounts/1", "/client", "/sso/more", "/_mailbox", "/_mailbox/1", "/errors/404/more", "/*"} {
		s.do(t, call{method: "GET", path: path, header: stranger}).wantError(404, 404)
		s.do(t, call{method: "POST", path: path, header: stranger, body: "{}"}).wantError(404, 404)
	}
	for name, service := range s.services {
		if n := service.calls.Load(); n > 0 {
			t.Errorf("the %s service was sent %d requests", name, n)
		}
	}
}

func TestMethodsThatAreNotOffered(t *testing.T) {
	s := openGateway(t)
	for _, c := range []struct{ method, path, allow string }{
		{"DELETE", "/v1/tenants/1", "GET, HEAD, POST"}, {"PUT", "/v1/accounts/1", "GET, HEAD, POST, DELETE"},
		{"PATCH", "/v1/accounts/1", "GET, HEAD, POST, DELETE"}, {"BREW", "/v1/accounts/1", "GET, HEAD, POST, DELETE"},
		{"OPTIONS", "/v1/accounts/1", "GET, HEAD, POST, DELETE"}, {"TRACE", "/v1/apiKeys/1", "GET, HEAD, POST, DELETE"},
		{"GET", "/v1/applications", "POST"}, {"HEAD", "/v1/applications", "POST"}, {"GET", "/v1/applications/1/oauth/token", "POST"},
		{"POST", "/v1/accountLinks/1", "GET, HEAD, DELETE"}, {"GET", "/v1/accounts/1/customData/k", "DELETE"},
		{"POST", "/v1/tenants/1/agents", "GET, HEAD"}, {"POST", "/v1/agents", ""}, {"GET", "/v1/applications/1/authTokens", ""},
		{"DELETE", "/v1/challenges/1", "GET, HEAD, POST"}, {"POST", "/v1/passwordPolicies/1/resetEmailTemplates", "GET, HEAD"},
		{"POST", "/sso", "GET, HEAD"},
	} {
		a := s.do(t, call{method: c.method, path: c.path})
		if c.method != "HEAD" {
			a.wantError(405, 1100)
		}
		if allow, given := a.want(405).header["Allow"]; !given || strings.Join(allow, "|") != c.allow {
			t.Errorf("%s %s: Allow is %q, want %q", c.method, c.path, allow, c.allow)
		}
	}
	s.do(t, call{method: "BREW", path: "/v1/accounts/1", header: anonymous()}).wantError(401, 401)
}

// What the gateway refuses of a Client API has the body of its other errors.
func TestErrorsOfTheClientAPI(t *testing.T) {
	s := openGateway(t, func(cfg *Config, _ *testGateway) { cfg.ClientSuffix = "apps.example.com" })
	const json, form = "application/json", "application/x-www-form-urlencoded"
	for _, c := range []struct {
		method, host, path, kind string
		body, status             int
		member                   string // beside the message
	}{
		{"GET", "id.example.com", "/client/calm-otter", "", 0, 404, "status"}, {"GET", "id.example.com", "/client/calm-otter/", "", 0, 404, "status"},
		{"GET", "id.example.com", "/client/calm-otter/../me", "", 0, 404, "status"}, {"GET", "calm-otter.apps.example.com", "/", "", 0, 404, "status"},
		{"GET", "calm-otter.apps.example.com", "/%00", "", 0, 404, "status"},
		{"GET", "calm-otter.apps.example.com", "/verify?sptoken=" + strings.Repeat("x", maxURL), "", 0, 413, "status"},
		{"POST", "calm-otter.apps.example.com", "/register", json, maxUnauthenticated + 1, 413, "status"},
		{"POST", "id.example.com", "/client/calm-otter/login", form, maxForm + 1, 413, "status"},
		{"POST", "id.example.com", "//client//calm-otter//oauth//token", form, maxForm + 1, 413, "error"},
		{"POST", "calm-otter.apps.example.com", "/oauth/token", form, maxForm + 1, 413, "error"},
		{"POST", "calm-otter.apps.example.com", "/saml/sso", form, maxSAMLForm + 1, 413, "status"},
	} {
		a := s.raw(t, "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%.*s", c.method, c.path, c.host, c.kind, c.body, min(c.body, 1), "x")
		a.wantClientError(c.status, c.member)
	}
	// Of a request whose first line cannot be read the host is not known.
	s.raw(t, "GET /me x HTTP/1.1\r\nHost: calm-otter.apps.example.com\r\n\r\n").wantError(400, 400)
}

func TestHeadIsGetWithoutABody(t *testing.T) {
	s := openGateway(t)
	s.services["directory"].setAnswers(map[string]string{"/accounts/1": `{"href":"x"}`})
	a := s.do(t, call{method: "HEAD", path: "/v1/accounts/1"}).want(200)
	if len(a.body) > 0 || a.header.Get("Content-Length") != "12" {
		t.Errorf("the answer to HEAD has %d bytes and announces %s", len(a.body), a.header.Get("Content-Length"))
	}
	if e := s.services["directory"].requests()[0]; e.Method != "GET" {
		t.Errorf("the service was sent %s", e.Method)
	}
}

// The GET of these uses a token up, so their service has an answer of its own to HEAD.
func TestHeadOfARedirectArrivesAsHead(t *testing.T) {
	s := openGateway(t)
	for _, path := range []string{
		"/v1/applications/1/saml/sso/idpRedirect?accessToken=x", "/sso?jwtRequest=x", "/sso/logout?jwtRequest=x", "/sso/provider?state=x",
	} {
		s.do(t, call{method: "HEAD", path: path, header: anonymous()}).want(200)
		sent := s.services["idsite"].requests()
		if e := sent[len(sent)-1]; e.Method != "HEAD" || e.Target != path {
			t.Errorf("HEAD %s arrived as %s %s", path, e.Method, e.Target)
		}
	}
}

func TestPathsAreNormalized(t *testing.T) {
	s := openGateway(t)
	for sent, want := range map[string]string{
		"/v1/accounts/1/":                  "/v1/accounts/1",
		"//v1//accounts///1//?q=a//b":      "/v1/accounts/1?q=a//b",
		"/v1/accounts/%41b":                "/v1/accounts/%41b",
		"/v1/accounts/a.b%2Ec":             "/v1/accounts/a.b%2Ec",
		"/v1/accounts/...":                 "/v1/accounts/...",
		"/v1/accounts/1?":                  "/v1/accounts/1",
		"/v1/accounts/1?a=%2F&b":           "/v1/accounts/1?a=%2F&b",
		"/v1/accounts/\xc3\xa9":            "/v1/accounts/\xc3\xa9",
		"//host.example/../v1/accounts/1":  "",
		"/v1/accounts/..%2F..%2Finternal":  "",
		"/v1/accounts/..":                  "",
		"/v1/accounts/.":                   "",
		"/v1/accounts/%2e%2E/tenants":      "",
		"/v1/accounts/1%2Fgroups":          "",
		"/v1/accounts/1%5cgroups":          "",
		"/v1/accounts/1\\groups":           "",
		"/v1/accounts/%00":                 "",
		"/v1/accounts/%0d%0aX":             "",
		"/v1/accounts/%":                   "",
		"/v1/accounts/%zz":                 "",
		"/v1/../internal/a":                "",
		"/v1/./accounts/1":                 "",
		"/v1/accounts/1/../../../internal": "",
		"/v1/%61ccounts/1":                 "",
	} {
		a := s.raw(t, "%s\r\n", requestHead("GET", sent))
		if want == "" {
			a.wantError(404, 404)
			continue
		}
		if e := a.echo(); e.Target != want {
			t.Errorf("%s was forwarded as %s, want %s", sent, e.Target, want)
		}
	}
	t.Run("a target in absolute form is its path", func(t *testing.T) {
		if e := s.raw(t, "%s\r\n", requestHead("GET", "https://localhost/v1/accounts/1?a=b")).echo(); e.Target != "/v1/accounts/1?a=b" {
			t.Errorf("the target in absolute form was forwarded as %s", e.Target)
		}
	})
	for _, target := range []string{"*", "v1/accounts/1", "localhost:443", "https://localhost", "https://x?/v1/accounts/1", "/v1/accounts/1#f", "/v1/accounts/1\x01", "/v1/accounts/a b", "ftp://localhost/v1/accounts/1"} {
		s.raw(t, "%s\r\n", requestHead("GET", target)).wantError(400, 400)
	}
}

func TestAPostCanStandForAnotherMethod(t *testing.T) {
	s := openGateway(t)
	for _, c := range []struct {
		method, query, want, target string
	}{
		{"POST", "?_method=DELETE", "DELETE", ""},
		{"POST", "?_method=delete&a=b", "DELETE", "?a=b"},
		{"POST", "?_method=PUT", "POST", ""},
		{"POST", "?%5Fmethod=PUT&a=%41", "POST", "?a=%41"},
		{"GET", "?_method=DELETE", "GET", ""},
		{"DELETE", "?_method=PUT", "DELETE", ""},
		{"POST", "?x_method=DELETE", "POST", "?x_method=DELETE"},
	} {
		e := s.do(t, call{method: c.method, path: "/v1/accounts/1" + c.query, body: `{"a":1}`}).echo()
		if e.Method != c.want || e.Target != "/v1/accounts/1"+c.target {
			t.Errorf("%s %s arrived as %s %s", c.method, c.query, e.Method, e.Target)
		}
		if want := map[bool]string{true: `{"a":1}`}[c.want == "POST"]; e.Body != want {
			t.Errorf("%s %s arrived with the body %q", c.method, c.query, e.Body)
		}
	}
	s.post(t, "/v1/accounts/1?_method=PATCH", "{}").wantError(400, 2105)
	s.post(t, "/v1/accounts/1?_method=GET", "{}").wantError(400, 2105)
	s.post(t, "/v1/accounts/1?_method=", "{}").wantError(400, 2101)
	s.post(t, "/v1/accounts/1?_method=PUT&_method=DELETE", "{}").wantError(400, 2102)
	if e := s.post(t, "/v1/accounts/1?_method=DELETE&_method=DELETE", "{}").echo(); e.Method != "DELETE" || e.Target != "/v1/accounts/1" {
		t.Errorf("the same override twice arrived as %s %s", e.Method, e.Target)
	}
	s.post(t, "/v1/tenants/1?_method=DELETE", "{}").wantError(405, 1100)
	s.do(t, call{method: "POST", path: "/v1/accounts/1?_method=DELETE", header: anonymous()}).wantError(401, 401)
}

func withMailbox(t testing.TB) option {
	return func(cfg *Config, s *testGateway) { cfg.Upstreams["mailbox"] = s.service(t, "mailbox") }
}

func TestTheMailboxIsForThePrivateNetwork(t *testing.T) {
	s := openGateway(t, withMailbox(t))
	for _, c := range []call{
		{method: "GET", path: "/_mailbox?limit=1"}, {method: "DELETE", path: "/_mailbox"}, {method: "GET", path: "/_mailbox/17/html"},
	} {
		c.header = http.Header{"Authorization": nil, "Accept": {"text/html"}, "Sec-Fetch-Site": {"same-origin"}}
		e := s.do(t, c).echo()
		if e.Service != "mailbox" || e.Target != c.path || e.Method != c.method || e.Headers["Accept"][0] != "text/html" || e.Headers["Sec-Fetch-Site"] == nil {
			t.Errorf("%s %s arrived as %+v", c.method, c.path, e)
		}
	}
	s.do(t, call{method: "POST", path: "/_mailbox", header: anonymous()}).wantError(405, 1100)

	behind := openGateway(t, withMailbox(t), func(cfg *Config, _ *testGateway) { cfg.TrustedHops = 1 })
	from := func(address string) call {
		return call{method: "GET", path: "/_mailbox", header: http.Header{"Authorization": nil, "X-Forwarded-For": {address}}}
	}
	behind.do(t, from("192.168.3.4")).want(200)
	behind.do(t, from("203.0.113.9")).wantError(404, 404)
}

func TestTheTable(t *testing.T) {
	services := map[string]bool{"directory": true, "application": true, "oauth": true, "mfa": true, "notification": true, "idsite": true, "mailbox": true}
	patterns := map[string]bool{}
	for _, r := range parsedRoutes() {
		if (r.page == nil) == (len(r.services) == 0) {
			t.Errorf("%s has a service and a page, or neither", r.pattern)
		}
		for _, service := range r.services {
			if !services[service] {
				t.Errorf("%s belongs to %q", r.pattern, service)
			}
		}
		if patterns[r.pattern] {
			t.Errorf("%s is listed twice", r.pattern)
		}
		patterns[r.pattern] = true
		if managed := requestpath.IsManagement([]byte(r.pattern)); !managed && r.access == keyAccess ||
			managed && r.access != keyAccess && r.access != publicAccess {
			t.Errorf("%s has the wrong kind of access", r.pattern)
		}
		if strings.HasPrefix(r.pattern, rpc.Prefix) {
			t.Errorf("%s is internal", r.pattern)
		}
	}
	t.Run("every expandable kind is the answer of some path", func(t *testing.T) {
		for line := range rows(expandableLinks) {
			if !strings.Contains(routes, " "+line[0]+"\n") && !strings.Contains(routes, "["+line[0]+"]") {
				t.Errorf("nothing answers %s", line[0])
			}
		}
	})
	t.Run("every kind that a path answers is expandable", func(t *testing.T) {
		for line := range rows(routes) {
			if kind := strings.Trim(line[4], "[]"); kind != "-" && !strings.Contains(expandableLinks, "\n"+kind+" ") {
				t.Errorf("%s answers %s, of which nothing is known", line[2], kind)
			}
		}
	})
}

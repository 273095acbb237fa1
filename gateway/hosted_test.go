package gateway

import (
	"net/http"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
)

func TestRequestsOfBrowsersGoToTheIDSiteService(t *testing.T) {
	t.Parallel()
	s := openGateway(t)
	for _, c := range []struct {
		name, path, target, host string
		header                   http.Header
	}{
		{"a session token", "/v1/applications/1?expand=idSiteModel", "/session/v1/applications/1?expand=idSiteModel", "", http.Header{"Authorization": {"Bearer a.b.c"}}},
		{"a double slash in front", "//v1/applications/1", "/session/v1/applications/1", "", http.Header{"Authorization": {"Bearer a.b.c"}}},
		{"a Client API host", "/me?x=1", "/client/calm-otter/me?x=1", "calm-otter.apps.localhost:8443", nil},
		{"the pages of a tenant", "/", "/site/", "calm-otter.id.localhost:8443", nil},
		{"a file of a tenant's pages", "/static/app.js", "/site/static/app.js", "calm-otter.id.localhost:8443", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			header := c.header.Clone()
			if header == nil {
				header = http.Header{}
			}
			if c.host != "" {
				header.Set("Host", c.host)
			}
			header.Set(hostHeader, "evil.example")
			header.Set("Accept-Encoding", "gzip")
			e := s.do(t, call{method: "GET", path: c.path, header: header}).echo()
			if e.Service != "idsite" || e.Target != c.target {
				t.Errorf("%s was asked for %s, want idsite for %s", e.Service, e.Target, c.target)
			}
			if got := e.Headers[http.CanonicalHeaderKey(hostHeader)]; len(got) > 0 && got[0] == "evil.example" {
				t.Errorf("the client's own %s was passed on", hostHeader)
			}
			if got := len(e.Headers["Accept-Encoding"]) > 0; got != (c.host != "") {
				t.Errorf("that compressed files are read was passed on: %t", got)
			}
		})
	}
}

// What browsers open of an OpenID provider is at the base URL alone, where the cookies are; what clients call is the same
// on every host.
func TestBrowsersAreLedFromTheHostOfAnIssuerToTheBaseURL(t *testing.T) {
	t.Parallel()
	s := openGateway(t)
	site := http.Header{"Host": {"calm-otter.id.localhost:8443"}}
	for _, path := range []string{
		"/oidc/1/authorize?client_id=a&state=a%20b%7E%3D", "/oidc/1/authorize/begin?flow=1",
		"/oidc/1/authorize/resume?jwtResponse=a.b.c", "/oidc/1/device?user_code=AB", "/oidc/1/logout",
		"/oidc/1/consent?flow=1",
	} {
		for _, method := range []string{"GET", "HEAD", "POST"} {
			a := s.do(t, call{method: method, path: path, header: site})
			if a.status != http.StatusTemporaryRedirect || a.header.Get("Location") != base.Host()+path ||
				a.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s %s answers %d to %q", method, path, a.status, a.header.Get("Location"))
			}
		}
	}
	for method, path := range map[string]string{
		"GET": "/oidc/1/.well-known/openid-configuration", "POST": "/oidc/1/token", "OPTIONS": "/oidc/1/userinfo",
		"HEAD": "/oidc/1/jwks",
	} {
		if a := s.do(t, call{method: method, path: path, header: site}); a.status != http.StatusOK {
			t.Errorf("%s %s answers %d", method, path, a.status)
		}
	}
	if e := s.do(t, call{method: "GET", path: "/oidc/1/authorize"}).echo(); e.Service != "idsite" {
		t.Errorf("at the base URL %s was asked", e.Service)
	}
}

// The idsite service knows which paths the hosted pages call, and refuses the preflights of all others.
func TestAPreflightOfNoHostedPageIsARequestWithoutAKey(t *testing.T) {
	s := openGateway(t)
	idsite := s.services["idsite"]
	idsite.setHandler(func(c *fiber.Ctx) error {
		c.Set("Vary", "Origin")
		return apierr.SessionTimedOut
	})
	for _, path := range []string{"/v1/nonsense", "/v1/applications"} {
		a := s.do(t, call{method: "OPTIONS", path: path, header: http.Header{"Origin": {"https://any.example"},
			"Access-Control-Request-Method": {"GET"}, "Authorization": nil}}).wantError(401, 401)
		if a.header.Get("WWW-Authenticate") == "" || a.header.Get("Vary") != "" {
			t.Errorf("the preflight of %s answers %v", path, a.header)
		}
	}
	before := idsite.calls.Load()
	s.do(t, call{method: "OPTIONS", path: "/v1/applications/1", header: http.Header{"Origin": {"https://any.example"},
		"Access-Control-Request-Method": {"GET"}}}).wantError(405, apierr.MethodNotAllowed.Code)
	if idsite.calls.Load() != before {
		t.Error("a request with an API key is no preflight")
	}
}

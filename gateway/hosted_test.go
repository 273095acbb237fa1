package gateway

import (
	"net/http"
	"testing"
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

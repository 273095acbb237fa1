package gateway

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/id"
)

// TestTheKeyOfAnAgentIsAcceptedOnItsOwnRoutesOnly sends requests to every route of routes.go: a key
// of an LDAP agent is accepted on the routes of its agent, and elsewhere the answer is 401.
func TestTheKeyOfAnAgentIsAcceptedOnItsOwnRoutesOnly(t *testing.T) {
	s := openGateway(t)
	agent, other := id.New(time.Now()).String(), id.New(time.Now()).String()
	own, _ := id.Parse(agent)
	key := directoryapi.NewAgentKeyID(tenant, own)
	s.keys.add(key, "an agent's secret", tenant)
	header := http.Header{"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(key+":an agent's secret"))}}
	allowed := map[string]bool{}
	for _, call := range []string{
		"POST /v1/agents/:id/ping", "POST /v1/agents/:id/sync", "GET /v1/agents/:id/configuration", "GET /v1/agents/:id/refusals",
		"GET /v1/agents/:id/authentications", "GET /v1/agents/:id/download", "POST /v1/agents/:id/authentications/:check",
	} {
		allowed[call] = true
	}
	tried := 0
	for _, route := range parsedRoutes() {
		if route.access != keyAccess {
			continue
		}
		for _, method := range route.methods {
			if method == http.MethodHead {
				continue
			}
			body := ""
			if method == http.MethodPost {
				body = "{}"
			}
			path := strings.ReplaceAll(route.pattern, ":id", agent)
			answer := s.do(t, call{method: method, path: path, body: body, header: header})
			if allowed[method+" "+route.pattern] {
				tried++
				if e := answer.want(200).echo(); e.Caller.Tenant != tenant || e.Caller.Key != key || !e.Caller.Account.IsZero() && e.Caller.Account != account {
					t.Errorf("%s %s: the service gets %+v", method, path, e.Caller)
				}
				path = strings.ReplaceAll(route.pattern, ":id", other)
				s.do(t, call{method: method, path: path, body: body, header: header}).wantError(401, 401)
				continue
			}
			answer.wantError(401, 401)
		}
	}
	if tried != len(allowed) {
		t.Errorf("%d of %d calls of an agent are routes", tried, len(allowed))
	}
	for _, path := range []string{
		"/v1/nothing", "/v1/agents/" + agent + "/../" + other + "/configuration", "/v1/agents/" + agent + "/../../tenants/current",
		"/v1/agents/" + agent + "%2f../configuration", "/v1/agents/" + strings.ToLower(agent) + "x/configuration",
	} {
		if answer := s.do(t, call{method: "GET", path: path, header: header}); answer.status != 401 && answer.status != 400 {
			t.Errorf("%s: status %d", path, answer.status)
		}
	}
	s.do(t, call{method: "POST", path: "/v1/agents/" + agent + "/ping?_method=DELETE", body: "{}", header: header}).wantError(405, 1100)
}

package gateway

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
)

// A tenant that is suspended is refused by every gateway within 100 ms, and comes back as soon; the status costs a
// request no call.
func TestASuspendedTenantIsRefused(t *testing.T) {
	t.Parallel()
	s := openGateway(t)
	s.keys.add("K", "secret", tenant)
	s.cached(t, use("K"), 200)
	asked := s.tenants.calls.Load()
	s.do(t, use("K")).want(200)
	if calls := s.tenants.calls.Load(); calls != asked {
		t.Errorf("a request asks for the status of its tenant %d times, want none", calls-asked)
	}
	wrong := call{method: "GET", path: "/v1/tenants/1", header: basicAuth("K", "wrong")}
	for _, status := range []string{directoryapi.Suspended, directoryapi.Deleting} {
		s.tenants.set(tenant, status)
		s.ahead.Add(int64(50 * time.Millisecond))
		s.do(t, use("K")).wantError(403, 1930)
		s.do(t, wrong).wantError(401, 401)
		s.tenants.set(tenant, directoryapi.Enabled)
		s.ahead.Add(int64(50 * time.Millisecond))
		s.do(t, use("K")).want(200)
	}
}

// The token endpoint answers as RFC 6749 says.
func TestTheTokenEndpointOfASuspendedTenant(t *testing.T) {
	t.Parallel()
	s := openGateway(t)
	s.tenants.set(tenant, directoryapi.Suspended)
	s.settle()
	answer := s.post(t, "/v1/applications/1/oauth/token", "grant_type=client_credentials").want(403)
	var body struct {
		Code  int    `json:"code"`
		Error string `json:"error"`
	}
	if err := json.Unmarshal(answer.body, &body); err != nil || body.Code != 1930 || body.Error != "access_denied" {
		t.Errorf("the token endpoint answers %s, want code 1930 and access_denied", answer.body)
	}
	s.post(t, "/v1/applications", "{}").wantError(403, 1930)
}

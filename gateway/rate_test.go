package gateway

import (
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/clocktest"
	"github.com/doorward/doorward/pkg/id"
)

// withClock makes the limiter of a gateway use the clock of the test.
func withClock(c *clocktest.Clock) option {
	return func(_ *Config, s *testGateway) {
		s.prepare = func(g *Gateway) { g.Limiter.now = c.Now }
	}
}

// sendUntilLimited sends requests until one is refused with 429, and returns how many were not.
func sendUntilLimited(t *testing.T, s *testGateway, c call) (n int, last answer) {
	t.Helper()
	for {
		if last = s.do(t, c); last.status == 429 {
			return n, last
		}
		last.want(200)
		n++
	}
}

func TestTheRateLimitOfATenant(t *testing.T) {
	var stopped clocktest.Clock
	s := openGateway(t, withClock(&stopped), func(cfg *Config, _ *testGateway) { cfg.Tenant.PerSecond, cfg.Users.PerSecond = 10, 5 })
	s.keys.add("OTHER", "secret", id.New(time.Now()))
	manage := call{method: "GET", path: "/v1/accounts/1"}
	before := refusalCount(t, s, "tenant_rate")
	n, last := sendUntilLimited(t, s, manage)
	if n != 10 {
		t.Errorf("%d requests came through", n)
	}
	last.wantError(429, 429)
	for name, want := range map[string]string{"Retry-After": "1", "RateLimit-Policy": `"tenant_rate";q=10;w=1`, "RateLimit": `"tenant_rate";r=0;t=1`} {
		if got := last.header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if refusalCount(t, s, "tenant_rate") != before+1 {
		t.Error("the refusal was not counted")
	}
	t.Run("what its applications do for end users is counted apart", func(t *testing.T) {
		n, last := sendUntilLimited(t, s, call{method: "POST", path: "/v1/applications/1/loginAttempts", body: "{}"})
		if n != 5 || last.header.Get("RateLimit-Policy") != `"users_rate";q=5;w=1` {
			t.Errorf("%d requests came through, then %v", n, last.header)
		}
		s.post(t, "/v1/applications/1/oauth/token", "{}").wantError(429, 429)
	})
	t.Run("another tenant is not held up", func(t *testing.T) {
		s.do(t, call{method: "GET", path: "/v1/accounts/1", header: basicAuth("OTHER", "secret")}).want(200)
	})
	t.Run("the rate comes back with time", func(t *testing.T) {
		stopped.Move(300 * time.Millisecond)
		if n, _ := sendUntilLimited(t, s, manage); n != 3 {
			t.Errorf("%d requests came through after 0.3 s", n)
		}
		stopped.Move(time.Hour)
		if n, _ := sendUntilLimited(t, s, manage); n != 10 {
			t.Errorf("%d requests came through after an hour", n)
		}
	})
	t.Run("a clock that is set back holds nobody up", func(t *testing.T) {
		stopped.Move(-10 * time.Minute)
		if n, _ := sendUntilLimited(t, s, manage); n != 10 {
			t.Errorf("%d requests came through", n)
		}
	})
}

func TestTheRateLimitsOfAnAddressAndOfAClientAPI(t *testing.T) {
	var stopped clocktest.Clock
	s := openGateway(t, withClock(&stopped), func(cfg *Config, _ *testGateway) {
		cfg.Address.PerSecond, cfg.Users.PerSecond, cfg.TrustedHops = 4, 6, 1
	})
	from := func(address, path string) call {
		return call{method: "GET", path: path, header: http.Header{"Authorization": nil, "X-Forwarded-For": {address}}}
	}
	if n, last := sendUntilLimited(t, s, from("1.1.1.1", "/client/calm-otter/login")); n != 4 || last.header.Get("RateLimit-Policy") != `"address_rate";q=4;w=1` {
		t.Errorf("%d requests of one address came through, then %v", n, last.header)
	}
	if n, last := sendUntilLimited(t, s, from("2.2.2.2", "/client/Calm-Otter/me")); n != 2 || last.header.Get("RateLimit-Policy") != `"site_rate";q=6;w=1` {
		t.Errorf("%d more requests to one application came through, then %v", n, last.header)
	}
	s.do(t, from("3.3.3.3", "/client/other/login")).want(200)
	s.do(t, from("3.3.3.3", "/sso")).want(200)
	s.get(t, "/v1/accounts/1").want(200)
	if n := inFlight(s, addressSubject(addressLimit, netip.MustParseAddr("2.2.2.2"))); n != 0 {
		t.Errorf("%d requests stay counted", n)
	}
}

// One tenant's logins that pile up leave its own management and everybody
// else's requests alone.
func TestLoginsDoNotUseUpTheLimitsOfOtherRequests(t *testing.T) {
	s := openGateway(t, func(cfg *Config, _ *testGateway) { cfg.Tenant.InFlight, cfg.Users.InFlight = 3, 3 })
	s.keys.add("OTHER", "secret", id.New(time.Now()))
	release := blockRequests(s.services["application"])
	defer release()
	login := call{method: "POST", path: "/v1/applications/1/loginAttempts", body: "{}"}
	before := refusalCount(t, s, "users_limit")
	wait := occupyInFlight(t, s, s.services["application"], 3, login)
	wantTooMany(t, s.do(t, login))
	if refusalCount(t, s, "users_limit") != before+1 {
		t.Error("the refusal was not counted")
	}
	for range 3 {
		s.get(t, "/v1/accounts/1").want(200)
	}
	more := occupyInFlight(t, s, s.services["application"], 3, call{method: "POST", path: "/v1/applications/1/loginAttempts", body: "{}", header: basicAuth("OTHER", "secret")})
	wantTooMany(t, s.post(t, "/v1/applications/1/oauth/token", "{}"))
	s.get(t, "/v1/applications/1/authTokens/x").want(200) // an application goes on for whom it has let in
	release()
	wait()
	more()
	t.Run("and a storm of management leaves the logins alone", func(t *testing.T) {
		release := blockRequests(s.services["directory"])
		defer release()
		wait := occupyInFlight(t, s, s.services["directory"], 3, call{method: "POST", path: "/v1/directories/1/accounts", body: "{}"})
		wantTooMany(t, s.get(t, "/v1/accounts/1"))
		s.do(t, login).want(200)
		release()
		wait()
	})
}

func TestSeveralGatewaysShareARateLimit(t *testing.T) {
	t.Parallel()
	server, client := redis(t)
	var stopped clocktest.Clock
	few := func(cfg *Config, s *testGateway) {
		cfg.Tenant.PerSecond = 10
		s.prepare = func(g *Gateway) { g.Limiter.now, g.Limiter.lostAfter = stopped.Now, lostAfter/4 }
	}
	first, second := openGateway(t, few), openGateway(t, few)
	synchronise(t, first, client)
	synchronise(t, second, client)
	eventually(t, "the limits are shared", func() bool { return first.Limiter.synced.Load() && second.Limiter.synced.Load() })
	manage := call{method: "GET", path: "/v1/accounts/1"}
	if n, _ := sendUntilLimited(t, first, manage); n != 10 {
		t.Errorf("%d requests came through the first", n)
	}
	eventually(t, "the second gateway learns of them", func() bool { return usedAhead(second) >= time.Second })
	if n, _ := sendUntilLimited(t, second, manage); n != 0 {
		t.Errorf("%d requests came through the second", n)
	}
	stopped.Move(2 * time.Second)
	eventually(t, "what is over is forgotten", func() bool {
		return subjectCount(first) == 0 && subjectCount(second) == 0
	})
	t.Run("without Redis each holds its own", func(t *testing.T) {
		server.Close()
		eventually(t, "the gateways notice", func() bool { return !first.Limiter.synced.Load() && !second.Limiter.synced.Load() })
		for _, s := range []*testGateway{first, second} {
			if n, _ := sendUntilLimited(t, s, manage); n != 10 {
				t.Errorf("%d requests came through", n)
			}
		}
	})
}

// usedAhead returns for how long the tenant has exhausted its rate.
func usedAhead(s *testGateway) time.Duration {
	s.Limiter.mu.Lock()
	defer s.Limiter.mu.Unlock()
	if u := s.Limiter.local[tenantSubject(tenantLimit, tenant)]; u != nil {
		return u.usedUntil.Sub(s.Limiter.now())
	}
	return 0
}

// subjectCount returns how many subjects have counters.
func subjectCount(s *testGateway) int {
	s.Limiter.mu.Lock()
	defer s.Limiter.mu.Unlock()
	return len(s.Limiter.local)
}

// What another gateway reports holds no caller up for longer than it is valid.
func TestTheCountersOfOtherGatewaysAreBounded(t *testing.T) {
	var stopped clocktest.Clock
	s := openGateway(t, withClock(&stopped), func(cfg *Config, _ *testGateway) { cfg.Tenant.PerSecond = 10 })
	s.Limiter.addPeerArrivals(map[subject]peerCount{tenantSubject(tenantLimit, tenant): {arrived: 1 << 20}, {kind: 0}: {arrived: 1}, {kind: 200}: {arrived: 1}, {kind: wrongKeyLimit}: {arrived: 1}})
	s.get(t, "/v1/accounts/1").wantError(429, 429)
	if subjectCount(s) != 1 {
		t.Errorf("%d subjects are remembered", subjectCount(s))
	}
	stopped.Move(2 * time.Second)
	s.get(t, "/v1/accounts/1").want(200)
}

func TestWithoutARateLimitAnyNumberOfRequestsIsAccepted(t *testing.T) {
	var stopped clocktest.Clock
	s := openGateway(t, withClock(&stopped))
	for range 200 {
		s.get(t, "/v1/accounts/1").want(200)
	}
	if subjectCount(s) != 0 {
		t.Errorf("%d subjects are remembered", subjectCount(s))
	}
}

package gateway

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/gofiber/fiber/v2"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/redisclient"
	"github.com/doorward/doorward/pkg/secure"
)

// blockRequests makes a service keep its requests until the returned function is called.
func blockRequests(f *fakeService) (release func()) {
	gate := make(chan struct{})
	f.setHandler(func(c *fiber.Ctx) error {
		<-gate
		return c.SendString("{}")
	})
	return sync.OnceFunc(func() { close(gate) })
}

// occupyInFlight sends requests that a service blocks, and waits until it has them all.
func occupyInFlight(t *testing.T, s *testGateway, f *fakeService, n int, c call) (wait func()) {
	t.Helper()
	before := f.calls.Load()
	var group sync.WaitGroup
	for range n {
		group.Go(func() {
			if a, err := s.try(t, c); err != nil || a.status != 200 {
				t.Errorf("a held request got %d, %v: %s", a.status, err, a.body)
			}
		})
	}
	eventually(t, fmt.Sprintf("%d requests are in flight", n), func() bool { return f.calls.Load() == before+int64(n) })
	return group.Wait
}

func wantTooMany(t *testing.T, a answer) {
	t.Helper()
	if after := a.wantError(429, 429).header.Get("Retry-After"); after != "1" {
		t.Errorf("Retry-After is %q", after)
	}
}

func TestTheConcurrencyLimitOfATenant(t *testing.T) {
	s := openGateway(t, func(cfg *Config, _ *testGateway) { cfg.Tenant.InFlight = 5 })
	other := id.New(time.Now())
	s.keys.add("OTHER", "secret", other)
	s.keys.add("SECOND", "secret", tenant)
	release := blockRequests(s.services["directory"])
	defer release()
	before := refusalCount(t, s, "tenant_limit")
	wait := occupyInFlight(t, s, s.services["directory"], 5, call{method: "GET", path: "/v1/accounts/1"})
	wantTooMany(t, s.get(t, "/v1/accounts/1"))
	wantTooMany(t, s.get(t, "/v1/nothing"))
	wantTooMany(t, s.do(t, call{method: "GET", path: "/v1/applications/1", header: basicAuth("SECOND", "secret")}))
	if n := refusalCount(t, s, "tenant_limit") - before; n != 3 {
		t.Errorf("%d refusals were counted", n)
	}
	t.Run("another tenant is not held up", func(t *testing.T) {
		s.do(t, call{method: "GET", path: "/v1/applications/1", header: basicAuth("OTHER", "secret")}).want(200)
	})
	release()
	wait()
	for range 10 {
		s.get(t, "/v1/accounts/1").want(200)
	}
}

func TestTheConcurrencyLimitOfAnAddress(t *testing.T) {
	s := openGateway(t, func(cfg *Config, _ *testGateway) { cfg.Address.InFlight, cfg.TrustedHops = 3, 1 })
	from := func(address, path string) call {
		return call{method: "GET", path: path, header: http.Header{"Authorization": nil, "X-Forwarded-For": {address}}}
	}
	release := blockRequests(s.services["idsite"])
	defer release()
	wait := occupyInFlight(t, s, s.services["idsite"], 3, from("2001:db8::1", "/client/calm-otter/login"))
	wantTooMany(t, s.do(t, from("2001:db8::1", "/sso?jwtRequest=x")))
	wantTooMany(t, s.do(t, from("2001:db8::2", "/v1/applications/1/saml/sso/idpRedirect")))
	t.Run("a client cannot pretend to be another", func(t *testing.T) {
		wantTooMany(t, s.do(t, from("9.9.9.9, 2001:db8::ffff:1", "/sso")))
	})
	t.Run("requests with a key are counted by tenant", func(t *testing.T) {
		s.do(t, call{method: "GET", path: "/v1/accounts/1", header: http.Header{"X-Forwarded-For": {"2001:db8::1"}}}).want(200)
	})
	t.Run("another network is not held up", func(t *testing.T) {
		s.services["idsite"].setHandler(nil)
		s.do(t, from("2001:db8:0:1::1", "/sso")).want(200)
	})
	release()
	wait()
	s.do(t, from("2001:db8::1", "/sso")).want(200)
}

func redis(t *testing.T) (*miniredis.Miniredis, redisclient.Client) {
	t.Helper()
	server := miniredis.RunT(t)
	client, err := redisclient.Open(redisclient.Config{URL: secure.Secret("redis://" + server.Addr())})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return server, client
}

// synchronise makes a gateway synchronise its limits until the test ends.
func synchronise(t *testing.T, s *testGateway, client redisclient.Client) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Limiter.Sync(ctx, client) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("synchronising ended: %v", err)
		}
	})
}

func TestSeveralGatewaysShareAConcurrencyLimit(t *testing.T) {
	server, client := redis(t)
	few := func(cfg *Config, s *testGateway) {
		cfg.Tenant.InFlight = 4
		s.prepare = func(g *Gateway) { g.Limiter.lostAfter = lostAfter / 4 }
	}
	first, second := openGateway(t, few), openGateway(t, few)
	synchronise(t, first, client)
	synchronise(t, second, client)
	both := func(shared bool) func() bool {
		return func() bool { return first.Limiter.synced.Load() == shared && second.Limiter.synced.Load() == shared }
	}
	eventually(t, "the limits are shared", both(true))

	release := blockRequests(first.services["directory"])
	defer release()
	wait := occupyInFlight(t, first, first.services["directory"], 3, call{method: "GET", path: "/v1/accounts/1"})
	others := func(n int) func() bool {
		return func() bool { return (*second.Limiter.remote.Load())[tenantSubject(tenantLimit, tenant)] == n }
	}
	eventually(t, "the second gateway learns of the first one's requests", others(3))
	letGo := blockRequests(second.services["directory"])
	defer letGo()
	waitSecond := occupyInFlight(t, second, second.services["directory"], 1, call{method: "GET", path: "/v1/accounts/1"})
	wantTooMany(t, second.get(t, "/v1/accounts/1"))
	eventually(t, "the first gateway learns of the second one's", func() bool { return (*first.Limiter.remote.Load())[tenantSubject(tenantLimit, tenant)] == 1 })
	wantTooMany(t, first.get(t, "/v1/accounts/1"))

	t.Run("without Redis each holds its own, and no request waits for it", func(t *testing.T) {
		warned := logs.has("synchronising the rate limits through Redis failed")
		server.Close()
		eventually(t, "the gateways notice", both(false))
		eventually(t, "what the first published has expired", others(0))
		eventually(t, "the gauge says that they do", func() bool { return sharedGauge(t) == 0 })
		began := time.Now()
		waitMore := occupyInFlight(t, second, second.services["directory"], 3, call{method: "GET", path: "/v1/accounts/1"})
		wantTooMany(t, second.get(t, "/v1/accounts/1"))
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("a request without Redis took %s", took)
		}
		letGo()
		waitMore()
		waitSecond()
		for range 3 { // rounds in which more lines could be logged
			round := second.Limiter.remote.Load()
			eventually(t, "the next round", func() bool { return second.Limiter.remote.Load() != round })
		}
		if lines := logs.has("synchronising the rate limits through Redis failed") - warned; lines != 2 {
			t.Errorf("two gateways logged %d lines", lines)
		}
	})
	t.Run("and with Redis again they hold one", func(t *testing.T) {
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the limits are shared again", both(true))
		eventually(t, "the second gateway learns of the first", others(3))
		eventually(t, "the gauge says so", func() bool { return sharedGauge(t) == 1 })
		if logs.has("synchronised through Redis again") < 2 {
			t.Error("the log does not tell")
		}
	})
	release()
	wait()
	eventually(t, "what is over is not added", others(0))
}

func TestTheLossOfRedisIsLoggedWhileItLasts(t *testing.T) {
	server, client := redis(t)
	s := openGateway(t, func(_ *Config, s *testGateway) {
		s.prepare = func(g *Gateway) { g.Limiter.lostAfter, g.Limiter.warnInterval = lostAfter/4, time.Second/4 }
	})
	warned := logs.has("synchronising the rate limits through Redis failed")
	server.Close()
	synchronise(t, s, client)
	eventually(t, "three lines", func() bool { return logs.has("synchronising the rate limits through Redis failed") >= warned+3 })
}

func sharedGauge(t *testing.T) int64 {
	t.Helper()
	found := collectMetric(t, "doorward_gateway_limits_shared")
	if len(found) == 0 {
		t.Fatal("there is no gauge")
	}
	points := found[0].Data.(metricdata.Gauge[int64]).DataPoints
	return points[len(points)-1].Value
}

func TestAGatewayStartsWithoutRedis(t *testing.T) {
	server, client := redis(t)
	server.Close()
	s := openGateway(t, func(cfg *Config, _ *testGateway) { cfg.Tenant.InFlight = 1 })
	synchronise(t, s, client)
	release := blockRequests(s.services["directory"])
	defer release()
	wait := occupyInFlight(t, s, s.services["directory"], 1, call{method: "GET", path: "/v1/accounts/1"})
	wantTooMany(t, s.get(t, "/v1/accounts/1"))
	release()
	wait()
	s.get(t, "/v1/accounts/1").want(200)
}

func TestSubjects(t *testing.T) {
	subjects := map[subject]string{}
	for _, address := range []string{"1.2.3.4", "1.2.3.5", "2001:db8::1", "2001:db8:0:1::1"} {
		subjects[addressSubject(addressLimit, netip.MustParseAddr(address))] = address
	}
	if len(subjects) != 4 {
		t.Errorf("different clients count as one: %v", subjects)
	}
	if addressSubject(addressLimit, netip.MustParseAddr("2001:db8::1")) != addressSubject(addressLimit, netip.MustParseAddr("2001:db8::ffff:1")) {
		t.Error("two addresses of one IPv6 network count as two clients")
	}
}

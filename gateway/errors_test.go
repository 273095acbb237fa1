package gateway

import (
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gofiber/fiber/v2"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/telemetry/metrictest"
)

// refusalCount returns how many refusals were counted for a reason.
func refusalCount(t *testing.T, _ *testGateway, reason string) (n int64) {
	t.Helper()
	for _, m := range collectMetric(t, "doorward_gateway_refused_total") {
		for _, point := range m.Data.(metricdata.Sum[int64]).DataPoints {
			if value, _ := point.Attributes.Value("reason"); value.AsString() == reason {
				n += point.Value
			}
		}
	}
	return n
}

func collectMetric(t *testing.T, name string) []metricdata.Metrics {
	t.Helper()
	found, err := metrictest.Find(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestEveryAnswerNamesItsRequest(t *testing.T) {
	s := openGateway(t)
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for _, c := range []call{
		{method: "GET", path: "/v1/accounts/1"}, {method: "GET", path: "/v1/nothing"}, {method: "DELETE", path: "/v1/tenants/1"},
		{method: "GET", path: "/sso", header: anonymous()}, {method: "GET", path: "/v1/accounts/1", header: anonymous()},
	} {
		a := s.do(t, c)
		id := a.header.Get("Service-Request-Id")
		if !uuid.MatchString(id) || seen[id] {
			t.Errorf("%s %s has the id %q", c.method, c.path, id)
		}
		seen[id] = true
		if a.status == 200 && a.echo().Caller.RequestID != id {
			t.Errorf("the service knows the request as %q, the client as %q", a.echo().Caller.RequestID, id)
		}
	}
}

func TestTheAliasNamesTheHeaderAndTheRealm(t *testing.T) {
	s := openGateway(t, func(cfg *Config, _ *testGateway) { cfg.Common.Alias = "acme" })
	a := s.do(t, call{method: "GET", path: "/v1/accounts/1", header: anonymous()}).want(401)
	if a.header.Get("Acme-Request-Id") == "" || a.header.Get("Service-Request-Id") != "" {
		t.Errorf("the request id is in %v", a.header)
	}
	if realm := a.header.Get("WWW-Authenticate"); realm != `Basic realm="acme", SAuthc1` {
		t.Errorf("the challenge is %q", realm)
	}
}

// The application of a gateway keeps one client's request from ending the
// process, or from being seen by another's.
func TestAPanicIsA500(t *testing.T) {
	var early, late atomic.Bool
	panics := func(when *atomic.Bool) middleware {
		return func(*requestContext) error {
			if when.Load() {
				panic("the secret of the panic")
			}
			return nil
		}
	}
	s := openGateway(t, func(_ *Config, s *testGateway) {
		s.prepare = func(g *Gateway) {
			g.middlewares = append(append([]middleware{panics(&early)}, g.middlewares...), panics(&late))
		}
	})
	early.Store(true)
	a := s.get(t, "/v1/accounts/1").wantError(500, 500)
	if strings.Contains(string(a.body), "panic") {
		t.Errorf("the answer to a panic tells why: %s", a.body)
	}
	early.Store(false)
	s.get(t, "/v1/accounts/1").want(200)
	late.Store(true)
	for range s.cfg.Tenant.InFlight + 1 {
		s.get(t, "/v1/accounts/1").wantError(500, 500) // and none of them stays counted
	}
}

func TestValuesAreStillTheirOwnAfterTheHandlerReturned(t *testing.T) {
	app := rest.NewFiber(nil)
	var kept []string
	app.Get("/:name", func(c *fiber.Ctx) error {
		kept = append(kept, c.Params("name"), c.Query("q"), c.Get("X-Name"), c.Path(), string(c.Body()))
		return nil
	})
	s := &testGateway{Gateway: &Gateway{HTTP: app}}
	s.serve(t, false)
	for _, name := range []string{"aaaaaaaa", "bbbbbbbb", "cccccccc"} {
		s.do(t, call{method: "GET", path: "/" + name + "?q=" + name, header: http.Header{"X-Name": {name}}}).want(200)
	}
	for i, want := range []string{"aaaaaaaa", "bbbbbbbb", "cccccccc"} {
		for _, got := range kept[i*5 : i*5+3] {
			if got != want {
				t.Errorf("a value of request %d became %q", i, got)
			}
		}
	}
}

func TestErrorsOfServicesPassAsTheyAre(t *testing.T) {
	s := openGateway(t)
	s.services["directory"].setHandler(func(c *fiber.Ctx) error {
		c.Set("Retry-After", "7")
		c.Set("Allow", "GET")
		return c.Status(fiber.StatusConflict).JSON(fiber.Map{"status": 409, "code": 2001})
	})
	a := s.get(t, "/v1/accounts/1").want(409)
	if string(a.body) != `{"code":2001,"status":409}` || a.header.Get("Retry-After") != "7" || a.header.Get("Allow") != "GET" {
		t.Errorf("the error of the service arrived as %s with %v", a.body, a.header)
	}
	if challenge := a.header.Get("WWW-Authenticate"); challenge != "" {
		t.Errorf("the gateway added %q", challenge)
	}
}

func TestAServiceThatRefusesAKeyHasTheChallengeAdded(t *testing.T) {
	s := openGateway(t)
	s.services["oauth"].setHandler(func(*fiber.Ctx) error { return apierr.Unauthorized })
	a := s.get(t, "/v1/applications/1/authTokens/x").want(401)
	if challenge := a.header.Get("WWW-Authenticate"); challenge != `Basic realm="service", SAuthc1` {
		t.Errorf("the challenge is %q", challenge)
	}
}

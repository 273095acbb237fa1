package gateway

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
)

const oidcToken = "/oidc/1/token"

// openWithClients opens a gateway in front of an OAuth service that knows the clients 1, 2, … of the tenant, whose
// secret is right.
func openWithClients(t *testing.T, settings ...option) (s *testGateway, clients []id.Ref) {
	t.Helper()
	s = openGateway(t, append([]option{func(cfg *Config, _ *testGateway) { cfg.TrustedHops = 1 }}, settings...)...)
	for i := range 60 {
		clients = append(clients, id.Ref{Tenant: tenant, ID: id.New(time.Unix(int64(1_790_000_100+i), 0))})
	}
	s.services["oauth"].setHandler(func(c *fiber.Ctx) error {
		given := c.FormValue("client_id") + ":" + c.FormValue("client_secret")
		if basic, ok := strings.CutPrefix(string(c.Request().Header.Peek("Authorization")), "Basic "); ok {
			plain, _ := base64.StdEncoding.DecodeString(basic)
			given = string(plain)
		}
		if name, right := strings.CutSuffix(given, ":right"); right {
			number, _ := strconv.Atoi(name)
			c.Set(caller.ClientHeader, caller.FormatClient(clients[number]))
			return c.SendString("{}")
		}
		return apierr.Unauthorized
	})
	return s, clients
}

// clientCall is a call of a client with a secret from an address.
func clientCall(client int, secret, address string) call {
	header := basicAuth(strconv.Itoa(client), secret)
	header.Set("X-Forwarded-For", address)
	header.Set("Content-Type", fiber.MIMEApplicationForm)
	return call{method: "POST", path: oidcToken, body: "grant_type=client_credentials", header: header}
}

func wantOAuthTooMany(t *testing.T, a answer) {
	t.Helper()
	var body struct {
		Error string `json:"error"`
		URI   string `json:"error_uri"`
	}
	if err := json.Unmarshal(a.want(429).body, &body); err != nil || body.Error != "temporarily_unavailable" ||
		body.URI != "https://id.example.com/errors/429" || a.header.Get("Retry-After") != "1" {
		t.Errorf("the refusal is %s with %v, %v", a.body, a.header, err)
	}
}

// 50 clients with five calls at a time each, from one address, are far above the limit of an address.
func TestClientsBehindOneAddressDoNotThrottleEachOther(t *testing.T) {
	s, _ := openWithClients(t, func(cfg *Config, _ *testGateway) { cfg.Users.InFlight = 500 })
	const nat = "203.0.113.1"
	for n := range 50 {
		s.do(t, clientCall(n, "right", nat)).want(200)
	}
	oauth := s.services["oauth"]
	known := oauth.answer
	held := make(chan struct{})
	oauth.setHandler(func(c *fiber.Ctx) error { <-held; return known(c) })
	var waits []func()
	for n := range 50 {
		waits = append(waits, occupyInFlight(t, s, oauth, 5, clientCall(n, "right", nat)))
	}
	close(held)
	for _, wait := range waits {
		wait()
	}
}

func TestACallOfAClientCountsForItAndItsTenant(t *testing.T) {
	s, _ := openWithClients(t, func(cfg *Config, _ *testGateway) { cfg.Users.InFlight = 4 })
	form := call{method: "POST", path: oidcToken, body: "grant_type=x&client_id=3&client_secret=right", header: http.Header{
		"Authorization": nil, "Content-Type": {fiber.MIMEApplicationForm}, "X-Forwarded-For": {"203.0.113.9"}}}
	calls := []call{clientCall(1, "right", "203.0.113.1"), clientCall(2, "right", "203.0.113.1"), form}
	for _, c := range calls {
		if got := s.do(t, c).want(200).header.Get(caller.ClientHeader); got != "" {
			t.Errorf("the client sees the header %q", got)
		}
	}
	oauth := s.services["oauth"]
	known := oauth.answer
	held := make(chan struct{})
	oauth.setHandler(func(c *fiber.Ctx) error { <-held; return known(c) })
	waits := []func(){occupyInFlight(t, s, oauth, 2, calls[0])}
	wantOAuthTooMany(t, s.do(t, calls[0])) // half of the tenant's
	waits = append(waits, occupyInFlight(t, s, oauth, 1, calls[1]), occupyInFlight(t, s, oauth, 1, form))
	wantOAuthTooMany(t, s.do(t, form)) // the tenant's
	close(held)
	for _, wait := range waits {
		wait()
	}
}

func TestWrongSecretsLockNoClientOut(t *testing.T) {
	s, _ := openWithClients(t, func(cfg *Config, _ *testGateway) { cfg.Address.InFlight, cfg.Tenant.InFlight = 3, 5 })
	const stranger, nat = "198.51.100.1", "203.0.113.1"
	for n := range 2 {
		s.do(t, clientCall(n, "right", nat)).want(200)
	}
	for n := range 3 {
		s.do(t, clientCall(1, "wrong"+strconv.Itoa(n), stranger)).want(401)
	}
	wantOAuthTooMany(t, s.do(t, clientCall(1, "wrong", stranger))) // for the client and the address
	for n := range 2 {
		s.do(t, clientCall(2, "wrong"+strconv.Itoa(n), stranger)).want(401)
	}
	wantOAuthTooMany(t, s.do(t, clientCall(3, "right", stranger))) // for the address
	s.do(t, clientCall(1, "right", nat)).want(200)
	s.do(t, clientCall(1, "right", stranger)).want(200) // a secret that was right before
	s.do(t, clientCall(3, "right", nat)).want(200)
	eventually(t, "wrong secrets are forgotten", func() bool { return s.do(t, clientCall(1, "wrong", stranger)).status == 401 })
}

func TestACallWithoutACredentialCountsForItsAddress(t *testing.T) {
	s, _ := openWithClients(t, func(cfg *Config, _ *testGateway) { cfg.Address.InFlight = 2 })
	release := blockRequests(s.services["oauth"])
	defer release()
	public := call{method: "POST", path: oidcToken, body: "grant_type=x&client_id=1", header: http.Header{"Authorization": nil,
		"Content-Type": {fiber.MIMEApplicationForm}, "X-Forwarded-For": {"203.0.113.1"}}}
	wait := occupyInFlight(t, s, s.services["oauth"], 2, public)
	wantOAuthTooMany(t, s.do(t, public))
	release()
	wait()
}

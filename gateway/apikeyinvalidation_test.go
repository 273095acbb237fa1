package gateway

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/rest"

	"github.com/gofiber/fiber/v2"
)

// A key that is disabled or deleted is refused at once by the gateway that the
// change went through, and within a second by every other without Redis.
func TestAKeyThatEndsIsRefusedEverywhere(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]call{
		"deleted":             {method: "DELETE", path: "/v1/apiKeys/" + keyID},
		"deleted by override": {method: "POST", path: "/v1//apiKeys/" + keyID + "/?_method=DELETE"},
		"disabled":            {method: "POST", path: "/v1/apiKeys/%4B" + keyID[1:], body: `{"status":"DISABLED"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := openGateway(t)
			second := openGateway(t, func(cfg *Config, _ *testGateway) { cfg.Keys = first.keys })
			first.services["oauth"].setHandler(func(c *fiber.Ctx) error {
				first.keys.remove(keyID)
				return rest.NoContent(c)
			})
			for range 20 {
				first.get(t, "/v1/accounts/1").want(200)
				second.get(t, "/v1/accounts/1").want(200)
			}
			if n := first.keys.calls.Load(); n > 6 {
				t.Errorf("forty requests asked %d times", n)
			}
			first.do(t, end).want(204)
			ended := time.Now()
			first.get(t, "/v1/accounts/1").wantError(401, 401)
			eventually(t, "the other gateway refuses the key", func() bool {
				a, err := second.try(t, call{method: "GET", path: "/v1/accounts/1"})
				return err == nil && a.status == 401
			})
			took := time.Since(ended)
			t.Logf("the other gateway refused it after %s", took)
			if took > keyTTL+200*time.Millisecond {
				t.Errorf("the other gateway went on for %s", took)
			}
		})
	}
}

// An answer that was on its way while the key changed is not kept.
func TestAnAnswerOfBeforeTheChangeIsNotKept(t *testing.T) {
	s := openGateway(t)
	asked, release := make(chan struct{}), make(chan struct{})
	s.keys.setAuthenticate(func(_ context.Context, in oauthapi.Authenticate) (oauthapi.Key, error) {
		key, err := s.keys.lookUp(in)
		if in.ID == keyID {
			close(asked)
			<-release
			s.keys.setAuthenticate(nil)
		}
		return key, err
	})
	s.keys.add("OTHER", "secret", tenant)
	slow := make(chan int, 1)
	go func() {
		a, err := s.try(t, call{method: "GET", path: "/v1/accounts/1"})
		if err != nil {
			t.Error(err)
		}
		slow <- a.status
	}()
	<-asked
	s.keys.remove(keyID)
	s.do(t, call{method: "DELETE", path: "/v1/apiKeys/" + keyID, header: basicAuth("OTHER", "secret")}).want(200)
	close(release)
	if status := <-slow; status != http.StatusOK {
		t.Errorf("the request that came before the change got %d", status)
	}
	s.get(t, "/v1/accounts/1").wantError(401, 401)
}

// A key that was refused is asked for again once it was changed through the
// gateway: its owner uses it as soon as it is enabled.
func TestAKeyThatIsEnabledAgainIsGoodAtOnce(t *testing.T) {
	s := openGateway(t)
	s.keys.add("OTHER", "secret", tenant)
	s.keys.remove(keyID)
	s.get(t, "/v1/accounts/1").wantError(401, 401)
	s.services["oauth"].setHandler(func(c *fiber.Ctx) error {
		s.keys.add(keyID, keySecret, tenant)
		return rest.NoContent(c)
	})
	s.do(t, call{method: "POST", path: "/v1/apiKeys/" + keyID, body: `{"status":"ENABLED"}`, header: basicAuth("OTHER", "secret")}).want(204)
	s.get(t, "/v1/accounts/1").want(200)
}

// The same for a key that was good before its account was disabled.
func TestAKeyWhoseAccountIsEnabledAgainIsGoodAtOnce(t *testing.T) {
	s := openGateway(t)
	s.keys.add("OTHER", "secret", tenant)
	change := call{method: "POST", path: "/v1/accounts/" + account.String(), header: basicAuth("OTHER", "secret")}
	s.get(t, "/v1/applications/1").want(200)
	s.services["directory"].setHandler(func(c *fiber.Ctx) error {
		s.keys.remove(keyID)
		return rest.NoContent(c)
	})
	s.do(t, change).want(204)
	eventually(t, "the refusal is cached", func() bool {
		s.get(t, "/v1/applications/1").wantError(401, 401)
		asked := s.keys.calls.Load()
		s.get(t, "/v1/applications/1").wantError(401, 401)
		return s.keys.calls.Load() == asked
	})
	s.services["directory"].setHandler(func(c *fiber.Ctx) error {
		s.keys.add(keyID, keySecret, tenant)
		return rest.NoContent(c)
	})
	s.do(t, change).want(204)
	s.get(t, "/v1/applications/1").want(200)
}

// A key that was tried before it became that of an administrator is good as soon as it
// is, on every gateway, though it never was before.
func TestAKeyThatBecomesAnAdministratorsIsGoodAtOnce(t *testing.T) {
	_, client := redis(t)
	manyWrongKeys := func(cfg *Config, _ *testGateway) { cfg.Address.InFlight = 100 }
	first := openGateway(t, manyWrongKeys)
	second := openGateway(t, manyWrongKeys, func(cfg *Config, _ *testGateway) { cfg.Keys = first.keys })
	synchronise(t, first, client)
	synchronise(t, second, client)
	eventually(t, "the gateways learn of each other", func() bool { return first.Limiter.synced.Load() && second.Limiter.synced.Load() })
	for _, begin := range []call{
		{method: "POST", path: "/v1/accountStoreMappings", body: `{"application":{"href":"x"}}`},
		{method: "POST", path: "/v1/groupMemberships", body: `{"account":{"href":"x"}}`},
		{method: "POST", path: "/v1/organizationAccountStoreMappings", body: `{"organization":{"href":"x"}}`},
		{method: "POST", path: "/v1/accounts/" + account.String(), body: `{"status":"ENABLED"}`},
		{method: "POST", path: "/v1/directories/1", body: `{"status":"ENABLED"}`},
		{method: "POST", path: "/v1/groups/1", body: `{"status":"ENABLED"}`},
		{method: "POST", path: "/v1/accounts/emailVerificationTokens/x"},
	} {
		t.Run(begin.path, func(t *testing.T) {
			key := strings.ReplaceAll(strings.ToUpper(begin.path), "/", "")
			use := call{method: "GET", path: "/v1/tenants/1", header: basicAuth(key, "secret")}
			for _, service := range first.services {
				service.setHandler(func(c *fiber.Ctx) error {
					if c.Method() == fiber.MethodPost {
						first.keys.add(key, "secret", tenant)
					}
					return rest.NoContent(c)
				})
			}
			for _, s := range []*testGateway{first, second} {
				eventually(t, "the refusal is cached", func() bool {
					s.do(t, use).wantError(401, 401)
					asked := first.keys.calls.Load()
					s.do(t, use).wantError(401, 401)
					return first.keys.calls.Load() == asked
				})
			}
			first.do(t, begin).want(204)
			began := time.Now()
			first.do(t, use).want(204)
			eventually(t, "the other gateway accepts the key", func() bool { return second.do(t, use).status == 200 })
			if took := time.Since(began); took > keyTTL/2 {
				t.Errorf("the other gateway went on for %s", took)
			}
		})
	}
}

// What only adds access leaves the keys that are good in the cache.
func TestAMembershipAsksForNoGoodKey(t *testing.T) {
	s := openGateway(t)
	s.get(t, "/v1/accounts/1").want(200)
	for range 20 {
		s.post(t, "/v1/groupMemberships", "{}").want(200)
	}
	if n := s.keys.calls.Load(); n > 6 {
		t.Errorf("twenty memberships asked %d times", n)
	}
}

// A key that ends with its account, its directory or a mapping is refused at once
// on every gateway. The bound is loose, for a busy machine.
func TestAKeyThatEndsWithItsAccountIsRefusedEverywhere(t *testing.T) {
	_, client := redis(t)
	first := openGateway(t)
	second := openGateway(t, func(cfg *Config, _ *testGateway) { cfg.Keys = first.keys })
	synchronise(t, first, client)
	synchronise(t, second, client)
	eventually(t, "the gateways learn of each other", func() bool { return first.Limiter.synced.Load() && second.Limiter.synced.Load() })
	first.keys.add("OTHER", "secret", tenant)
	change := func(method, path string, ofKey bool) func(string) call {
		return func(key string) call {
			if ofKey {
				path += key
			}
			return call{method: method, path: path, header: basicAuth("OTHER", "secret")}
		}
	}
	for name, end := range map[string]func(key string) call{
		"the key is deleted":          change("DELETE", "/v1/apiKeys/", true),
		"the account is disabled":     change("POST", "/v1/accounts/"+account.String(), false),
		"the account is deleted":      change("POST", "/v1/accounts/"+account.String()+"?_method=DELETE", false),
		"the directory is disabled":   change("POST", "/v1/directories/1", false),
		"the group is deleted":        change("DELETE", "/v1/groups/1", false),
		"the membership is deleted":   change("DELETE", "/v1/groupMemberships/1", false),
		"the mapping is deleted":      change("DELETE", "/v1/accountStoreMappings/1", false),
		"the application is disabled": change("POST", "/v1/applications/1", false),
	} {
		t.Run(name, func(t *testing.T) {
			key := strings.ReplaceAll(strings.ToUpper(name), " ", "")
			first.keys.add(key, "secret", tenant)
			works := func() bool {
				a, err := second.try(t, call{method: "GET", path: "/v1/tenants/1", header: basicAuth(key, "secret")})
				return err == nil && a.status == 200
			}
			for _, service := range first.services {
				service.setHandler(func(c *fiber.Ctx) error {
					first.keys.remove(key)
					return rest.NoContent(c)
				})
			}
			eventually(t, "the key is cached", func() bool {
				asked := first.keys.calls.Load()
				return works() && first.keys.calls.Load() == asked
			})
			first.do(t, end(key)).want(204)
			ended := time.Now()
			eventually(t, "the other gateway refuses the key", func() bool { return !works() })
			took := time.Since(ended)
			t.Logf("the other gateway refused it after %s", took)
			if took > keyTTL/2 {
				t.Errorf("the other gateway went on for %s", took)
			}
		})
	}
}

// A change ends nothing but what it names: reads, other accounts and other
// tenants keep their cached answers.
func TestAChangeForgetsNoOtherKey(t *testing.T) {
	s := openGateway(t)
	s.keys.add("OTHER", "secret", id.New(time.Now()))
	other := id.New(time.Now())
	for range 20 {
		s.get(t, "/v1/accounts/"+account.String()).want(200)
		s.do(t, call{method: "POST", path: "/v1/accounts/" + other.String(), body: "{}"}).want(200)
		s.do(t, call{method: "DELETE", path: "/v1/accountStoreMappings/1", header: basicAuth("OTHER", "secret")}).want(200)
		s.post(t, "/v1/accounts/"+other.String()+"/customData", "{}").want(200)
		s.post(t, "/v1/applications/1", `{"description":"x"}`).want(200)
	}
	who := caller.Caller{Key: keyID, Account: account, Tenant: tenant}
	if !s.Gateway.apiKeys.isCurrent(time.Now().Add(-time.Hour), invalidation{key: who.Key}, invalidation{accountOrTenant: who.Account}, invalidation{accountOrTenant: who.Tenant}) {
		t.Error("the key was forgotten")
	}
}

// What follows a change of its tenant is marked, so that a service does not answer it
// with what it has read before. That ends, for which a busy machine may take longer.
func TestRequestsAfterAChangeOfTheTenantAreMarked(t *testing.T) {
	t.Parallel()
	_, client := redis(t)
	first, second := openGateway(t), openGateway(t)
	synchronise(t, first, client)
	synchronise(t, second, client)
	eventually(t, "the gateways learn of each other", func() bool { return first.Limiter.synced.Load() && second.Limiter.synced.Load() })
	first.keys.add("OTHER", "secret", id.New(time.Now()))
	marked := func(header http.Header) bool {
		answer := first.do(t, call{method: "GET", path: "/v1/applications/1/authTokens/x", header: header})
		return slices.Equal(answer.echo().Headers[caller.ChangedHeader], []string{"1"})
	}
	own, others := basicAuth(keyID, keySecret), basicAuth("OTHER", "secret")
	for _, c := range []call{
		{method: "POST", path: "/v1/accounts/1", body: `{"status":"DISABLED"}`},
		{method: "POST", path: "/v1/accounts/1", body: `{"givenName":"Jo","password":"x"}`},
		{method: "POST", path: "/v1/directories/1", body: `{"st\u0061tus":"DISABLED"}`},
		{method: "POST", path: "/v1/applications/1", body: `{"description":"x","status":"DISABLED"}`},
		{method: "POST", path: "/v1/applications/1?_method=DELETE", body: "{}"},
		{method: "POST", path: "/v1/applications/1/passwordResetTokens/x", body: `{"password":"x"}`},
		{method: "POST", path: "/v1/applications/1/oauth/revoke", header: http.Header{"Content-Type": {fiber.MIMEApplicationForm}}, body: "token=x"},
		{method: "DELETE", path: "/v1/accessTokens/1"},
		{method: "DELETE", path: "/v1/refreshTokens/1"},
	} {
		eventually(t, "a request is marked after a change at "+c.path, func() bool {
			first.do(t, c).want(200)
			if marked(others) {
				t.Error("a request of another tenant is marked")
			}
			return marked(own)
		})
		eventually(t, "a request is not marked", func() bool { return !marked(own) })
	}
	for range 3 {
		first.post(t, "/v1/applications/1/loginAttempts", "{}").want(200)
		first.get(t, "/v1/accounts/1").want(200)
		first.post(t, "/v1/accounts/1", `{"givenName":"Jo"}`).want(200)
		first.post(t, "/v1/applications/1", `{"description":"x"}`).want(200)
		if marked(own) {
			t.Error("a request is marked after a change that ends nothing")
		}
	}
	of := invalidation{accessTenant: tenant}
	eventually(t, "the other gateway learns of the changes", func() bool { return second.Gateway.apiKeys.invalidatedAt.Contains(of) })
}

func TestChangesAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	for _, c := range []invalidation{{key: keyID}, {accountOrTenant: account}, {accessTenant: tenant}, mayEnableKeys} {
		if got, ok := parseInvalidation(c.String()); !ok || got != c {
			t.Errorf("%s is read as %v, %v", c, got, ok)
		}
	}
	for _, text := range []string{"", "key", "key ", "id", "id x", "id " + id.ID{}.String(), "access " + id.ID{}.String(), "other " + keyID, keyID, "grant x"} {
		if got, ok := parseInvalidation(text); ok {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

package gateway

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/rest"
)

// ends makes the services answer with what their request has ended, after change.
func (s *testGateway) ends(of id.ID, resources caller.IDs, change func()) {
	for _, service := range s.services {
		service.setHandler(func(c *fiber.Ctx) error {
			if c.Method() != fiber.MethodGet {
				change()
				ctx, endings := caller.CollectEndings(c.UserContext())
				for resource := range resources.All() {
					caller.End(ctx, of, resource)
				}
				c.Set(caller.EndedHeader, endings.Header())
			}
			return rest.NoContent(c)
		})
	}
}

// silence makes the feed behind, so that no gateway learns of a change by it, and keeps what is current.
func (s *testGateway) silence() { s.keys.silent.Store(true) }

// cached waits until a request with a key asks the OAuth service no more.
func (s *testGateway) cached(t *testing.T, use call, status int) {
	t.Helper()
	eventually(t, "the answer about the key is kept", func() bool {
		s.settle()
		s.do(t, use).want(status)
		asked := s.keys.calls.Load()
		s.do(t, use).want(status)
		return s.keys.calls.Load() == asked
	})
}

func use(key string) call {
	return call{method: "GET", path: "/v1/tenants/1", header: basicAuth(key, "secret")}
}

// A key that ends, itself or with what it depends on, is refused at once by the gateway that the change went
// through, because the answer names it, and by every other when its feeds report it, within 50 ms.
func TestAKeyThatEndsIsRefusedEverywhere(t *testing.T) {
	t.Parallel()
	first := openGateway(t)
	second := openGateway(t, func(cfg *Config, s *testGateway) { cfg.Keys, s.keys = first.keys, first.keys })
	console, directory, group := id.New(time.Now()), id.New(time.Now()), id.New(time.Now())
	for name, c := range map[string]struct {
		change call
		ended  id.ID
	}{
		"the key is deleted":          {call{method: "DELETE", path: "/v1/apiKeys/" + keyID}, resourceOf("K")},
		"the key is disabled":         {call{method: "POST", path: "/v1/apiKeys/%4B", body: `{"status":"DISABLED"}`}, resourceOf("K")},
		"the account is disabled":     {call{method: "POST", path: "/v1/accounts/1", body: `{"st\u0061tus":"DISABLED"}`}, account},
		"the account is deleted":      {call{method: "POST", path: "/v1/accounts/1?_method=DELETE", body: "{}"}, account},
		"the directory is disabled":   {call{method: "POST", path: "/v1/directories/1", body: "{}"}, directory},
		"the group is deleted":        {call{method: "DELETE", path: "/v1/groups/1"}, group},
		"the group mapping is gone":   {call{method: "DELETE", path: "/v1/accountStoreMappings/1"}, console},
		"more has ended than has ids": {call{method: "DELETE", path: "/v1/organizations/1"}, id.ID{}},
	} {
		first.keys.add("K", "secret", tenant)
		first.keys.add("OTHER", "secret", tenant)
		first.keys.mu.Lock()
		key := first.keys.keys["K"]
		key.DependsOn = append(key.DependsOn, directory, console, group)
		first.keys.keys["K"] = key
		first.keys.mu.Unlock()
		first.cached(t, use("K"), 200)
		first.cached(t, use("OTHER"), 200)
		first.ends(tenant, caller.IDs("").With(c.ended), func() {
			first.keys.mu.Lock()
			defer first.keys.mu.Unlock()
			delete(first.keys.keys, "K")
		})
		second.cached(t, use("K"), 200)
		c.change.header = basicAuth("OTHER", "secret")
		if answer := first.do(t, c.change).want(204); answer.header.Get(caller.EndedHeader) != "" {
			t.Errorf("%s: the answer to the client has the header of what has ended", name)
		}
		first.do(t, use("K")).wantError(401, 401)
		reported := c.ended
		if reported.IsZero() {
			reported = console
		}
		first.keys.log.Append(reported)
		second.ahead.Add(int64(50 * time.Millisecond))
		second.do(t, use("K")).wantError(401, 401)
		for _, service := range first.services {
			service.setHandler(nil)
		}
	}
}

// While a feed is behind, a gateway asks for each request.
func TestAFeedThatIsBehindMeansToAsk(t *testing.T) {
	t.Parallel()
	s := openGateway(t)
	s.keys.add("K", "secret", tenant)
	s.cached(t, use("K"), 200)
	s.silence()
	s.ahead.Add(int64(50 * time.Millisecond))
	s.do(t, use("K")).want(200)
	s.keys.remove("K")
	s.do(t, use("K")).wantError(401, 401)
	s.keys.add("K", "secret", tenant)
	s.do(t, use("K")).want(200)
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
	s.ends(tenant, caller.IDs("").With(resourceOf(keyID)), func() { s.keys.remove(keyID) })
	s.do(t, call{method: "DELETE", path: "/v1/apiKeys/" + keyID, header: basicAuth("OTHER", "secret")}).want(204)
	close(release)
	if status := <-slow; status != http.StatusNoContent {
		t.Errorf("the request that came before the change got %d", status)
	}
	s.get(t, "/v1/accounts/1").wantError(401, 401)
}

// A key that was refused is asked for again after any change that may have enabled it: at once by the gateway
// that the change went through, and by every other when its feeds report it. The services
// answer from no cache then, because the tenant of the key is not known.
func TestAKeyThatBecomesAnAdministratorsIsGoodAtOnce(t *testing.T) {
	t.Parallel()
	first := openGateway(t)
	second := openGateway(t, func(cfg *Config, s *testGateway) { cfg.Keys, s.keys = first.keys, first.keys })
	first.keys.add("OTHER", "secret", tenant)
	for _, s := range []*testGateway{first, second} {
		s.cached(t, use("NEW"), 401)
	}
	changed := false
	first.keys.setAuthenticate(func(ctx context.Context, in oauthapi.Authenticate) (oauthapi.Key, error) {
		if in.ID == "NEW" && changed && !caller.Ended(ctx, id.ID{7}) {
			t.Error("the services may answer about the key from a cache")
		}
		return first.keys.lookUp(in)
	})
	first.ends(tenant, caller.IDs("").With(account), func() {
		first.keys.mu.Lock()
		defer first.keys.mu.Unlock()
		changed = true
		first.keys.keys["NEW"] = oauthapi.Key{TenantID: tenant, ID: "NEW", AccountID: account, DependsOn: []id.ID{account}}
		first.keys.secret["NEW"] = "secret"
	})
	second.do(t, use("NEW")).wantError(401, 401)
	first.do(t, call{method: "POST", path: "/v1/groupMemberships", body: "{}", header: basicAuth("OTHER", "secret")}).want(204)
	first.do(t, use("NEW")).want(204)
	first.keys.setAuthenticate(nil)
	first.keys.log.Append(account)
	second.ahead.Add(int64(50 * time.Millisecond))
	second.do(t, use("NEW")).want(200)
}

// What follows a change names what it has ended to the services, for 100 ms, and only in its tenant.
func TestRequestsAfterAChangeNameWhatHasEnded(t *testing.T) {
	t.Parallel()
	s := openGateway(t)
	s.keys.add("OTHER", "secret", id.New(time.Now()))
	token, other := id.New(time.Now()), id.New(time.Now())
	named := func(header http.Header) caller.IDs {
		t.Helper()
		s.services["oauth"].setHandler(nil)
		s.do(t, call{method: "GET", path: "/v1/applications/1/authTokens/x", header: header}).want(200)
		seen := s.services["oauth"].requests()
		return seen[len(seen)-1].caller.Ended
	}
	own, others := basicAuth(keyID, keySecret), basicAuth("OTHER", "secret")
	s.settle()
	if ended := named(own); ended != "" {
		t.Errorf("without a change a request names %x", ended)
	}
	s.stopped.Store(time.Now().UnixNano()) // the two changes may take longer than 100 ms here
	for _, ended := range []id.ID{token, other} {
		s.ends(tenant, caller.IDs("").With(ended), func() {})
		s.do(t, call{method: "DELETE", path: "/v1/accessTokens/1"}).want(204)
	}
	if ended := named(own); ended != caller.IDs("").With(token).With(other) {
		t.Errorf("after the changes a request names %x", ended)
	}
	if ended := named(others); ended != "" {
		t.Errorf("a request of another tenant names %x", ended)
	}
	s.ahead.Add(int64(100 * time.Millisecond))
	if ended := named(own); ended != "" {
		t.Errorf("after 100 ms a request names %x", ended)
	}
	s.ends(tenant, "", func() {})
	s.post(t, "/v1/accounts/1", `{"status":"ENABLED","password":"x"}`).want(204)
	if ended := named(own); ended != "" {
		t.Errorf("after a change that ends nothing a request names %x", ended)
	}
}

// A change ends nothing but what it names: other accounts and other tenants keep their answers.
func TestAChangeForgetsNoOtherKey(t *testing.T) {
	t.Parallel()
	s := openGateway(t)
	s.cached(t, call{method: "GET", path: "/v1/accounts/1"}, 200)
	s.ends(tenant, caller.IDs("").With(id.New(time.Now())), func() {})
	before := s.keys.calls.Load()
	for range 20 {
		s.post(t, "/v1/groupMemberships", "{}").want(204)
	}
	if asked := s.keys.calls.Load() - before; asked != 0 {
		t.Errorf("twenty changes asked %d times", asked)
	}
}

package gateway

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/rest"

	"github.com/gofiber/fiber/v2"
)

// A key that is disabled or deleted is refused at once by the gateway that the
// change went through, and within a second by every other without Redis.
func TestAKeyThatEndsIsRefusedEverywhere(t *testing.T) {
	for name, end := range map[string]call{
		"deleted":             {method: "DELETE", path: "/v1/apiKeys/" + keyID},
		"deleted by override": {method: "POST", path: "/v1//apiKeys/" + keyID + "/?_method=DELETE"},
		"disabled":            {method: "POST", path: "/v1/apiKeys/%4B" + keyID[1:], body: `{"status":"DISABLED"}`},
	} {
		t.Run(name, func(t *testing.T) {
			first := open(t)
			second := open(t, func(cfg *Config, _ *site) { cfg.Keys = first.keys })
			first.services["oauth"].does(func(c *fiber.Ctx) error {
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
	s := open(t)
	asked, release := make(chan struct{}), make(chan struct{})
	s.keys.does(func(_ context.Context, in oauthapi.Authenticate) (oauthapi.Key, error) {
		key, err := s.keys.lookUp(in)
		if in.ID == keyID {
			close(asked)
			<-release
			s.keys.does(nil)
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
	s.do(t, call{method: "DELETE", path: "/v1/apiKeys/" + keyID, header: as("OTHER", "secret")}).want(200)
	close(release)
	if status := <-slow; status != http.StatusOK {
		t.Errorf("the request that came before the change got %d", status)
	}
	s.get(t, "/v1/accounts/1").wantError(401, 401)
}

// A key that was refused is asked for again once it was changed through the
// gateway: its owner uses it as soon as it is enabled.
func TestAKeyThatIsEnabledAgainIsGoodAtOnce(t *testing.T) {
	s := open(t)
	s.keys.add("OTHER", "secret", tenant)
	s.keys.remove(keyID)
	s.get(t, "/v1/accounts/1").wantError(401, 401)
	s.services["oauth"].does(func(c *fiber.Ctx) error {
		s.keys.add(keyID, keySecret, tenant)
		return rest.NoContent(c)
	})
	s.do(t, call{method: "POST", path: "/v1/apiKeys/" + keyID, body: `{"status":"ENABLED"}`, header: as("OTHER", "secret")}).want(204)
	s.get(t, "/v1/accounts/1").want(200)
}

package gateway

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
)

func TestTheServiceIsToldWhoAsks(t *testing.T) {
	s := openGateway(t)
	e := s.get(t, "/v1/accounts/1").echo()
	if e.Caller.Tenant != tenant || e.Caller.Key != keyID || e.Caller.Account != account {
		t.Errorf("the service got %+v", e.Caller)
	}
	if secret := e.Headers["Authorization"]; secret != nil {
		t.Errorf("the service was sent the credentials")
	}
}

// A caller that has a key may name the address of its user.
func TestTheServiceIsToldWhereTheRequestComesFrom(t *testing.T) {
	s := openGateway(t, func(cfg *Config, _ *testGateway) { cfg.TrustedHops = 1 })
	const path = "/v1/accounts/1"
	for _, c := range []struct {
		what, path string
		header     http.Header
		want       string
	}{
		{"nobody: the server of a client is no user", path, nil, "invalid IP"},
		{"nobody behind a proxy either", path, http.Header{"X-Forwarded-For": {"198.51.100.1, 203.0.113.1"}}, "invalid IP"},
		{"a stranger", "/sso", http.Header{"Authorization": nil}, "127.0.0.1"},
		{"a stranger behind a proxy", "/sso", http.Header{"Authorization": nil, "X-Forwarded-For": {"198.51.100.1, 203.0.113.1"}}, "203.0.113.1"},
		{"the end user", path, http.Header{"X-Forwarded-For": {"203.0.113.1"}, "Service-User-Address": {"198.51.100.1"}}, "198.51.100.1"},
		{"the end user, in any case of the header", path, http.Header{"service-user-address": {" 2001:db8::1 "}}, "2001:db8::1"},
		{"with a port", path, http.Header{"Service-User-Address": {"[2001:db8::1]:4711"}}, "2001:db8::1"},
		{"in the form of IPv6", path, http.Header{"Service-User-Address": {"::ffff:198.51.100.1"}}, "198.51.100.1"},
		{"a stranger who claims to be another", "/sso", http.Header{"Authorization": nil, "Service-User-Address": {"198.51.100.1"}}, "127.0.0.1"},
		{"a stranger who claims nonsense", "/sso", http.Header{"Authorization": nil, "Service-User-Address": {"x"}}, "127.0.0.1"},
	} {
		t.Run(c.what, func(t *testing.T) {
			e := s.do(t, call{method: "GET", path: c.path, header: c.header}).echo()
			if e.Caller.Address.String() != c.want {
				t.Errorf("the service gets %s, want %s", e.Caller.Address, c.want)
			}
			if sent := e.Headers["Service-User-Address"]; sent != nil {
				t.Errorf("the service is sent %q", sent)
			}
		})
	}
	for _, sent := range [][]string{{""}, {"x"}, {"198.51.100.1, 198.51.100.2"}, {"198.51.100.1", "198.51.100.1"}, {"198.51.100.256"}, {"fe80::1%"}} {
		t.Run(fmt.Sprintf("refused: %q", sent), func(t *testing.T) {
			s.do(t, call{method: "GET", path: path, header: http.Header{"Service-User-Address": sent}}).wantError(400, 400)
		})
	}
	t.Run("nobody learns without a key what is refused", func(t *testing.T) {
		s.do(t, call{method: "GET", path: path, header: http.Header{"Authorization": nil, "Service-User-Address": {"x"}}}).wantError(401, 401)
	})
}

func TestRequestsWithoutAGoodKeyAreRefused(t *testing.T) {
	s := openGateway(t)
	basic := func(text string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(text)) }
	for name, values := range map[string][]string{
		"nothing":                     nil,
		"nothing in it":               {""},
		"a scheme nobody knows":       {"Hawk id=1"},
		"the scheme alone":            {"Basic"},
		"no Base64":                   {"Basic %%%"},
		"Base64 for URLs":             {"Basic " + base64.URLEncoding.EncodeToString([]byte("K:\xff\xfe\xfb"))},
		"no colon":                    {basic(keyID)},
		"no id":                       {basic(":" + keySecret)},
		"no secret":                   {basic(keyID + ":")},
		"a wrong secret":              {basic(keyID + ":" + keySecret + "x")},
		"half the secret":             {basic(keyID + ":" + keySecret[:8])},
		"a wrong id":                  {basic("X" + keyID + ":" + keySecret)},
		"an id with a zero byte":      {basic("A\x00B:" + keySecret)},
		"an id with a blank":          {basic("A B:" + keySecret)},
		"an id of eight kilobytes":    {basic(strings.Repeat("K", 8<<10) + ":" + keySecret)},
		"a secret of eight kilobytes": {basic(keyID + ":" + strings.Repeat("s", 8<<10))},
	} {
		t.Run(name, func(t *testing.T) {
			a := s.do(t, call{method: "GET", path: "/v1/accounts/1", header: http.Header{"Authorization": values}}).wantError(401, 401)
			if challenge := a.header.Get("WWW-Authenticate"); challenge != `Basic realm="service", SAuthc1` {
				t.Errorf("the challenge is %q", challenge)
			}
		})
	}
	if n := s.services["directory"].calls.Load(); n > 0 {
		t.Errorf("the service was sent %d requests", n)
	}
	if n := s.keys.calls.Load(); n > 3 {
		t.Errorf("the OAuth service was asked %d times", n)
	}
	good := basicAuth(keyID, keySecret).Get("Authorization")
	for _, both := range [][]string{{good, good}, {good, basic("a:b")}, {"Hawk x", good}} {
		s.do(t, call{method: "GET", path: "/v1/accounts/1", header: http.Header{"Authorization": both}}).wantError(400, 400)
	}
	s.do(t, call{method: "GET", path: "/v1/accounts/1", header: http.Header{"Authorization": {strings.Replace(good, "Basic", "bASIC ", 1)}}}).want(200)
}

func TestOneQuestionAnswersForAMoment(t *testing.T) {
	t.Parallel()
	s := openGateway(t)
	began := time.Now()
	for range 50 {
		s.get(t, "/v1/accounts/1").want(200)
	}
	if most := 1 + int64(time.Since(began)/rejectedTTL); s.keys.calls.Load() > most {
		t.Errorf("the OAuth service was asked %d times", s.keys.calls.Load())
	}
	s.keys.remove(keyID)
	removed := time.Now()
	eventually(t, "the removed key is refused", func() bool {
		a, err := s.try(t, call{method: "GET", path: "/v1/accounts/1"})
		return err == nil && a.status == 401
	})
	if took := time.Since(removed); took > rejectedTTL+time.Second {
		t.Errorf("the removed key worked for %s", took)
	}
	t.Run("and not a moment longer by being used", func(t *testing.T) {
		s.get(t, "/v1/accounts/1").want(401)
	})
	t.Run("and a key that is back works again after a moment", func(t *testing.T) {
		s.keys.add(keyID, keySecret, tenant)
		eventually(t, "the key works", func() bool {
			a, err := s.try(t, call{method: "GET", path: "/v1/accounts/1"})
			return err == nil && a.status == 200
		})
	})
}

func TestAChangedSecretReplacesTheOldOne(t *testing.T) {
	s := openGateway(t)
	s.get(t, "/v1/accounts/1").want(200)
	s.keys.add(keyID, "another secret", tenant)
	s.do(t, call{method: "GET", path: "/v1/accounts/1", header: basicAuth(keyID, "another secret")}).want(200)
	s.get(t, "/v1/accounts/1").want(401)
}

func TestManyAtOnceAskOneQuestion(t *testing.T) {
	var arrived atomic.Int64
	s := openGateway(t, func(_ *Config, s *testGateway) {
		s.prepare = func(g *Gateway) {
			g.middlewares = append([]middleware{func(*requestContext) error { arrived.Add(1); return nil }}, g.middlewares...)
		}
	})
	release := make(chan struct{})
	s.keys.setAuthenticate(func(_ context.Context, in oauthapi.Authenticate) (oauthapi.Key, error) {
		<-release
		return s.keys.lookUp(in)
	})
	var group sync.WaitGroup
	ask := func(header http.Header, want int) {
		group.Go(func() {
			a, err := s.try(t, call{method: "GET", path: "/v1/accounts/1", header: header})
			if err != nil || a.status != want {
				t.Errorf("a request is answered with %d, %v; want %d", a.status, err, want)
			}
		})
	}
	for range 60 { // more than an address may have in flight
		ask(basicAuth(keyID, keySecret), 200)
	}
	for range 60 {
		ask(basicAuth(keyID, "wrong"), 401)
	}
	eventually(t, "all have come, and both questions are asked", func() bool { return arrived.Load() == 120 && s.keys.calls.Load() == 2 })
	close(release)
	group.Wait()
	if n := s.keys.calls.Load(); n != 2 {
		t.Errorf("the OAuth service was asked %d times", n)
	}
}

// What other clients of an address try does not reach the OAuth service
// without end, and does not lock out a good key.
func TestWrongKeysOfAnAddressAreBounded(t *testing.T) {
	t.Parallel()
	s := openGateway(t)
	s.get(t, "/v1/accounts/1").want(200)
	before := s.keys.calls.Load()
	began := time.Now()
	statuses := map[int]int{}
	for i := range 60 {
		a := s.do(t, call{method: "GET", path: "/v1/accounts/1", header: basicAuth(keyID, fmt.Sprintf("guess %d", i))})
		if statuses[a.status]++; a.status == 429 {
			a.wantError(429, 429)
			if a.header.Get("Retry-After") != "1" {
				t.Errorf("Retry-After is %q", a.header.Get("Retry-After"))
			}
		}
	}
	rounds := 1 + int64(time.Since(began)/rejectedTTL)
	if asked := s.keys.calls.Load() - before; asked > 20*rounds || statuses[429] == 0 || statuses[401]+statuses[429] != 60 {
		t.Errorf("the OAuth service was asked %d times in %d s; the answers were %v", asked, rounds, statuses)
	}
	if refusalCount(t, s, "authentication_limit") == 0 || refusalCount(t, s, "unauthorized") == 0 {
		t.Error("the refusals are not counted")
	}
	s.get(t, "/v1/accounts/1").want(200)
	eventually(t, "the good key is looked up again", func() bool {
		s.get(t, "/v1/accounts/1").want(200)
		s.do(t, call{method: "GET", path: "/v1/accounts/1", header: basicAuth("OTHER", time.Now().String())})
		return time.Since(began) > rejectedTTL+rejectedTTL/2
	})
	t.Run("and is over after a second", func(t *testing.T) {
		eventually(t, "another wrong key is asked for", func() bool {
			a, err := s.try(t, call{method: "GET", path: "/v1/accounts/1", header: basicAuth(keyID, "guess")})
			return err == nil && a.status == 401
		})
	})
}

func TestAWrongKeyIsNotAskedForAgainAtOnce(t *testing.T) {
	s := openGateway(t)
	began := time.Now()
	for range 40 { // more than the address may try
		s.do(t, call{method: "GET", path: "/v1/accounts/1", header: basicAuth(keyID, "wrong")}).wantError(401, 401)
	}
	if n := s.keys.calls.Load(); n > 1+int64(time.Since(began)/rejectedTTL) {
		t.Errorf("the OAuth service was asked %d times", n)
	}
}

func TestWithoutTheOAuthServiceNobodyComesIn(t *testing.T) {
	s := openGateway(t)
	away := true
	var mu sync.Mutex
	s.keys.setAuthenticate(func(_ context.Context, in oauthapi.Authenticate) (oauthapi.Key, error) {
		mu.Lock()
		defer mu.Unlock()
		if away {
			return oauthapi.Key{}, apierr.Unavailable.WithRetryAfter(time.Second)
		}
		return s.keys.lookUp(in)
	})
	for range 30 { // that it is away counts against nobody
		if a := s.get(t, "/v1/accounts/1").wantError(503, 503); a.header.Get("Retry-After") != "1" {
			t.Errorf("Retry-After is %q", a.header.Get("Retry-After"))
		}
	}
	mu.Lock()
	away = false
	mu.Unlock()
	s.get(t, "/v1/accounts/1").want(200)
}

func TestAFaultOfTheOAuthServiceIsA500(t *testing.T) {
	s := openGateway(t)
	s.keys.setAuthenticate(func(context.Context, oauthapi.Authenticate) (oauthapi.Key, error) {
		return oauthapi.Key{}, errors.New("broken")
	})
	s.get(t, "/v1/accounts/1").wantError(500, 500)
}

func TestCallersDoNotMixUnderLoad(t *testing.T) {
	s := openGateway(t)
	var group sync.WaitGroup
	for i := range 16 {
		name, secret, of := fmt.Sprintf("KEY%02d", i), fmt.Sprintf("secret %d", i), id.New(time.Unix(int64(1_790_000_100+i), 0))
		s.keys.add(name, secret, of)
		group.Go(func() {
			for j := range 50 {
				body := fmt.Sprintf(`{"of":"%s","n":%d}`, name, j)
				a, err := s.try(t, call{method: "POST", path: "/v1/accounts/" + name, body: body, header: basicAuth(name, secret)})
				if err != nil {
					t.Error(err)
					return
				}
				if e := a.echo(); e.Caller.Key != name || e.Caller.Tenant != of || e.Body != body || e.Target != "/v1/accounts/"+name {
					t.Errorf("%s arrived as %+v", name, e)
				}
			}
		})
	}
	group.Wait()
}

// A service hears of the languages of the client; a header that is too long is cut between two of them.
func TestTheLanguagesOfTheClientReachTheServices(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("de-AT;q=0.9,", 30)
	for header, want := range map[string]string{
		"": "", "de-AT, en;q=0.8": "de-AT, en;q=0.8", long: strings.TrimSuffix(strings.Repeat("de-AT;q=0.9,", 16), ","), strings.Repeat("x", 300): "",
	} {
		if got := string(firstLanguages([]byte(header))); got != want {
			t.Errorf("of the languages %.40q the services get %q, want %q", header, got, want)
		}
	}
}

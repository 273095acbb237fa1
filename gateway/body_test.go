package gateway

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
)

// manyKeys is a body of 600,000 keys.
func manyKeys() string {
	var out strings.Builder
	for i := range 600_000 {
		fmt.Fprintf(&out, `,"key%06d":%d`, i, i%1000)
	}
	return "{" + out.String()[1:] + "}"
}

// Forty bodies of ten megabytes from one tenant at once: a few are read and the
// others refused, and another tenant's requests go on meanwhile. The times are
// loose, for a busy machine; -v prints those measured.
func TestLargeBodiesOfOneTenantLeaveTheOthersAlone(t *testing.T) {
	s := openGateway(t)
	s.keys.add("OTHER", "secret", id.New(time.Now()))
	var inService, most atomic.Int64
	s.services["directory"].setHandler(func(c *fiber.Ctx) error {
		if c.Method() == fiber.MethodGet {
			return c.SendString("{}")
		}
		for now := inService.Add(1); now > most.Load(); {
			most.Store(now)
		}
		defer inService.Add(-1)
		var in map[string]int
		if err := json.Unmarshal(c.Request().Body(), &in); err != nil {
			return err
		}
		return apierr.CustomDataSize
	})
	body := manyKeys()
	s.http.Timeout = 2 * time.Minute // forty of them, under the race detector
	s.get(t, "/v1/accounts/1").want(200)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)

	var statuses [600]atomic.Int64
	var attack, bystander sync.WaitGroup
	began := time.Now()
	for range 40 {
		attack.Go(func() {
			a, err := s.try(t, call{method: "POST", path: "/v1/accounts/1/customData", body: body})
			if err != nil {
				t.Errorf("a large body got no answer: %v", err)
				return
			}
			if statuses[a.status].Add(1); a.status == 429 && a.header.Get("Retry-After") == "" {
				t.Errorf("the refusal has no Retry-After: %v", a.header)
			}
		})
	}
	ended := make(chan struct{})
	var times []time.Duration
	bystander.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
			}
			sent := time.Now()
			s.do(t, call{method: "GET", path: "/v1/accounts/1", header: basicAuth("OTHER", "secret")}).want(200)
			times = append(times, time.Since(sent))
		}
	})
	attack.Wait()
	took := time.Since(began)
	close(ended)
	bystander.Wait()
	runtime.ReadMemStats(&after)
	slices.Sort(times)
	p99 := times[len(times)*99/100]
	grown := (after.HeapSys - min(after.HeapSys, before.HeapSys)) >> 20
	t.Logf("%d refused, %d read in %s; the other tenant's %d requests had a p99 of %s; the heap grew by %d MB", statuses[429].Load(), statuses[400].Load(), took, len(times), p99, grown)
	if statuses[400].Load() == 0 || statuses[400].Load()+statuses[429].Load() != 40 {
		t.Errorf("%d were read and %d refused", statuses[400].Load(), statuses[429].Load())
	}
	if most.Load() > maxTenantLargeBodies {
		t.Errorf("%d reached the service at a time", most.Load())
	}
	if p99 > took/4 || grown > 500 { // the others do not wait for the large bodies, on a slow machine either
		t.Errorf("the large bodies took %s, the others had a p99 of %s, and memory grew by %d MB", took, p99, grown)
	}
}

func TestLargeBodiesAreCountedByTenantAndProcess(t *testing.T) {
	s := openGateway(t)
	release := blockRequests(s.services["directory"])
	defer release()
	large := strings.Repeat(" ", maxSmall+1)
	post := call{method: "POST", path: "/v1/accounts/1", body: large}
	var sent sync.WaitGroup
	fill := func(of id.ID, c call) {
		for range maxTenantLargeBodies {
			sent.Go(func() { s.do(t, c).want(200) })
		}
		eventually(t, "its large bodies are counted", func() bool { return inFlight(s, tenantSubject(bodyLimit, of)) == maxTenantLargeBodies })
	}
	fill(tenant, post)
	a := s.do(t, post)
	wantTooMany(t, a)
	if a.header.Get("RateLimit-Policy") != `"body_limit";q=2;qu="concurrent-requests"` {
		t.Errorf("the limit is named %v", a.header)
	}
	small := occupyInFlight(t, s, s.services["directory"], 3, call{method: "POST", path: "/v1/accounts/1", body: large[:maxUnqueued]})
	for i := range maxLargeBodies/maxTenantLargeBodies - 1 {
		name, other := fmt.Sprintf("OTHER%d", i), id.New(time.Now())
		s.keys.add(name, "secret", other)
		fill(other, call{method: "POST", path: "/v1/accounts/1", body: large, header: basicAuth(name, "secret")})
	}
	s.keys.add("LAST", "secret", id.New(time.Now()))
	wantTooMany(t, s.do(t, call{method: "POST", path: "/v1/accounts/1", body: large, header: basicAuth("LAST", "secret")}))
	release()
	sent.Wait()
	small()
	for range 3 * maxLargeBodies { // none stays counted
		s.post(t, "/v1/accounts/1", large).want(200)
	}
}

// Bodies of more than maxUnqueued are forwarded a few at a time, and one of a tenant.
// Further ones wait for their turn.
func TestLargeBodiesTakeTurnsByTenant(t *testing.T) {
	s := openGateway(t)
	s.keys.add("OTHER", "secret", id.New(time.Now()))
	queued := strings.Repeat(" ", maxUnqueued+1)
	post := call{method: "POST", path: "/v1/accounts/1", body: queued}
	other := post
	other.header = basicAuth("OTHER", "secret")
	directory := s.services["directory"]
	release := blockRequests(directory)
	defer release()
	wait := occupyInFlight(t, s, directory, maxTenantBodies, post)
	calls := directory.calls.Load()
	var sent sync.WaitGroup
	queue := func(n int, c call) {
		for range n {
			sent.Go(func() { s.do(t, c).want(200) })
		}
	}
	queue(maxTenantQueue-maxTenantBodies, post)
	eventually(t, "bodies of the tenant wait", func() bool { return s.bodyQueue.Len() == maxTenantQueue-maxTenantBodies })
	wantTooMany(t, s.do(t, post))
	wantTooMany(t, owner().send(t, s, "POST", post.path, queued))
	if directory.calls.Load() != calls {
		t.Error("a tenant has more than one body forwarded at a time")
	}
	waitOther := occupyInFlight(t, s, directory, 1, other)
	for i := 0; s.bodyQueue.Len() < maxBodyQueue; i++ { // other tenants fill the queue
		another, name := post, fmt.Sprintf("ANOTHER%d", i)
		s.keys.add(name, "secret", id.New(time.Now()))
		another.header = basicAuth(name, "secret")
		before := s.bodyQueue.Len()
		queue(1, another)
		eventually(t, "it waits", func() bool { return s.bodyQueue.Len() == before+1 })
	}
	occupyInFlight(t, s, directory, 3, call{method: "GET", path: "/v1/accounts/1"}) // small requests go on
	release()
	wait()
	waitOther()
	sent.Wait()
	eventually(t, "no worker is used", func() bool { return s.bodyQueue.Close(t.Context()) == nil })
}

// A client that goes away within a large body is no longer counted, and one that stops sending not for
// longer than the body may take.
func TestAnAbortedBodyReleasesItsLimits(t *testing.T) {
	announce := fmt.Sprintf("%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n ", requestHead("POST", "/v1/accounts/1"), maxSmall+1)
	counted := tenantSubject(bodyLimit, tenant)
	begin := func(s *testGateway) net.Conn {
		conn := s.dial(t)
		if _, err := io.WriteString(conn, announce); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	t.Run("when it closes the connection", func(t *testing.T) {
		s := openGateway(t)
		var open []net.Conn
		for range maxTenantLargeBodies {
			open = append(open, begin(s))
		}
		eventually(t, "both are counted", func() bool { return inFlight(s, counted) == maxTenantLargeBodies })
		wantTooMany(t, s.post(t, "/v1/accounts/1", strings.Repeat(" ", maxSmall+1)))
		for _, conn := range open {
			_ = conn.Close()
		}
		eventually(t, "neither is counted", func() bool { return inFlight(s, counted) == 0 })
		s.post(t, "/v1/accounts/1", strings.Repeat(" ", maxSmall+1)).want(200)
	})
	t.Run("when it stops sending", func(t *testing.T) {
		s := openGateway(t, func(_ *Config, s *testGateway) {
			s.prepare = func(g *Gateway) { g.largeBodyTimeout = 100 * time.Millisecond }
		})
		conn := begin(s)
		readAnswer(t, bufio.NewReader(conn)).wantError(400, 400)
		eventually(t, "it is not counted", func() bool { return inFlight(s, counted) == 0 })
	})
}

// Wrong keys that announce large bodies leave the large bodies of good keys
// alone, and unknown signers those of good ones.
func TestLargeBodiesWithWrongKeysHaveLimitsOfTheirOwn(t *testing.T) {
	s := openGateway(t)
	large := strings.Repeat(" ", maxUnauthenticated+1)
	owner := signing{key: keyID, secret: keySecret, date: "x-service-date"}
	s.post(t, "/v1/applications", large).want(200)
	owner.send(t, s, "POST", "/v1/applications", large).want(200)
	var mu sync.Mutex
	statuses := map[int]int{}
	count := func(a answer) {
		mu.Lock()
		defer mu.Unlock()
		statuses[a.status]++
	}
	// The limits forget after a second, in which a slow machine may not send enough: four
	// clients, so that no limit of those in flight is met, send until one is refused.
	var clients sync.WaitGroup
	for n := range 4 {
		clients.Go(func() {
			for i := range 500 {
				wrong := basicAuth(keyID, fmt.Sprint("wrong", n, i))
				a := s.do(t, call{method: "POST", path: "/v1/applications", body: large, header: wrong})
				count(a)
				stranger := signing{key: fmt.Sprint("STRANGER", n, i), secret: "x", date: "x-service-date"}
				b := stranger.send(t, s, "POST", "/v1/applications", large)
				count(b)
				if a.status == 429 || b.status == 429 {
					return
				}
			}
		})
	}
	clients.Wait()
	if statuses[401] == 0 || statuses[429] == 0 || statuses[200] > 0 {
		t.Errorf("strangers got %v", statuses)
	}
	s.post(t, "/v1/applications", large).want(200)
	owner.send(t, s, "POST", "/v1/applications", large).want(200)
}

// The path of a request that could not be read is in no log: it may hold a token.
func TestNoPathIsLogged(t *testing.T) {
	s := openGateway(t)
	const token = "eyJTECRETTOKEN"
	s.keys.add("OTHER", "secret", tenant)
	form := basicAuth("OTHER", "secret")
	form.Set("Content-Type", "application/x-www-form-urlencoded")
	path := "/v1/applications/1/passwordResetTokens/" + token
	s.do(t, call{method: "POST", path: path, body: strings.Repeat("x", maxForm+1), header: form}).wantError(413, 413)
	s.keys.setAuthenticate(func(context.Context, oauthapi.Authenticate) (oauthapi.Key, error) {
		return oauthapi.Key{}, apierr.Unavailable
	})
	s.do(t, call{method: "POST", path: "/v1/applications/1/passwordResetTokens/" + token, body: strings.Repeat(" ", maxUnauthenticated+1)}).wantError(503, 503)
	s.raw(t, "%sX-Large: %s\r\n\r\n", requestHead("POST", "/v1/applications/1/passwordResetTokens/"+token), strings.Repeat("x", 60<<10)).wantError(413, 413)
	if n := logs.has(token); n > 0 {
		t.Errorf("%d lines of the log have the token", n)
	}
	for _, m := range collectMetric(t, "doorward_gateway_request_duration_seconds") {
		if text := fmt.Sprintf("%v", m.Data); strings.Contains(text, token) {
			t.Error("a metric has the token")
		}
	}
}

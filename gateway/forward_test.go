package gateway

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/rpc"
)

func TestTheForwardedHeaders(t *testing.T) {
	s := openGateway(t)
	forged := common.Signer.Sign(caller.Caller{Tenant: account, Key: "forged"})
	header := func() http.Header {
		return http.Header{
			"Authorization": basicAuth(keyID, keySecret)["Authorization"], "Accept": {"application/json"}, "Accept-Language": {"de"}, "User-Agent": {"client/1"},
			"Origin": {"https://app.example.com"}, "If-None-Match": {`W/"1"`}, "Content-Type": {"application/json; charset=utf-8"},
			"Cookie": {"sso=1; b=2"}, "Doorward-Caller": {forged}, "doorward-caller": {forged}, "Doorward-Ended": {"1"}, "X-Forwarded-For": {"1.2.3.4"}, "X-Forwarded-Host": {"evil"},
			"X-Forwarded-Proto": {"http"}, "Forwarded": {"for=1.2.3.4"}, "Connection": {"Keep-Alive, X-Own"}, "X-Own": {"1"}, "Proxy-Authorization": {"x"},
			"Te": {"trailers"}, "Upgrade": {"h2c"}, "Accept-Encoding": {"gzip"}, "X-Real-Ip": {"1.2.3.4"}, "X-Http-Method-Override": {"DELETE"},
			"X-Twilio-Signature": {"c2lnbmVk"},
		}
	}
	expected := map[string]string{
		"Accept": "application/json", "Accept-Language": "de", "User-Agent": "client/1", "Origin": "https://app.example.com", "If-None-Match": `W/"1"`,
		"Content-Type": "application/json; charset=utf-8", "X-Forwarded-For": "127.0.0.1", "Content-Length": "2",
		"X-Twilio-Signature": "c2lnbmVk",
	}
	check := func(e echo, more map[string]string) {
		t.Helper()
		if e.Caller.Key == "forged" {
			t.Error("the service believed the client's own caller")
		}
		for name, values := range e.Headers {
			want, ok := expected[name]
			if !ok {
				want, ok = more[name]
			}
			if name == "Host" || name == caller.Header {
				if len(values) != 1 {
					t.Errorf("%s arrived as %q", name, values)
				}
				continue
			}
			if !ok || len(values) != 1 || values[0] != want {
				t.Errorf("%s arrived as %q", name, values)
			}
		}
		for name := range expected {
			if e.Headers[name] == nil {
				t.Errorf("%s did not arrive", name)
			}
		}
		for name := range more {
			if e.Headers[name] == nil {
				t.Errorf("%s did not arrive", name)
			}
		}
	}
	check(s.do(t, call{method: "POST", path: "/v1/accounts/1", body: "{}", header: header()}).echo(), nil)
	authorization := basicAuth(keyID, keySecret).Get("Authorization")
	check(s.do(t, call{method: "POST", path: "/v1/directories/1/saml/sso/post", body: "{}", header: header()}).echo(), map[string]string{"Authorization": authorization})
	check(s.do(t, call{method: "POST", path: "/client/calm-otter/login", body: "{}", header: header()}).echo(), map[string]string{"Authorization": authorization, "Cookie": "sso=1; b=2"})
}

func TestABodyWithoutATypeStaysWithoutOne(t *testing.T) {
	s := openGateway(t)
	e := s.raw(t, "%sContent-Length: 2\r\n\r\n{}", requestHead("POST", "/v1/applications")).echo()
	if kind, given := e.Headers["Content-Type"]; given {
		t.Errorf("the service got %q", kind)
	}
}

func TestTheAnswerOfAServiceIsForwardedUnchanged(t *testing.T) {
	s := openGateway(t)
	body := bytes.Repeat([]byte("0123456789"), 300_000)
	s.services["idsite"].setHandler(func(c *fiber.Ctx) error {
		for _, name := range []string{"Location", "ETag", "Cache-Control", "Pragma", "WWW-Authenticate", "Retry-After", "Allow", "Vary", "Content-Security-Policy",
			"Access-Control-Allow-Origin", "Service-SSO-Redirect-Location", "Authorization", "X-Any"} {
			c.Set(name, "value of "+name)
		}
		c.Context().Response.Header.Add("Set-Cookie", "a=1; HttpOnly")
		c.Context().Response.Header.Add("Set-Cookie", "b=2; Secure")
		c.Set("Connection", "close")
		c.Set("Keep-Alive", "timeout=5")
		c.Set("Upgrade", "h2c")
		c.Set("Service-Request-Id", "forged")
		c.Set("Content-Type", "text/html")
		return c.Status(fiber.StatusTeapot).Send(body)
	})
	for range 2 {
		a := s.do(t, call{method: "GET", path: "/client/calm-otter/me", header: anonymous()}).want(418)
		if !bytes.Equal(a.body, body) {
			t.Errorf("%d of %d bytes came", len(a.body), len(body))
		}
		for _, name := range []string{"Location", "ETag", "Cache-Control", "Pragma", "WWW-Authenticate", "Retry-After", "Allow", "Vary", "Content-Security-Policy",
			"Access-Control-Allow-Origin", "Service-SSO-Redirect-Location", "Authorization", "X-Any"} {
			if a.header.Get(name) != "value of "+name {
				t.Errorf("%s came as %q", name, a.header[name])
			}
		}
		if cookies := a.header["Set-Cookie"]; !slices.Equal(cookies, []string{"a=1; HttpOnly", "b=2; Secure"}) {
			t.Errorf("the cookies came as %q", cookies)
		}
		for _, name := range []string{"Connection", "Keep-Alive", "Upgrade", "Server"} {
			if a.header[name] != nil {
				t.Errorf("%s came as %q", name, a.header[name])
			}
		}
		if a.header.Get("Service-Request-Id") == "forged" || a.header.Get("Content-Type") != "text/html" {
			t.Errorf("the headers are %v", a.header)
		}
	}
}

func TestTheClientsConnectionOutlivesTheServices(t *testing.T) {
	s := openGateway(t)
	s.services["directory"].setHandler(func(c *fiber.Ctx) error {
		c.Context().SetConnectionClose()
		return c.SendString("{}")
	})
	conn := s.dial(t)
	for range 2 {
		fmt.Fprintf(conn, "%s\r\n", requestHead("GET", "/v1/accounts/1"))
		buffer := make([]byte, 4096)
		n, err := conn.Read(buffer)
		if err != nil || !strings.HasPrefix(string(buffer[:n]), "HTTP/1.1 200") {
			t.Fatalf("the client's connection reads %q, %v", buffer[:n], err)
		}
	}
}

func TestAnEmptyAnswerStaysEmpty(t *testing.T) {
	s := openGateway(t)
	s.services["directory"].setHandler(func(c *fiber.Ctx) error { return rest.NoContent(c) })
	a := s.do(t, call{method: "DELETE", path: "/v1/accounts/1"}).want(204)
	if len(a.body) > 0 || a.header.Get("Content-Type") != "" || a.header.Get("Content-Length") != "" {
		t.Errorf("an empty answer arrived with the body %q and the headers %v", a.body, a.header)
	}
	s.services["directory"].setHandler(func(c *fiber.Ctx) error { return c.SendStatus(fiber.StatusNotModified) })
	s.get(t, "/v1/accounts/1").want(304)
}

// unusedAddress returns an address that refuses connections.
func unusedAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return "http://" + listener.Addr().String()
}

func TestAnUnavailableServiceIs503(t *testing.T) {
	s := openGateway(t, func(cfg *Config, _ *testGateway) {
		var err error
		if cfg.Upstreams["directory"], err = rpc.NewUpstream("directory", []string{unusedAddress(t)}); err != nil {
			t.Fatal(err)
		}
	})
	for _, method := range []string{"GET", "POST", "DELETE"} {
		if a := s.do(t, call{method: method, path: "/v1/accounts/1"}).wantError(503, 503); a.header.Get("Retry-After") != "1" {
			t.Errorf("Retry-After is %q", a.header.Get("Retry-After"))
		}
	}
}

// A GET may be asked of another replica when a connection breaks, a POST must
// not: the first may have done it.
func TestOnlyAGETIsRetriedOnAnotherReplica(t *testing.T) {
	broken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = broken.Close() })
	heard := make(chan string, 100)
	go func() {
		for {
			conn, err := broken.Accept()
			if err != nil {
				return
			}
			buffer := make([]byte, 4096)
			n, _ := conn.Read(buffer)
			heard <- string(buffer[:n])
			_ = conn.Close()
		}
	}()
	working, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	app := rest.NewFiber(nil)
	app.Use(func(c *fiber.Ctx) error { return c.SendString("{}") })
	go func() { _ = app.Listener(working) }()
	t.Cleanup(func() { _ = app.Shutdown() })
	// A replica that broke is left alone for a while, so each kind has a gateway
	// that has not met it yet.
	both := func(cfg *Config, _ *testGateway) {
		cfg.Upstreams["directory"], err = rpc.NewUpstream("directory", []string{"http://" + broken.Addr().String(), "http://" + working.Addr().String()})
		if err != nil {
			t.Fatal(err)
		}
	}
	reads := openGateway(t, both)
	for range 6 {
		reads.get(t, "/v1/accounts/1").want(200)
	}
	if len(heard) == 0 {
		t.Error("no read went to the broken replica first")
	}
	writes := openGateway(t, both)
	statuses := map[int]int{}
	for range 6 {
		statuses[writes.post(t, "/v1/accounts/1", "{}").status]++
	}
	if statuses[503] == 0 || statuses[200] == 0 {
		t.Errorf("the writes answered %v", statuses)
	}
}

func TestTheTraceContextIsForwarded(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	provider := trace.NewTracerProvider(trace.WithSyncer(spans))
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(provider)
	otel.SetTextMapPropagator(propagation.TraceContext{})
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	s := openGateway(t)
	s.services["directory"].setAnswers(map[string]string{"/accounts/1": `{"tenant":{"href":"https://id.example.com/v1/tenants/1"}}`, "/tenants/1": `{}`})
	s.get(t, "/v1/accounts/1?expand=tenant").want(200)
	if err := provider.ForceFlush(context.Background()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the gateway's span ends", func() bool { return len(spans.GetSpans()) == 1 })
	span := spans.GetSpans()[0]
	if span.Name != "GET /v1/accounts/:id" {
		t.Errorf("the span is named %q", span.Name)
	}
	requests := s.services["directory"].requests()
	if len(requests) != 2 {
		t.Fatalf("the service was sent %d requests", len(requests))
	}
	for _, e := range requests {
		if parent := e.Headers["Traceparent"]; len(parent) != 1 || !strings.Contains(parent[0], span.SpanContext.TraceID().String()+"-"+span.SpanContext.SpanID().String()) {
			t.Errorf("%s continues %q", e.Target, parent)
		}
	}
}

// A stranger decides neither in which trace a request is nor whether that is recorded; a trusted proxy does.
func TestATraceBeginsAtTheGateway(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	provider := trace.NewTracerProvider(trace.WithSyncer(spans))
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(provider)
	otel.SetTextMapPropagator(propagation.TraceContext{})
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	const theirs = "0af7651916cd43dd8448eb211c80319c"
	for hops := range 2 {
		spans.Reset()
		s := openGateway(t, func(cfg *Config, _ *testGateway) { cfg.TrustedHops = hops })
		s.services["directory"].setAnswers(map[string]string{"/accounts/1": `{}`})
		s.do(t, call{method: http.MethodGet, path: "/v1/accounts/1",
			header: http.Header{"Traceparent": {"00-" + theirs + "-b7ad6b7169203331-0" + strconv.Itoa(hops)}}}).want(200)
		eventually(t, "the gateway's span ends", func() bool { return len(spans.GetSpans()) == 1 })
		span := spans.GetSpans()[0]
		continues := span.SpanContext.TraceID().String() == theirs
		linked := len(span.Links) == 1 && span.Links[0].SpanContext.TraceID().String() == theirs
		if continues != (hops == 1) || linked != (hops == 0) || span.Parent.IsValid() != (hops == 1) {
			t.Errorf("with %d trusted proxies the trace is %s, its links are %v", hops, span.SpanContext.TraceID(), span.Links)
		}
		attributes := map[string]string{}
		for _, a := range span.Attributes {
			attributes[string(a.Key)] = a.Value.String()
		}
		for name, want := range map[string]string{"url.scheme": "https", "http.route": "/v1/accounts/:id", "url.path": "/v1/accounts/:id"} {
			if attributes[name] != want {
				t.Errorf("the attribute %s is %q, want %q", name, attributes[name], want)
			}
		}
		for _, name := range []string{"doorward.tenant", "client.address", "server.address"} {
			if attributes[name] == "" {
				t.Errorf("the span lacks %s: %v", name, attributes)
			}
		}
		if attributes["error.type"] != "" {
			t.Errorf("an answer with 200 has the error.type %q", attributes["error.type"])
		}
	}
}

func TestLargeBuffersAreNotKeptWithAConnection(t *testing.T) {
	var request, response int
	s := openGateway(t, func(_ *Config, s *testGateway) {
		s.prepare = func(g *Gateway) {
			g.middlewares = append([]middleware{func(rc *requestContext) error { // what is there already
				request, response = cap(rc.Request().Body()), cap(rc.Response().SwapBody(nil))
				return nil
			}}, g.middlewares...)
		}
	})
	s.services["directory"].setHandler(func(c *fiber.Ctx) error { return c.Send(make([]byte, 4<<20)) })
	a := s.post(t, "/v1/accounts/1", strings.Repeat("x", 4<<20)).want(200)
	if len(a.body) != 4<<20 || request < 4<<20 {
		t.Fatalf("%d bytes came, of a request of %d", len(a.body), request)
	}
	s.get(t, "/v1/accounts/1").want(200)
	if request > 1<<20 || response > 1<<20 {
		t.Errorf("%d and %d bytes are kept", request, response)
	}
}

func TestTheClientsAddress(t *testing.T) {
	for _, c := range []struct {
		hops int
		sent []string
		want string
	}{
		{0, []string{"1.1.1.1"}, "127.0.0.1"},
		{1, nil, "127.0.0.1"},
		{1, []string{"1.1.1.1"}, "1.1.1.1"},
		{1, []string{"1.1.1.1, 2.2.2.2"}, "2.2.2.2"},
		{1, []string{"1.1.1.1", "2.2.2.2"}, "2.2.2.2"},
		{1, []string{"1.1.1.1, 2.2.2.2:4711"}, "2.2.2.2"},
		{1, []string{"1.1.1.1, [2001:db8::1]:4711"}, "2001:db8::1"},
		{1, []string{"1.1.1.1,unknown"}, "127.0.0.1"},
		{2, []string{"1.1.1.1, 2.2.2.2,3.3.3.3"}, "2.2.2.2"},
		{2, []string{"1.1.1.1, 2.2.2.2", "3.3.3.3"}, "2.2.2.2"},
		{3, []string{"1.1.1.1, 2.2.2.2", "3.3.3.3"}, "1.1.1.1"},
		{2, []string{"1.1.1.1"}, "127.0.0.1"},
		{1, []string{"::ffff:1.2.3.4"}, "1.2.3.4"},
	} {
		t.Run(fmt.Sprint(c.hops, c.sent), func(t *testing.T) {
			s := openGateway(t, func(cfg *Config, _ *testGateway) { cfg.TrustedHops = c.hops })
			e := s.do(t, call{method: "GET", path: "/v1/accounts/1", header: http.Header{"X-Forwarded-For": c.sent}}).echo()
			if got := e.Headers["X-Forwarded-For"]; len(got) != 1 || got[0] != c.want {
				t.Errorf("the client is %q, want %s", got, c.want)
			}
		})
	}
}

func TestGracefulShutdownFinishesRunningRequests(t *testing.T) {
	s := openGateway(t)
	started, release := make(chan struct{}), make(chan struct{})
	s.services["directory"].setHandler(func(c *fiber.Ctx) error {
		close(started)
		<-release
		return c.SendString("{}")
	})
	result := make(chan int, 1)
	go func() {
		a, err := s.try(t, call{method: "GET", path: "/v1/accounts/1"})
		if err != nil {
			t.Error(err)
		}
		result <- a.status
	}()
	<-started
	stopped := make(chan error, 1)
	go func() { stopped <- s.HTTP.ShutdownWithTimeout(testTimeout) }()
	eventually(t, "no connection is accepted", func() bool {
		conn, err := net.DialTimeout("tcp", s.address, time.Second)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	close(release)
	if status := <-result; status != 200 {
		t.Errorf("the request got %d", status)
	}
	if err := <-stopped; err != nil {
		t.Errorf("the shutdown returned %v", err)
	}
}

package gateway

import (
	"crypto/tls"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/doorward/doorward/gateway/requestpath"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/rpc"
)

// BenchmarkForward measures a GET with an API key against two floors on the
// same TLS listener: a bare Fiber handler, and one that does nothing but pass
// the request on to the same service. Client and service run in this process
// and share its processors; the allocations are those of all of them.
func BenchmarkForward(b *testing.B) {
	body := []byte(`{"href":"https://id.example.com/v1/accounts/1","givenName":"Jo","surname":"Doe","status":"ENABLED"}`)
	answer := func(c *fiber.Ctx) error {
		c.Set(fiber.HeaderContentType, rest.MIME)
		return c.Send(body)
	}
	service := rest.NewFiber(nil)
	service.Use(answer)
	hop := rpc.LocalUpstream("directory", service.Handler())

	b.Run("bare", func(b *testing.B) {
		app := rest.NewFiber(nil)
		app.Use(answer)
		load(b, app)
	})
	b.Run("hop", func(b *testing.B) {
		app := rest.NewFiber(nil)
		app.Use(func(c *fiber.Ctx) error {
			request := fasthttp.AcquireRequest()
			defer fasthttp.ReleaseRequest(request)
			request.SetRequestURI("/v1/accounts/1")
			return hop.Do(c.Context(), request, c.Response(), true)
		})
		load(b, app)
	})
	b.Run("gateway", func(b *testing.B) {
		g, err := New(Config{Common: common, Keys: newFakeOAuth(), Tenant: Limit{1000, 1_000_000}, Users: Limit{InFlight: 100}, Address: Limit{InFlight: 20}, Upstreams: Upstreams{"directory": hop}})
		if err != nil {
			b.Fatal(err)
		}
		load(b, g.HTTP)
	})
}

func load(b *testing.B, app *fiber.App) {
	s := &testGateway{Gateway: &Gateway{HTTP: app}}
	s.serve(b, false)
	client := &fasthttp.HostClient{Addr: s.address, IsTLS: true, MaxConns: 64, TLSConfig: &tls.Config{RootCAs: roots, ServerName: "localhost"}}
	authorization := basicAuth(keyID, keySecret).Get("Authorization")
	b.ReportAllocs()
	b.SetParallelism(8)
	b.ResetTimer()
	began := time.Now()
	b.RunParallel(func(pb *testing.PB) {
		request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
		request.SetRequestURI("https://localhost/v1/accounts/1")
		request.Header.Set("Authorization", authorization)
		request.Header.Set("Accept", "application/json")
		request.Header.SetUserAgent("bench")
		for pb.Next() {
			if err := client.Do(request, response); err != nil || response.StatusCode() != 200 {
				b.Errorf("a request is answered with %d, %v: %s", response.StatusCode(), err, response.Body())
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "req/s")
	b.StopTimer()
	client.CloseIdleConnections()
}

// BenchmarkMatch measures finding the route of a path.
func BenchmarkMatch(b *testing.B) {
	s := openGateway(b)
	var buffer []byte
	b.ReportAllocs()
	for b.Loop() {
		buffer, _ = requestpath.Normalize(buffer[:0], []byte("/v1/applications/3YfJb3a5Xn1Zk0QvLw8s9T/passwordResetTokens/eyJ0aWQ"))
		if s.router.match(buffer) == nil {
			b.Fatal("no route")
		}
	}
}

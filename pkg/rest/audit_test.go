package rest_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/telemetry/telemetrytest"
)

func TestTheAuditLogHasWhoAskedForWhichChange(t *testing.T) {
	now := time.Now()
	from := caller.Caller{
		Tenant: id.New(now), Key: "K1", Account: id.New(now), RequestID: "r1", Address: netip.MustParseAddr("192.0.2.1"),
	}
	made := id.New(now).String()
	app := rest.New(rest.Config{Service: "test", Base: "https://localhost/v1", Signer: signer})
	app.Get("/v1/things/:id", rest.NoContent)
	app.Post("/v1/things", func(c *fiber.Ctx) error {
		return rest.Created(c, "https://localhost/v1/things/"+made, map[string]string{})
	})
	app.Post("/v1/things/:id", func(*fiber.Ctx) error { return apierr.Exists.Because("a name that is nobody's business") })
	app.Delete("/v1/things/:id", rest.NoContent)
	app.Post("/v1/things/tokens/:token", func(c *fiber.Ctx) error {
		return rest.Created(c, "https://localhost/v1/things/tokens/"+c.Params("token"), map[string]string{})
	})
	app.Post("/v1/agents/:id/ping", rest.NoContent)
	app.Post("/internal/test.Call", rest.NoContent)

	for _, c := range []struct {
		method, path string
		from         caller.Caller
		want         map[string]any // besides what names the caller; nil where no line is wanted
	}{
		{"GET", "/v1/things/T1", from, nil},
		{"HEAD", "/v1/things/T1", from, nil},
		{"POST", "/v1/agents/A1/ping", from, nil},
		{"POST", "/internal/test.Call", from, nil},
		{"POST", "/v1/things", from, map[string]any{"method": "POST", "route": "/v1/things", "status": 201.0, "created": made}},
		{"POST", "/v1/things/T1", from, map[string]any{
			"method": "POST", "route": "/v1/things/:id", "status": 409.0, "id": "T1", "code": 2001.0}},
		{"DELETE", "/v1/things/T1", from, map[string]any{"method": "DELETE", "route": "/v1/things/:id", "status": 204.0, "id": "T1"}},
		{"DELETE", "/v1/things/jo@example.test", from, map[string]any{"method": "DELETE", "route": "/v1/things/:id", "status": 204.0}},
		{"POST", "/v1/things/tokens/secret", from, map[string]any{"method": "POST", "route": "/v1/things/tokens/:token", "status": 201.0}},
		{"POST", "/v1/none", from, map[string]any{"method": "POST", "route": "none", "status": 404.0, "code": 404.0}},
		{"POST", "/v1/things", caller.Caller{Tenant: from.Tenant}, map[string]any{
			"method": "POST", "route": "/v1/things", "status": 201.0, "created": made}},
	} {
		log := telemetrytest.NewLog(t)
		request := httptest.NewRequest(c.method, c.path, http.NoBody)
		request.Header.Set(caller.Header, signer.Sign(c.from))
		response, err := app.Test(request, -1)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		var want []map[string]any
		if c.want != nil {
			want = []map[string]any{c.want}
			c.want["tenant"] = c.from.Tenant.String()
			if c.from.Key != "" {
				c.want["key"], c.want["administrator"], c.want["client"], c.want["request"] = "K1", from.Account.String(), "192.0.2.1", "r1"
			}
		}
		if found := log.Audited(t, "request"); !reflect.DeepEqual(found, want) {
			t.Errorf("%s %s is audited as\n%v, want\n%v", c.method, c.path, found, want)
		}
	}
}

package rest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/rpc"
)

var signer = caller.NewSigner("a secret that is long enough for this", time.Now)

// app is an application whose handlers end in every way a handler can.
func app() *fiber.App {
	app := rest.New(rest.Config{Service: "test", Base: "https://localhost/v1", Signer: signer})
	app.Get("/v1/fails", func(*fiber.Ctx) error { return errors.New("password=hunter2 in a query") })
	app.Get("/v1/panics", func(*fiber.Ctx) error { panic("a secret detail") })
	app.Get("/v1/gone", func(*fiber.Ctx) error { return apierr.NotFound })
	app.Get("/v1/waits", func(*fiber.Ctx) error { return apierr.Unavailable.WithRetryAfter(1500 * time.Millisecond) })
	app.Get("/v1/agent", func(*fiber.Ctx) error { return apierr.AgentSlow })
	app.Get("/v1/things/:id", func(c *fiber.Ctx) error {
		if _, err := rest.ID(c, "id"); err != nil {
			return err
		}
		return rest.OK(c, map[string]string{"text": "<b>&"})
	})
	return app
}

// The answer to a request names what the request has ended, also where it is an error, and the services
// that it calls for that name it to their caller.
func TestAnAnswerNamesWhatTheRequestHasEnded(t *testing.T) {
	tenant, of := id.New(time.Now()), id.New(time.Now())
	inner := rest.New(rest.Config{Service: "inner", Base: "https://localhost/v1", Signer: signer})
	rpc.Serve(rest.Contract(inner), "inner.End", func(ctx context.Context, resource id.ID) (id.ID, error) {
		if !resource.IsZero() {
			caller.End(ctx, id.ID{}, resource)
		}
		return resource, nil
	})
	peer := rpc.Peer{Upstream: rpc.LocalUpstream("inner", inner.Handler()), Signer: signer}
	app := rest.New(rest.Config{Service: "test", Base: "https://localhost/v1", Signer: signer})
	ends := func(resource id.ID, err error) fiber.Handler {
		return func(c *fiber.Ctx) error {
			if _, callErr := rpc.Call[id.ID, id.ID](c.UserContext(), peer, "inner.End", resource); callErr != nil {
				return callErr
			}
			return err
		}
	}
	app.Get("/v1/ends", ends(of, nil))
	app.Get("/v1/fails", ends(of, apierr.NotFound))
	app.Get("/v1/reads", ends(id.ID{}, nil))
	for path, want := range map[string]caller.IDs{"/v1/ends": caller.IDs("").With(of), "/v1/fails": caller.IDs("").With(of), "/v1/reads": ""} {
		request := httptest.NewRequest("GET", path, nil)
		request.Header.Set(caller.Header, signer.Sign(caller.Caller{Tenant: tenant}))
		response, err := app.Test(request, -1)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if got := caller.ParseEnded([]byte(response.Header.Get(caller.EndedHeader)))[tenant]; got != want {
			t.Errorf("the answer of %s names %x, want %x", path, got, want)
		}
	}
}

type answer struct {
	status int
	header http.Header
	body   map[string]any
	raw    string
}

func send(t *testing.T, method, path string) answer {
	t.Helper()
	request := httptest.NewRequest(method, path, nil)
	request.Header.Set(caller.Header, signer.Sign(caller.Caller{Tenant: id.New(time.Now()), RequestID: "r1"}))
	response, err := app().Test(request, -1)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	a := answer{status: response.StatusCode, header: response.Header, raw: string(raw)}
	_ = json.Unmarshal(raw, &a.body) // a 204 has none
	return a
}

func TestAFaultOfOursIsA500WhoseTextStaysInTheLog(t *testing.T) {
	var log bytes.Buffer
	former := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(former)
	for _, path := range []string{"/v1/fails", "/v1/panics"} {
		a := send(t, "GET", path)
		if a.status != 500 || a.body["code"] != 500.0 || a.body["requestId"] != "r1" {
			t.Errorf("GET %s = %d %s", path, a.status, a.raw)
		}
		if strings.Contains(a.raw, "secret") || strings.Contains(a.raw, "hunter2") {
			t.Errorf("GET %s shows the cause: %s", path, a.raw)
		}
	}
	if n := strings.Count(log.String(), "request failed"); n != 2 {
		t.Errorf("%d log lines, want 2:\n%s", n, log.String())
	}
	log.Reset()
	if a := send(t, "GET", "/v1/waits"); a.status != 503 || log.Len() > 0 {
		t.Errorf("a refusal that is meant: %d, logged as %q", a.status, log.String())
	}
}

func TestWhatAProgramOfSomebodyElseCausesIsAWarning(t *testing.T) {
	var log bytes.Buffer
	former := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(former)
	if a := send(t, "GET", "/v1/agent"); a.status != 504 || a.body["code"] != 9002.0 {
		t.Errorf("an agent that is slow: %d %s", a.status, a.raw)
	}
	if line := log.String(); !strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR") {
		t.Errorf("the failure of the program is logged as %q", line)
	}
}

func TestRefusalsOfTheFramework(t *testing.T) {
	for _, c := range []struct {
		method, path string
		status, code int
	}{
		{"GET", "/v1/unknown", 404, 404},
		{"GET", "/v1/things/nothing", 404, 404},
		{"DELETE", "/v1/fails", 405, 1100},
		{"GET", "/v1/waits", 503, 503},
	} {
		a := send(t, c.method, c.path)
		if a.status != c.status || a.body["code"] != float64(c.code) {
			t.Errorf("%s %s = %d %s; want %d/%d", c.method, c.path, a.status, a.raw, c.status, c.code)
		}
		if len(a.body) != 6 || a.body["moreInfo"] == "" {
			t.Errorf("%s %s has not the six members: %s", c.method, c.path, a.raw)
		}
	}
	if got := send(t, "GET", "/v1/waits").header.Get("Retry-After"); got != "2" {
		t.Errorf("Retry-After is %q, want the next whole second", got)
	}
	if got := send(t, "DELETE", "/v1/fails").header.Get("Allow"); !strings.Contains(got, "GET") {
		t.Errorf("Allow is %q", got)
	}
}

// docs/interface/errors.md#texts-that-clients-compare
func TestEvery404SaysTheSame(t *testing.T) {
	for _, path := range []string{"/v1/unknown", "/v1/things/nothing", "/v1/gone"} {
		a := send(t, "GET", path)
		if a.status != 404 || a.body["developerMessage"] != "The requested resource does not exist." {
			t.Errorf("GET %s = %d %s", path, a.status, a.raw)
		}
	}
}

func TestAnAnswerIsPlainJSON(t *testing.T) {
	a := send(t, "GET", "/v1/things/"+id.New(time.Now()).String()+"/")
	if a.status != 200 || a.raw != `{"text":"<b>&"}` || a.header.Get("Content-Type") != rest.MIME || a.header.Get("Cache-Control") != "no-cache" {
		t.Errorf("the answer has the status %d, the body %s and the headers %v", a.status, a.raw, a.header)
	}
}

func TestOnlyTheGatewayIsHeard(t *testing.T) {
	old := caller.NewSigner("a secret that is long enough for this", func() time.Time { return time.Now().Add(-time.Hour) })
	ahead := caller.NewSigner("a secret that is long enough for this", func() time.Time { return time.Now().Add(time.Hour) })
	for name, header := range map[string]string{
		"one from the future": ahead.Sign(caller.Caller{Tenant: id.New(time.Now())}), "none": "", "nonsense": "x.y", "another secret's": caller.NewSigner("another secret that is long enough too", time.Now).Sign(caller.Caller{}),
		"an old one": old.Sign(caller.Caller{Tenant: id.New(time.Now())}), "one without a tenant": signer.Sign(caller.Caller{}),
	} {
		request := httptest.NewRequest("GET", "/v1/things/x", nil)
		request.Header.Set(caller.Header, header)
		response, err := app().Test(request, -1)
		if err != nil {
			t.Fatal(err)
		}
		want := 403
		if name == "an old one" || name == "one from the future" { // clocks differ: the client did nothing wrong
			if want = 503; !response.Close {
				t.Errorf("with the caller %s: the caller would ask this replica again", name)
			}
		}
		if response.StatusCode != want {
			t.Errorf("with the caller %s: status %d, want %d", name, response.StatusCode, want)
		}
		var body struct{ RequestID string }
		if err := json.NewDecoder(response.Body).Decode(&body); err != nil || len(body.RequestID) != 36 {
			t.Errorf("with the caller %s: the requestId is %q, %v", name, body.RequestID, err)
		}
		if err := response.Body.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

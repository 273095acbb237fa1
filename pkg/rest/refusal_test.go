package rest_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/rest"
)

// logged collects what is logged until the test ends.
func logged(t *testing.T) *bytes.Buffer {
	log := new(bytes.Buffer)
	former := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(log, nil)))
	t.Cleanup(func() { slog.SetDefault(former) })
	return log
}

func TestARefusalThatIsMeantIsNoFault(t *testing.T) {
	log := logged(t)
	send(t, "GET", "/v1/waits")
	if log.Len() > 0 {
		t.Errorf("a full queue was logged: %s", log)
	}
	away := rest.New(rest.Config{Service: "test", Base: "https://localhost/v1", Signer: signer})
	away.Get("/away", func(*fiber.Ctx) error { return fmt.Errorf("%w (connection refused)", apierr.Unavailable) })
	request := httptest.NewRequest("GET", "/away", nil)
	request.Header.Set(caller.Header, signer.Sign(caller.Caller{}))
	response, err := away.Test(request, -1)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if !strings.Contains(log.String(), "connection refused") || !strings.Contains(log.String(), "route=/away") {
		t.Errorf("a database that is away was logged as %q", log)
	}
}

func TestThePublicPathsNeedNoTenant(t *testing.T) {
	app := app()
	app.Post("/v1/directories/:id/saml/sso/post", func(c *fiber.Ctx) error { return c.SendStatus(fiber.StatusNoContent) })
	for path, want := range map[string]int{"/v1/directories/1/saml/sso/post": 204, "/v1/directories/1/saml": 403, "/v1/fails": 403} {
		request := httptest.NewRequest("POST", path, nil)
		request.Header.Set(caller.Header, signer.Sign(caller.Caller{}))
		response, err := app.Test(request, -1)
		if err != nil {
			t.Fatal(err)
		}
		if _ = response.Body.Close(); response.StatusCode != want {
			t.Errorf("%s without a tenant: status %d, want %d", path, response.StatusCode, want)
		}
	}
}

// A request that cannot be read has an id in its error body, and its path is in
// no log and no metric.
func TestARequestThatCannotBeRead(t *testing.T) {
	var route string
	app := rest.NewFiber(func(c *fiber.Ctx, err error) error {
		route = rest.Route(c)
		return rest.Fail(c, "https://localhost/v1", err)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- app.Listener(listener) }()
	conn, err := net.DialTimeout("tcp", listener.Addr().String(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = fmt.Fprintf(conn, "POST /v1/passwordResetTokens/SECRET HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", rest.MaxBody+1)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != 413 || strings.Contains(string(body), `"requestId":""`) {
		t.Errorf("the request is answered with %d %s, %v", response.StatusCode, body, err)
	}
	if route != "none" {
		t.Errorf("the route of the request is %q", route)
	}
	if err := app.Shutdown(); err != nil {
		t.Fatal(err)
	}
	<-ended
}

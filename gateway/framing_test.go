package gateway

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/rest"
)

func TestWhatIsTooLargeIs413(t *testing.T) {
	s := openGateway(t)
	json := requestHead("POST", "/v1/applications") + "Content-Type: application/json\r\n"
	form := requestHead("POST", "/v1/applications/1/oauth/token") + "Content-Type: Application/X-WWW-form-urlencoded; charset=utf-8\r\n"
	chunk := fmt.Sprintf("%x\r\n%s\r\n", 32<<10, strings.Repeat("x", 32<<10))
	for name, text := range map[string]string{
		"a JSON body by its announced length":       fmt.Sprintf("%sContent-Length: %d\r\n\r\n ", json, rest.MaxBody+1),
		"a JSON body that was asked for":            fmt.Sprintf("%sExpect: 100-continue\r\nContent-Length: %d\r\n\r\n ", json, rest.MaxBody+1),
		"a JSON body in chunks":                     json + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat(chunk, rest.MaxBody/(32<<10)+40),
		"a form by its announced length":            fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", form, maxForm+1, strings.Repeat("x", maxForm+1)),
		"a form in chunks":                          form + "Transfer-Encoding: chunked\r\n\r\n" + chunk + chunk + chunk + "0\r\n\r\n",
		"headers of 57 kB":                          requestHead("GET", "/v1/accounts/1") + "X-Large: " + strings.Repeat("x", 57<<10) + "\r\n\r\n",
		"a URL of more than 16 kB":                  requestHead("GET", "/v1/accounts/1?q="+strings.Repeat("x", maxURL)) + "\r\n",
		"a URL larger than all headers may be":      requestHead("GET", "/v1/accounts/"+strings.Repeat("x", 60<<10)) + "\r\n",
		"a URL of more than 16 kB on a hosted path": requestHead("GET", "/sso?jwtRequest="+strings.Repeat("x", maxURL)) + "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			conn := s.dial(t)
			go func() { _, _ = io.WriteString(conn, text) }()
			from := bufio.NewReader(conn)
			if strings.Contains(text, "Expect") {
				if line, err := from.ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
					t.Fatalf("the client gets %q (%v)", line, err)
				}
				_, _ = from.ReadString('\n')
			}
			a := readAnswer(t, from).wantError(413, 413)
			if !strings.Contains(string(a.body), "may have") && !strings.Contains(string(a.body), "too large") {
				t.Errorf("the refusal does not name the limit: %s", a.body)
			}
		})
	}
	for name, service := range s.services {
		if service.calls.Load() > 0 {
			t.Errorf("the %s service was sent something", name)
		}
	}
	t.Run("to an ordinary client too, which is still sending", func(t *testing.T) {
		for range 5 {
			s.do(t, call{method: "POST", path: "/v1/applications", body: strings.Repeat(" ", rest.MaxBody+1)}).wantError(413, 413)
		}
	})
	t.Run("the largest body arrives whole", func(t *testing.T) {
		body := `"` + strings.Repeat("x", rest.MaxBody-2) + `"`
		if e := s.post(t, "/v1/applications", body).echo(); e.Body != body {
			t.Errorf("%d of %d bytes arrived", len(e.Body), len(body))
		}
	})
	t.Run("the largest form arrives whole", func(t *testing.T) {
		e := s.do(t, call{method: "POST", path: "/v1/applications/1/oauth/token", body: strings.Repeat("x", maxForm),
			header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}}).echo()
		if len(e.Body) != maxForm {
			t.Errorf("%d bytes of the largest form arrived", len(e.Body))
		}
	})
	t.Run("a long URL is merely unknown", func(t *testing.T) {
		s.get(t, "/v1/nothing/"+strings.Repeat("x", maxURL-64)).wantError(404, 404)
	})
	t.Run("an Authorization header of 5 kB is read", func(t *testing.T) {
		a := s.do(t, call{method: "GET", path: "/v1/accounts/1", header: http.Header{"Authorization": {"Basic " + strings.Repeat("x", 5<<10)}}})
		a.wantError(401, 401)
		e := s.do(t, call{method: "GET", path: "/client/calm-otter/me", header: http.Header{"Authorization": {"Bearer " + strings.Repeat("x", 5<<10)}}}).echo()
		if len(e.Headers["Authorization"][0]) != 5<<10+7 {
			t.Errorf("the header arrived with %d bytes", len(e.Headers["Authorization"][0]))
		}
	})
}

func TestBodiesOfUnauthenticatedClientsAreLimited(t *testing.T) {
	s := openGateway(t)
	announce := func(authorization, contentType string) string {
		return fmt.Sprintf("POST /v1/applications HTTP/1.1\r\nHost: localhost\r\n%sContent-Type: %s\r\nContent-Length: %d\r\n\r\n ", authorization, contentType, maxUnauthenticated+1)
	}
	wrong := "Authorization: " + basicAuth(keyID, "wrong").Get("Authorization") + "\r\n"
	s.raw(t, "%s", announce("", "application/json")).wantError(401, 401)
	s.raw(t, "%s", announce(wrong, "application/json")).wantError(401, 401)
	s.raw(t, "%s", announce(wrong+wrong, "application/json")).wantError(400, 400)
	for target, authorization := range map[string]string{
		"/client/calm-otter/register": "", "/client/calm-otter/login": "Authorization: " + basicAuth(keyID, keySecret).Get("Authorization") + "\r\n",
		"/v1/applications/1/accounts": "Authorization: Bearer a.b.c\r\n", "/register": "",
	} {
		a := s.raw(t, "POST %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %d\r\n\r\n ", target, authorization, maxUnauthenticated+1).want(413)
		if strings.HasPrefix(target, clientAPI) {
			a.wantClientError(413, "status")
		} else {
			a.wantError(413, 413)
		}
		if a.header.Get("WWW-Authenticate") != "" {
			t.Errorf("%s asks for a key", target)
		}
	}
	t.Run("a body that fits is read before anybody is asked", func(t *testing.T) {
		s.do(t, call{method: "POST", path: "/client/calm-otter/register", header: anonymous(), body: strings.Repeat("x", maxUnauthenticated)}).want(200)
	})
	t.Run("with a key it is read", func(t *testing.T) {
		s.post(t, "/v1/applications", strings.Repeat("x", maxUnauthenticated+1)).want(200)
	})
}

func TestAmbiguousRequestsAreRefusedAndTheConnectionCloses(t *testing.T) {
	s := openGateway(t)
	post := requestHead("POST", "/v1/applications") + "Content-Type: application/json\r\n"
	hidden := requestHead("DELETE", "/v1/applications/1") + "\r\n"
	for name, text := range map[string]string{
		"length and chunks":       post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"chunks and length":       post + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + hidden,
		"two lengths":             post + "Content-Length: 2\r\nContent-Length: 0\r\n\r\n" + hidden,
		"two equal lengths":       post + "Content-Length: 0\r\nContent-Length: 0\r\n\r\n" + hidden,
		"an unknown encoding":     post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + hidden,
		"a list of encodings":     post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + hidden,
		"encoding twice":          post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"the identity encoding":   post + "Transfer-Encoding: identity\r\nContent-Length: 0\r\n\r\n" + hidden,
		"two hosts":               post + "Host: other.example\r\nContent-Length: 0\r\n\r\n" + hidden,
		"no host":                 "GET /v1/accounts/1 HTTP/1.1\r\nAuthorization: " + basicAuth(keyID, keySecret).Get("Authorization") + "\r\n\r\n" + hidden,
		"a host with a user":      "GET /v1/accounts/1 HTTP/1.1\r\nHost: localhost:443@evil.example\r\n\r\n" + hidden,
		"a host with a path":      "GET /v1/accounts/1 HTTP/1.1\r\nHost: localhost:443/x\r\n\r\n" + hidden,
		"a folded line":           post + "X-A: b\r\n c\r\nContent-Length: 0\r\n\r\n" + hidden,
		"a bare line feed":        post + "X-A: b\nContent-Length: 0\r\n\r\n" + hidden,
		"a length that is none":   post + "Content-Length: +5\r\n\r\n" + hidden,
		"a blank before a colon":  post + "Content-Length : 0\r\n\r\n" + hidden,
		"a request line of bytes": "\x01\x02\r\n\r\n" + hidden,
	} {
		t.Run(name, func(t *testing.T) {
			conn := s.dial(t)
			if _, err := io.WriteString(conn, text); err != nil {
				t.Fatal(err)
			}
			from := bufio.NewReader(conn)
			a := readAnswer(t, from).wantError(400, 400)
			if strings.Contains(string(a.body), keySecret) || strings.Contains(string(a.body), "Basic ") {
				t.Errorf("the refusal quotes the headers: %s", a.body)
			}
			if more, err := io.ReadAll(from); len(more) > 0 || err != nil {
				t.Errorf("the connection goes on: %q, %v", more, err)
			}
		})
	}
	if n := s.services["application"].calls.Load(); n > 0 {
		t.Errorf("the service was sent %d requests", n)
	}
}

func TestACompressedBodyIsRefused(t *testing.T) {
	s := openGateway(t)
	s.do(t, call{method: "POST", path: "/v1/applications", body: "\x1f\x8b", header: http.Header{"Content-Encoding": {"gzip"}}}).wantError(415, 1101)
	s.do(t, call{method: "POST", path: "/v1/applications", body: "{}", header: http.Header{"Content-Encoding": {"identity"}}}).want(200)
}

func TestAFormWithFilesIsNotUnpacked(t *testing.T) {
	s := openGateway(t)
	body := "--b\r\nthis would not unpack"
	e := s.do(t, call{method: "POST", path: "/v1/applications", body: body, header: http.Header{"Content-Type": {"multipart/form-data; boundary=b"}}}).echo()
	if e.Body != body {
		t.Errorf("the body arrived as %q", e.Body)
	}
}

func TestPlainHTTPIsRefusedInWords(t *testing.T) {
	s := openGateway(t)
	for _, method := range []string{"GET", "POST", "options"} {
		conn, err := net.Dial("tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(testTimeout))
		fmt.Fprintf(conn, "%s /v1/tenants/current HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n%s", method, strings.Repeat("x", 100_000))
		from := bufio.NewReader(conn)
		a := readAnswer(t, from).wantError(403, 403)
		if !strings.Contains(string(a.body), "https://") {
			t.Errorf("the refusal does not tell what to do: %s", a.body)
		}
		if more, err := io.ReadAll(from); len(more) > 0 || err != nil {
			t.Errorf("the connection goes on: %q, %v", more, err)
		}
	}
	if got := refusalCount(t, s, "plain_http"); got < 3 {
		t.Errorf("%v refusals were counted", got)
	}
}

func TestOldTLSIsRefused(t *testing.T) {
	s := openGateway(t)
	if conn, err := tls.Dial("tcp", s.address, &tls.Config{RootCAs: roots, ServerName: "localhost", MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}); err == nil {
		_ = conn.Close()
		t.Error("TLS 1.1 was accepted")
	}
	for _, suite := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		if !slices.Contains(suite.SupportedVersions, tls.VersionTLS12) {
			continue
		}
		conn, err := tls.Dial("tcp", s.address, &tls.Config{RootCAs: roots, ServerName: "localhost",
			MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite.ID}})
		accepted := err == nil
		if accepted {
			_ = conn.Close()
		}
		// The certificate of the gateway has an ECDSA key, so that no suite with RSA can be agreed on.
		recommended := strings.HasPrefix(suite.Name, "TLS_ECDHE_ECDSA_WITH_AES_") && strings.Contains(suite.Name, "_GCM_")
		if accepted != recommended {
			t.Errorf("TLS 1.2 with %s is accepted: %t, %v", suite.Name, accepted, err)
		}
	}
}

// Clients that connect and say nothing, or stop in the middle, hold up nobody
// and are closed in time.
func TestSlowClientsAreBounded(t *testing.T) {
	s := openGateway(t, func(_ *Config, s *testGateway) {
		s.prepare = func(g *Gateway) {
			g.HTTP.Server().ReadTimeout, g.HTTP.Server().IdleTimeout = 300*time.Millisecond, 300*time.Millisecond
		}
	})
	silent, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	half := s.dial(t)
	if _, err := io.WriteString(half, "GET /v1/accounts/1 HT"); err != nil {
		t.Fatal(err)
	}
	shaken := s.dial(t)
	s.get(t, "/v1/accounts/1").want(200)
	for name, conn := range map[string]net.Conn{"before the handshake": silent, "after the handshake": shaken, "in the headers": half} {
		_ = conn.SetReadDeadline(time.Now().Add(testTimeout))
		if text, err := io.ReadAll(conn); len(text) > 0 || isTimeout(err) {
			t.Errorf("a client that is silent %s gets %q, %v", name, text, err)
		}
	}
	s.get(t, "/v1/accounts/1").want(200)
}

// Clients open connections before they have a request for them, and keep them
// for up to 90 s: net/http of Go does both.
func TestAConnectionWithoutARequestStaysOpen(t *testing.T) {
	t.Parallel()
	s := openGateway(t, func(_ *Config, s *testGateway) {
		s.prepare = func(g *Gateway) {
			if idle := g.HTTP.Server().IdleTimeout; idle <= 90*time.Second {
				t.Errorf("connections between requests are closed after %s", idle)
			}
			g.HTTP.Server().ReadTimeout = time.Second
		}
	})
	early := s.dial(t)
	half := s.dial(t)
	if _, err := io.WriteString(half, "GET /v1/accounts/1 HT"); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(half); len(text) > 0 || isTimeout(err) { // the time for headers is over
		t.Fatalf("half a request gets %q, %v", text, err)
	}
	for range 2 {
		if _, err := io.WriteString(early, "GET /v1/accounts/1 HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		readAnswer(t, bufio.NewReader(early)).wantError(401, 401)
	}
}

func isTimeout(err error) bool {
	var network net.Error
	return errors.As(err, &network) && network.Timeout()
}

func TestBehindALoadBalancer(t *testing.T) {
	s := openGateway(t, func(cfg *Config, _ *testGateway) { cfg.Proxied, cfg.TrustedHops = true, 1 })
	came := func(proto ...string) call {
		return call{method: "GET", path: "/v1/accounts/1", header: http.Header{"X-Forwarded-Proto": proto, "X-Forwarded-For": {"203.0.113.1"}}}
	}
	s.do(t, came("https")).want(200)
	s.do(t, came("http, HTTPS")).want(200)
	s.do(t, came("http", "https")).want(200)
	for _, proto := range [][]string{nil, {"http"}, {"https, http"}, {"https", "http"}, {""}} {
		a := s.do(t, came(proto...)).wantError(403, 403)
		if !strings.Contains(string(a.body), "https://") {
			t.Errorf("the refusal does not tell what to do: %s", a.body)
		}
	}
	if a := s.do(t, came("ftp")); !strings.Contains(string(a.body), `\"ftp\"`) {
		t.Errorf("the refusal does not name what was read: %s", a.body)
	}
}

// RFC 7239, and lists of more than one trusted proxy.
func TestWhatTrustedProxiesSayIsCountedFromTheRight(t *testing.T) {
	for name, c := range map[string]struct {
		hops    int
		header  http.Header
		status  int
		address string
	}{
		"Forwarded of one proxy":                    {1, http.Header{"Forwarded": {`for=203.0.113.1;proto=https;by=203.0.113.43`}}, 200, "203.0.113.1"},
		"Forwarded with an IPv6 address and a port": {1, http.Header{"Forwarded": {`For="[2001:db8::7]:4711";Proto="https"`}}, 200, "2001:db8::7"},
		"Forwarded with an IPv6 address":            {1, http.Header{"Forwarded": {`for="[2001:db8::7]";proto=https`}}, 200, "2001:db8::7"},
		"an element that the client forged":         {1, http.Header{"Forwarded": {`for=9.9.9.9;proto=https`, `for=203.0.113.1;proto=http`}}, 403, ""},
		"a quoted comma of the client": {1, http.Header{"Forwarded": {`for="a,b;proto=https";proto=http, for=203.0.113.1;proto=https`}}, 200,
			"203.0.113.1"},
		"two proxies that both add": {2, http.Header{"X-Forwarded-Proto": {"https, http"}, "X-Forwarded-For": {"203.0.113.1, 10.0.0.1"}}, 200,
			"203.0.113.1"},
		"two proxies, of which the inner one passes the entry on": {2, http.Header{"X-Forwarded-Proto": {"https"},
			"X-Forwarded-For": {"203.0.113.1, 10.0.0.1"}}, 200, "203.0.113.1"},
		"two proxies behind a client that forges": {2, http.Header{"X-Forwarded-Proto": {"https, http, https"},
			"X-Forwarded-For": {"9.9.9.9, 203.0.113.1, 10.0.0.1"}}, 403, ""},
		"X-Forwarded-Proto counts before Forwarded": {1, http.Header{"X-Forwarded-Proto": {"http"}, "Forwarded": {"proto=https"}}, 403, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := openGateway(t, func(cfg *Config, _ *testGateway) { cfg.Proxied, cfg.TrustedHops = true, c.hops })
			c.header["Authorization"] = nil // the address of a client with an API key is not passed on
			a := s.do(t, call{method: "GET", path: "/sso", header: c.header})
			if a.status != c.status {
				t.Fatalf("the gateway answered %d, want %d: %s", a.status, c.status, a.body)
			}
			if c.address != "" && a.echo().Caller.Address.String() != c.address {
				t.Errorf("the client's address is %s, want %s", a.echo().Caller.Address, c.address)
			}
		})
	}
}

func TestARefusedHeaderShowsNothingOfTheServer(t *testing.T) {
	s := openGateway(t)
	for name, want := range map[string]string{"Bad(name": "malformed", "Bad\tname": "malformed", "Bad name": "no blank in the name"} {
		a := s.raw(t, "GET /v1/accounts/1 HTTP/1.1\r\nHost: localhost\r\n%s: x\r\n\r\n", name).want(400)
		if text := string(a.body); strings.Contains(text, "uffer") || strings.Contains(text, "fasthttp") || !strings.Contains(text, want) {
			t.Errorf("the refusal of %q is %s", name, text)
		}
	}
}

// RFC 8259, section 8.1.
func TestAByteOrderMarkBeforeABodyIsSkipped(t *testing.T) {
	s := openGateway(t)
	a := s.do(t, call{method: "POST", path: "/v1/accounts/1", body: "\uFEFF{}"}).want(200)
	if got := a.echo().Body; got != "{}" {
		t.Errorf("the service was sent the body %q, want {}", got)
	}
}

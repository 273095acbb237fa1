package e2e_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
)

// Limits of a request that every deployment holds.
const (
	jsonLimit = 12 << 20
	formLimit = 64 << 10
	urlLimit  = 16 << 10
)

// exchangeTimeout bounds one exchange on a raw connection.
const exchangeTimeout = 20 * time.Second

func get(address string) e2e.Request { return e2e.Request{Method: http.MethodGet, URL: address} }

func post(address string, body any) e2e.Request {
	return e2e.Request{Method: http.MethodPost, URL: address, Body: body}
}

func TestTheCurrentTenantIsARedirectToTheKeysTenant(t *testing.T) {
	answer := client.Want(t, http.StatusFound, get("/tenants/current"))
	if len(answer.Body) != 0 {
		t.Errorf("the redirect has a body: %s", answer)
	}
	location := answer.Header.Get("Location")
	if !strings.HasPrefix(location, client.Key.BaseURL+"/tenants/") {
		t.Fatalf("the redirect leads to %q", location)
	}
	tenant := client.Get(t, location)
	if tenant.Href() != location {
		t.Errorf("the tenant says it lies at %q, not at %q", tenant.Href(), location)
	}
	if tenant.Text("key") == "" || tenant.Text("name") == "" {
		t.Errorf("the tenant has key %q and name %q", tenant.Text("key"), tenant.Text("name"))
	}
	for _, link := range []string{"applications", "directories", "organizations", "accounts", "groups", "agents", "idSites", "smtpServers", "customData"} {
		tenant.Link(t, link)
	}
	again := client.Want(t, http.StatusFound, get("/tenants/current"))
	if again.Header.Get(e2e.RequestIDHeader) == answer.Header.Get(e2e.RequestIDHeader) {
		t.Error("two requests have the same id")
	}
}

func TestRequestsWithoutAGoodKeyAreRefused(t *testing.T) {
	refused := map[string]*e2e.Client{
		"a wrong secret":                client.With(client.Key.ID, client.Key.Secret+"x"),
		"the secret of another case":    client.With(client.Key.ID, strings.ToLower(client.Key.Secret)),
		"an unknown key id":             client.With("ABCDEFGHIJKLMNOPQRSTUVWXYZ", client.Key.Secret),
		"an empty key":                  client.With("", ""),
		"a key id with a zero byte":     client.With("A\x00B", client.Key.Secret),
		"a key id of eight kilobytes":   client.With(strings.Repeat("K", 8<<10), client.Key.Secret),
		"the secret in place of the id": client.With(client.Key.Secret, client.Key.ID),
	}
	for name, stranger := range refused {
		t.Run(name, func(t *testing.T) {
			answer := stranger.Want(t, http.StatusUnauthorized, get("/tenants/current"))
			checkUnauthorized(t, answer)
		})
	}
	headers := map[string][]string{
		"no credentials":         nil,
		"no scheme":              {"Authorization", client.Key.ID},
		"Base64 that is none":    {"Authorization", "Basic %%%"},
		"Base64 without a colon": {"Authorization", "Basic YWJj"},
		"a scheme nobody knows":  {"Authorization", "Hawk id=1"},
	}
	for name, header := range headers {
		t.Run(name, func(t *testing.T) {
			request := get("/tenants/current")
			request.Anonymous, request.Header = true, http.Header{}
			if header != nil {
				request.Header.Set(header[0], header[1])
			}
			checkUnauthorized(t, client.Want(t, http.StatusUnauthorized, request))
		})
	}
	t.Run("a session of no hosted page", func(t *testing.T) {
		request := get("/tenants/current")
		request.Anonymous, request.Header = true, http.Header{"Authorization": {"Bearer abc.def.ghi"}}
		checkUnauthorized(t, client.Want(t, http.StatusUnauthorized, request))
	})
	t.Run("an unknown path reveals to a stranger no more than a known one", func(t *testing.T) {
		request := get("/applications/0000000000000000000000")
		request.Anonymous = true
		checkUnauthorized(t, client.Want(t, http.StatusUnauthorized, request))
	})
}

func checkUnauthorized(t *testing.T, answer e2e.Answer) {
	t.Helper()
	e2e.CheckError(t, answer, http.StatusUnauthorized, 401)
	challenge := answer.Header.Get("WWW-Authenticate")
	if !strings.Contains(challenge, `Basic realm="`) || !strings.Contains(challenge, "SAuthc1") {
		t.Errorf("WWW-Authenticate is %q; want Basic with a realm, and SAuthc1", challenge)
	}
}

func TestWhatIsNotThereIs404(t *testing.T) {
	const nobody = "0000000000000000000000"
	for _, path := range []string{
		"/nothing", "/nothing/at/all", "/applications/" + nobody, "/directories/" + nobody, "/accounts/" + nobody,
		"/tenants/" + nobody, "/accountStoreMappings/" + nobody, "/accessTokens/" + nobody, "/refreshTokens/" + nobody,
		"/accounts/" + nobody + "/accessTokens", "/applications/" + nobody + "/accounts", "/applications/x", "/accounts/%00",
		"/accounts/..%2F..%2Finternal",
	} {
		t.Run(path, func(t *testing.T) { client.NotFound(t, path) })
	}
	t.Run("nothing internal is reachable", func(t *testing.T) {
		for _, path := range []string{"/internal/", "/internal/directory", "/healthz", "/readyz", "/metrics", "/debug/pprof/"} {
			client.NotFound(t, path)
			outside := client.Call(t, get(client.Key.HostURL()+path))
			if outside.Status != http.StatusNotFound {
				t.Errorf("want 404: %s", outside)
			}
		}
	})
}

func TestMethodsThatAreNotOfferedAre405(t *testing.T) {
	fixture := client.NewFixture(t)
	tenant := client.Tenant(t)
	for _, c := range []struct{ method, address, allowed string }{
		{http.MethodDelete, tenant.Href(), http.MethodGet},
		{http.MethodDelete, "/tenants/current", http.MethodGet},
		{http.MethodGet, fixture.Application.Href() + "/loginAttempts", http.MethodPost},
		{http.MethodGet, fixture.Application.Href() + "/oauth/token", http.MethodPost},
		{http.MethodDelete, fixture.Application.Link(t, "accounts"), http.MethodPost},
		{http.MethodPatch, fixture.Application.Href(), http.MethodPost},
	} {
		t.Run(c.method+" "+strings.TrimPrefix(c.address, client.Key.BaseURL), func(t *testing.T) {
			request := e2e.Request{Method: c.method, URL: c.address}
			answer := client.Want(t, http.StatusMethodNotAllowed, request)
			e2e.CheckError(t, answer, http.StatusMethodNotAllowed, 1100)
			allow := strings.Join(answer.Header.Values("Allow"), ", ")
			if !strings.Contains(allow, c.allowed) || strings.Contains(allow, c.method) {
				t.Errorf("Allow is %q; want %s and not %s", allow, c.allowed, c.method)
			}
		})
	}
}

func TestBodiesThatCannotBeReadAreRefused(t *testing.T) {
	for _, c := range []struct {
		name, contentType, body string
		status, code            int
	}{
		{"plain text", "text/plain", `{"name":"x"}`, 415, 1101},
		{"a form", "application/x-www-form-urlencoded", "name=x", 415, 1101},
		{"no type at all", "", `{"name":"x"}`, 415, 1101},
		{"half an object", "application/json", `{"name":`, 400, 2006},
		{"no JSON", "application/json", `name`, 400, 2006},
		{"a list", "application/json", `[{"name":"x"}]`, 400, 2006},
		{"a string", "application/json", `"name"`, 400, 2006},
		{"two objects", "application/json", `{"name":"x"}{"name":"y"}`, 400, 2006},
		{"an unknown property", "application/json", `{"name":"x","colour":"blue"}`, 400, 2015},
		{"a name of another type", "application/json", `{"name":{"first":"x"}}`, 400, 2004},
		{"no name", "application/json", `{}`, 400, 2000},
		{"an empty name", "application/json", `{"name":""}`, 400, 2000},
		{"a name of null", "application/json", `{"name":null}`, 400, 2000},
		{"a name too long", "application/json", `{"name":"` + strings.Repeat("x", 256) + `"}`, 400, 2008},
		{"a status nobody knows", "application/json", `{"name":"x","status":"SLEEPING"}`, 400, 2003},
		{"another charset", "application/json; charset=iso-8859-1", "{\"name\":\"\xe9\"}", 400, 2005},
		{"bytes that are no UTF-8", "application/json", "{\"name\":\"\xff\xfe\"}", 400, 2005},
	} {
		t.Run(c.name, func(t *testing.T) {
			request := post("/applications", []byte(c.body))
			request.Header = http.Header{}
			if c.contentType != "" {
				request.Header.Set("Content-Type", c.contentType)
			}
			client.Refused(t, c.status, c.code, request)
		})
	}
	t.Run("a charset parameter of UTF-8 is fine", func(t *testing.T) {
		request := post("/applications", []byte(`{"name":""}`))
		request.Header = http.Header{"Content-Type": {"application/json;charset=UTF-8"}}
		client.Refused(t, 400, 2000, request)
	})
}

func TestWhatIsTooLargeIs413(t *testing.T) {
	fixture := client.NewFixture(t)
	t.Run("a JSON body, for a client that asks before it sends", func(t *testing.T) {
		request := post("/applications", io.LimitReader(zeros{}, jsonLimit+1))
		request.Header = http.Header{"Content-Type": {"application/json"}, "Expect": {"100-continue"}}
		client.Refused(t, 413, 413, request)
	})
	t.Run("a JSON body, by its announced length, when its first byte comes", func(t *testing.T) {
		conn := dial(t)
		fmt.Fprintf(conn, "POST /v1/applications HTTP/1.1\r\nHost: %s\r\nAuthorization: %s\r\n"+
			"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n ", client.Address(), basic(), jsonLimit+1)
		e2e.CheckError(t, readAnswer(t, conn), 413, 413)
	})
	t.Run("a JSON body sent in chunks, without a length", func(t *testing.T) {
		conn := dial(t)
		fmt.Fprintf(conn, "POST /v1/applications HTTP/1.1\r\nHost: %s\r\nAuthorization: %s\r\n"+
			"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n", client.Address(), basic())
		chunk := fmt.Sprintf("%x\r\n%s\r\n", 64<<10, strings.Repeat(" ", 64<<10))
		go func() { // ends when the service, or the end of the test, closes the connection
			for range 2 * jsonLimit / (64 << 10) {
				if _, err := io.WriteString(conn, chunk); err != nil {
					return
				}
			}
		}()
		e2e.CheckError(t, readAnswer(t, conn), 413, 413)
	})
	t.Run("a form", func(t *testing.T) {
		form := url.Values{"grant_type": {"password"}, "username": {"jo"}, "password": {strings.Repeat("x", formLimit)}}
		client.Refused(t, 413, 413, post(fixture.Application.Href()+"/oauth/token", form))
	})
	t.Run("an address", func(t *testing.T) {
		client.Refused(t, 413, 413, get("/applications/"+strings.Repeat("x", urlLimit)))
	})
	t.Run("an address within the limit is merely unknown", func(t *testing.T) {
		client.NotFound(t, "/applications/"+strings.Repeat("x", urlLimit-256))
	})
	t.Run("and the service goes on", func(t *testing.T) { client.Get(t, fixture.Application.Href()) })
}

// zeros is an endless body that says nothing.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// dial opens a TLS connection that is closed when the test ends and that fails
// a read or write that takes too long.
func dial(t *testing.T) net.Conn {
	t.Helper()
	dialer := tls.Dialer{Config: client.TLS()}
	conn, err := dialer.DialContext(t.Context(), "tcp", client.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(exchangeTimeout)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func basic() string {
	request := http.Request{Header: http.Header{}}
	request.SetBasicAuth(client.Key.ID, client.Key.Secret)
	return request.Header.Get("Authorization")
}

func readAnswer(t *testing.T, conn net.Conn) e2e.Answer {
	t.Helper()
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("read the answer: %v", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("read the answer: %v", err)
	}
	return e2e.Answer{Request: "the request on a raw connection", Status: response.StatusCode, Header: response.Header, Body: body}
}

func TestPlainHTTPIsRefused(t *testing.T) {
	dialer := net.Dialer{}
	conn, err := dialer.DialContext(t.Context(), "tcp", client.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(exchangeTimeout)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET /v1/tenants/current HTTP/1.1\r\nHost: %s\r\nAuthorization: %s\r\n\r\n", client.Address(), basic())
	raw, err := io.ReadAll(conn)
	if len(raw) == 0 {
		t.Logf("the connection is closed without an answer (%v)", err)
		return
	}
	response, err := http.ReadResponse(bufio.NewReader(strings.NewReader(string(raw))), nil)
	if err != nil {
		t.Fatalf("a plain request got neither a refusal nor HTTP: %v: %q", err, raw)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusForbidden {
		t.Errorf("plain HTTP got %d, want 403: %s", response.StatusCode, body)
	}
	if !strings.Contains(strings.ToLower(string(body)), "https") {
		t.Errorf("the refusal does not say that HTTPS is needed: %s", body)
	}
}

func TestAPostCanStandForAnotherMethod(t *testing.T) {
	fixture := client.NewFixture(t)
	t.Run("_method=PUT updates", func(t *testing.T) {
		updated := client.Update(t, fixture.Application.Href()+"?_method=PUT", e2e.Object{"description": "by override"})
		if updated.Text("description") != "by override" {
			t.Errorf("the description is %q", updated.Text("description"))
		}
	})
	t.Run("a GET stays a GET", func(t *testing.T) {
		client.Get(t, fixture.Application.Href()+"?_method=DELETE")
		client.Get(t, fixture.Application.Href())
	})
	t.Run("_method=DELETE deletes", func(t *testing.T) {
		client.Want(t, http.StatusNoContent, post(fixture.Application.Href()+"?_method=DELETE", nil))
		client.NotFound(t, fixture.Application.Href())
	})
}

func TestTheAddressMayEndWithASlash(t *testing.T) {
	tenant := client.Tenant(t)
	if again := client.Get(t, tenant.Href()+"/"); again.Href() != tenant.Href() {
		t.Errorf("the tenant says it lies at %q", again.Href())
	}
}

package gateway

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/id"
)

// Bytes that one reader could take for the body and another for a second
// request are never both: a refused request ends its connection, an accepted
// one is followed by what its framing says and nothing else.
func TestNoRequestHidesInAnother(t *testing.T) {
	hidden := requestHead("DELETE", "/v1/applications/1") + "\r\n"
	post := requestHead("POST", "/v1/accounts/1") + "Content-Type: application/json\r\n"
	for name, text := range map[string]string{
		"a tab before chunked":           post + "Transfer-Encoding:\tchunked, identity\r\nContent-Length: 3\r\n\r\n0\r\n\r\n" + hidden,
		"a vertical tab before chunked":  post + "Transfer-Encoding: \vchunked\r\n\r\n0\r\n\r\n" + hidden,
		"a form feed behind chunked":     post + "Transfer-Encoding: chunked\f\r\n\r\n0\r\n\r\n" + hidden,
		"a name with a blank":            post + "Transfer-Encoding : chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n" + hidden,
		"a name behind a blank":          post + "Content-Length: 0\r\n Transfer-Encoding: chunked\r\n\r\n" + hidden,
		"a carriage return in a value":   post + "X-A: b\rTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n" + hidden,
		"a zero byte in a name":          post + "Content-Length\x00: 0\r\nContent-Length: 0\r\nContent-Length: 1\r\n\r\n" + hidden,
		"a negative length":              post + "Content-Length: -1\r\n\r\n" + hidden,
		"a length in hex":                post + "Content-Length: 0x10\r\n\r\n" + hidden,
		"a length of two numbers":        post + "Content-Length: 0, 100\r\n\r\n" + hidden,
		"a length beyond all numbers":    post + "Content-Length: 99999999999999999999\r\n\r\n" + hidden,
		"a chunk that is no number":      post + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n0\r\n\r\n" + hidden,
		"a chunk of a negative size":     post + "Transfer-Encoding: chunked\r\n\r\n-1\r\n0\r\n\r\n" + hidden,
		"a chunk longer than it says":    post + "Transfer-Encoding: chunked\r\n\r\n2\r\nabcd\r\n0\r\n\r\n" + hidden,
		"a chunk of a giant size":        post + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n" + hidden,
		"chunks for HTTP/1.0":            strings.Replace(post, "HTTP/1.1", "HTTP/1.0", 1) + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + hidden,
		"a body of a GET in both ways":   requestHead("GET", "/v1/accounts/1") + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"the preface of HTTP/2":          "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + hidden,
		"two addresses for one host":     strings.Replace(post, "Host: localhost", "Host: localhost\r\nhost: evil", 1) + "Content-Length: 0\r\n\r\n" + hidden,
		"a version nobody knows":         strings.Replace(post, "HTTP/1.1", "HTTP/9.9", 1) + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"an upgrade to HTTP/2 in plain":  post + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"a blank line before the method": "\r\n" + post + "Content-Length: 5\r\nContent-Length: 0\r\n\r\n" + hidden,
	} {
		t.Run(name, func(t *testing.T) {
			s := openGateway(t)
			conn := s.dial(t)
			if _, err := io.WriteString(conn, text); err != nil {
				t.Fatal(err)
			}
			from := bufio.NewReader(conn)
			a := readAnswer(t, from)
			if a.status < 400 || a.status > 499 {
				t.Errorf("the hidden request is answered with %d: %s", a.status, a.body)
			}
			if more, err := io.ReadAll(from); len(more) > 0 || err != nil {
				t.Errorf("the connection goes on: %q, %v", more, err)
			}
			for name, service := range s.services {
				if n := service.calls.Load(); n > 0 {
					t.Errorf("the %s service was sent %d requests: %+v", name, n, service.requests())
				}
			}
		})
	}
}

// A folded line is refused too where nothing follows it: then the server reads
// its own buffer again, in which the line is folded no more.
func TestAFoldedLineIsRefusedWhereverItStands(t *testing.T) {
	s := openGateway(t)
	for _, folded := range []string{"X-A: b\n c\r\n", "X-A: b\r\n c\r\n", "X-A: b\r\n\tc\r\n\td\r\n", "X-A:\n \r\n", "X-A: b\n \n \n \n c\r\nX-B: GET /v1/accounts/2 HTTP/1.1\r\n"} {
		conn := s.dial(t)
		from := bufio.NewReader(conn)
		fmt.Fprintf(conn, "%s\r\n", requestHead("GET", "/v1/accounts/1"))
		readAnswer(t, from).want(200)
		text := requestHead("GET", "/v1/accounts/1") + folded + "\r\n"
		for _, part := range []string{text[:40], text[40:]} {
			if _, err := io.WriteString(conn, part); err != nil {
				t.Fatal(err)
			}
		}
		_ = conn.(*tls.Conn).CloseWrite() // nothing follows
		response, err := http.ReadResponse(from, nil)
		if err != nil {
			continue // closed without an answer: nothing was taken for a request
		}
		if _, err := io.ReadAll(response.Body); err != nil || response.StatusCode != 400 {
			t.Errorf("%q got %d, %v", folded, response.StatusCode, err)
		}
		_ = response.Body.Close()
		if more, err := io.ReadAll(from); len(more) > 0 || err != nil {
			t.Errorf("the connection goes on: %q, %v", more, err)
		}
	}
	if n := s.services["directory"].calls.Load(); n != 5 {
		t.Errorf("the service was sent %d requests", n)
	}
	t.Run("and an indented body is none", func(t *testing.T) {
		body := "{\n  \"a\": 1,\n\t\"b\": 2\n}"
		for range 3 {
			s.post(t, "/v1/accounts/1", body).want(200)
		}
		s.do(t, call{method: "POST", path: "/v1/accounts/1", body: body, header: http.Header{"Expect": {"100-continue"}}}).want(200)
	})
}

// What is clear is read as it says, and the request behind it is its own.
func TestEachRequestOfAConnectionIsItsOwn(t *testing.T) {
	s := openGateway(t)
	get := requestHead("GET", "/v1/accounts/2") + "\r\n"
	inside := "DELETE /v1/applications/1 HTTP/1.1\r\nHost: localhost\r\n\r\n"
	for name, text := range map[string]string{
		"a GET with a body":        requestHead("GET", "/v1/accounts/1") + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(inside), inside),
		"a GET in chunks":          requestHead("GET", "/v1/accounts/1") + fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(inside), inside),
		"a HEAD with a body":       requestHead("HEAD", "/v1/accounts/1") + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(inside), inside),
		"a DELETE with a body":     requestHead("DELETE", "/v1/accounts/1") + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(inside), inside),
		"a POST with a body":       requestHead("POST", "/v1/accounts/1") + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(inside), inside),
		"chunks with extensions":   requestHead("POST", "/v1/accounts/1") + fmt.Sprintf("Transfer-Encoding: Chunked\r\n\r\n%x;a=b\r\n%s\r\n0\r\n\r\n", len(inside), inside),
		"an expectation, and sent": requestHead("POST", "/v1/accounts/1") + fmt.Sprintf("Expect: 100-continue\r\nContent-Length: %d\r\n\r\n%s", len(inside), inside),
	} {
		t.Run(name, func(t *testing.T) {
			before := len(s.services["directory"].requests())
			conn := s.dial(t)
			fmt.Fprint(conn, text, get)
			from := bufio.NewReader(conn)
			answered := 0
			for answered < 2 {
				response, err := http.ReadResponse(from, &http.Request{Method: strings.Fields(text)[0]})
				if answered == 1 && err == nil && strings.HasPrefix(text, "HEAD") {
					_ = response.Body.Close()
					break
				}
				if err != nil {
					return // refused and closed: nothing was taken for a request
				}
				if response.StatusCode == http.StatusContinue {
					continue
				}
				if _, err := io.ReadAll(response.Body); err != nil {
					t.Fatal(err)
				}
				_ = response.Body.Close()
				answered++
			}
			if came := s.services["directory"].requests()[before:]; len(came) != 2 || came[0].Target != "/v1/accounts/1" || came[1].Target != "/v1/accounts/2" {
				t.Errorf("the service was sent %+v", came)
			}
		})
	}
	if n := s.services["application"].calls.Load(); n > 0 {
		t.Errorf("%d requests came out of bodies", n)
	}
}

// What proxies tell is in the headers that they write: not in the trailers
// behind a body in chunks, which the client writes.
func TestATrailerTellsNothingOfTheClient(t *testing.T) {
	s := openGateway(t, func(cfg *Config, _ *testGateway) { cfg.Proxied, cfg.TrustedHops = true, 1 })
	post := func(proto string) answer {
		return s.raw(t, "POST /register HTTP/1.1\r\nHost: localhost\r\nForwarded: for=203.0.113.1;proto=%s\r\n"+
			"Transfer-Encoding: chunked\r\nTrailer: Forwarded\r\n\r\n2\r\n{}\r\n0\r\nForwarded: for=9.9.9.9;proto=https\r\n\r\n", proto)
	}
	if e := post("https").echo(); e.Caller.Address.String() != "203.0.113.1" {
		t.Errorf("the client is %s", e.Caller.Address)
	}
	post("http").wantError(403, 403)
	for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Proto", "Authorization", "Host", "Content-Length", "Transfer-Encoding"} {
		s.raw(t, "%sX-Forwarded-Proto: https\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n%s: x\r\n\r\n", requestHead("POST", "/v1/accounts/1"), name).wantError(400, 400)
	}
}

// Two callers' data never mix, whatever way they authenticate, on connections
// that they share with refused requests.
func TestTheDataOfTwoCallersNeverMix(t *testing.T) {
	s := openGateway(t)
	var group sync.WaitGroup
	for i := range 12 {
		name, secret, of := fmt.Sprintf("CALLER%02d", i), fmt.Sprintf("secret %d", i), id.New(time.Unix(int64(1_790_001_000+i), 0))
		s.keys.add(name, secret, of)
		group.Go(func() {
			for j := range 40 {
				target := fmt.Sprintf("/v1/accounts/%s?j=%d", name, j)
				body := fmt.Sprintf(`{"of":"%s","n":%d,"more":"%s"}`, name, j, strings.Repeat(name, j*20))
				c := call{method: "POST", path: target, body: body, header: basicAuth(name, secret)}
				switch j % 4 {
				case 1:
					c.header = signing{key: name, secret: secret, date: "x-service-date"}.sign(t, "POST", s.address, target, body, nil)
				case 2:
					c.header = basicAuth(name, "wrong") // and what it leaves behind
				}
				a, err := s.try(t, c)
				if err != nil {
					t.Error(err)
					return
				}
				if j%4 == 2 {
					if a.status != 401 && a.status != 429 || strings.Contains(string(a.body), "CALLER") {
						t.Errorf("a wrong key got %d: %s", a.status, a.body)
					}
					continue
				}
				if a.status == 429 { // the address has tried too many wrong keys: asked again later
					continue
				}
				e := a.echo()
				if e.Caller.Key != name || e.Caller.Tenant != of || e.Body != body || e.Target != target || e.Caller.RequestID != a.header.Get("Service-Request-Id") {
					t.Errorf("%s arrived as %+v", name, e)
				}
			}
		})
	}
	group.Wait()
}

// An override means the same to the authorisation, to the table and to the
// service, and nothing on any method but POST.
func TestAnOverrideIsTheSameToEverybody(t *testing.T) {
	s := openGateway(t)
	for _, c := range []struct {
		method, target, header string
		status                 int
		want                   string
	}{
		{"POST", "/v1/accounts/1?_method=DELETE", "", 200, "DELETE"},
		{"POST", "/v1/accounts/1?_method=PUT", "", 200, "POST"},
		{"POST", "/v1/accounts/1", "DELETE", 200, "POST"}, // the header of other products means nothing
		{"GET", "/v1/accounts/1?_method=DELETE", "DELETE", 200, "GET"},
		{"HEAD", "/v1/accounts/1?_method=DELETE", "", 200, "GET"},
		{"DELETE", "/v1/accounts/1?_method=PUT", "", 200, "DELETE"},
		{"PUT", "/v1/accounts/1?_method=DELETE", "", 405, ""},
		{"PATCH", "/v1/accounts/1?_method=DELETE", "", 405, ""},
		{"OPTIONS", "/v1/accounts/1?_method=DELETE", "", 405, ""},
		{"POST", "/v1/tenants/1?_method=DELETE", "", 405, ""},
		{"POST", "/v1/agents/1/ping?_method=DELETE", "", 405, ""},
		{"POST", "/client/calm-otter/login?_method=DELETE", "", 200, "POST"},
	} {
		header := basicAuth(keyID, keySecret)
		if c.header != "" {
			header.Set("X-Http-Method-Override", c.header)
		}
		a := s.do(t, call{method: c.method, path: c.target, header: header}).want(c.status)
		if c.want == "" || c.method == "HEAD" {
			continue
		}
		if e := a.echo(); e.Method != c.want {
			t.Errorf("%s %s arrived as %s, want %s", c.method, c.target, e.Method, c.want)
		}
	}
	for _, authorization := range []http.Header{anonymous(), basicAuth(keyID, "wrong")} {
		for _, target := range []string{"/v1/accounts/1?_method=DELETE", "/v1/accounts/1?_method=PUT", "/v1/nothing?_method=DELETE"} {
			s.do(t, call{method: "POST", path: target, header: authorization}).wantError(401, 401)
		}
	}
}

// A query that asks for much costs little: what is too much is refused before a
// service is asked, and the size of a page is the service's to bound.
func TestAQueryThatAsksForMuchIsBounded(t *testing.T) {
	s := openGateway(t)
	names := strings.Split("tenant,directory,customData,providerData,groups,groupMemberships,applications,apiKeys,linkedAccounts,accountLinks,factors,phones", ",")
	many := make([]string, 200)
	for i := range many {
		if many[i] = names[i%len(names)]; slices.Contains(names[4:], many[i]) {
			many[i] += "(offset:0,limit:100)"
		}
	}
	began := time.Now()
	for _, query := range []string{
		"expand=" + strings.Repeat("(", 8000),
		"expand=" + strings.Repeat("tenant(", 2000) + strings.Repeat(")", 2000),
		"expand=groups(limit:1000000000000000000000)",
		"expand=groups(offset:-1)",
		strings.Repeat("expand=tenant&expand=groups&", 500),
	} {
		a := s.get(t, "/v1/accounts/1?"+query)
		if a.status != 400 {
			t.Errorf("%.40s got %d", query, a.status)
		}
	}
	if n := s.services["directory"].calls.Load(); n > 0 {
		t.Errorf("the service was asked %d times", n)
	}
	s.services["directory"].setAnswers(map[string]string{
		"/accounts/1":                           `{"groups":{"href":"` + string(base) + `/accounts/1/groups"},"tenant":{"href":"` + string(base) + `/tenants/1"}}`,
		"/accounts/1/groups?offset=0&limit=100": `{"items":[]}`, "/accounts/1/groups?limit=1": `{"items":[]}`, "/tenants/1": `{}`,
	})
	for _, query := range []string{strings.Join(many, ","), strings.Repeat("groups(limit:1),", 900) + "tenant"} {
		before := s.services["directory"].calls.Load()
		s.get(t, "/v1/accounts/1?expand="+query).want(200)
		if n := s.services["directory"].calls.Load() - before; n > 3 {
			t.Errorf("two links were asked for %d times", n-1)
		}
	}
	s.services["directory"].setHandler(nil)
	for _, query := range []string{"limit=1000000000", "offset=999999999999", "offset=1&limit=-1", strings.Repeat("a=1&", 4000) + "b"} {
		if e := s.get(t, "/v1/directories/1/accounts?"+query).echo(); e.Target != "/v1/directories/1/accounts?"+query {
			t.Errorf("the query arrived as %s", e.Target)
		}
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("all queries together took %s", took)
	}
}

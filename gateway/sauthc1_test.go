package gateway

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/gateway/requestpath"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/api/oauthapi/signaturetest"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/secure"
)

// signing signs requests as a client does, step by step
// (docs/interface/authentication.md#sauthc1), with the standard library alone.
type signing struct {
	key, secret string
	nonce       string // a new one each time where it is empty
	timestamp   string // now, where it is empty
	date        string // name of the header of the time, in lower case
	more        []string
	unsigned    string // name of a header that is sent and not signed
}

// owner signs with the key of the tests.
func owner() signing { return signing{key: keyID, secret: keySecret, date: "x-service-date"} }

// sign returns the headers of a request, Host among them.
func (s signing) sign(t testing.TB, method, host, target, body string, more http.Header) http.Header {
	t.Helper()
	if s.timestamp == "" {
		s.timestamp = time.Now().UTC().Format("20060102T150405Z")
	}
	if s.nonce == "" {
		s.nonce = rand.Text()
	}
	header := http.Header{"Host": {host}, http.CanonicalHeaderKey(s.date): {s.timestamp}}
	for name, values := range more {
		header[name] = values
	}
	names := append([]string{"host", s.date}, s.more...)
	slices.Sort(names)
	names = slices.DeleteFunc(names, func(name string) bool { return name == s.unsigned })
	lines := ""
	for _, name := range names {
		lines += name + ":" + strings.Join(header[http.CanonicalHeaderKey(name)], ",") + "\n"
	}
	path, query, _ := strings.Cut(target, "?")
	sum := sha256.Sum256([]byte(body))
	canonical := sha256.Sum256([]byte(method + "\n" + signedPath(t, path) + "\n" + signedQuery(t, query) + "\n" + lines + "\n" +
		strings.Join(names, ";") + "\n" + hex.EncodeToString(sum[:])))
	in := signaturetest.Sign(oauthapi.VerifySignature{ID: s.key, Timestamp: s.timestamp, Nonce: s.nonce, Request: hex.EncodeToString(canonical[:])}, secure.Secret(s.secret))
	header.Set("Authorization", fmt.Sprintf("SAuthc1 sauthc1Id=%s/%s/%s/sauthc1_request, sauthc1SignedHeaders=%s, sauthc1Signature=%s",
		s.key, s.timestamp[:8], s.nonce, strings.Join(names, ";"), in.Signature))
	return header
}

func escaped(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

func signedPath(t testing.TB, path string) string {
	t.Helper()
	plain, err := url.PathUnescape(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(escaped(plain), "%2F", "/")
}

func signedQuery(t testing.TB, query string) string {
	t.Helper()
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	var pairs []string
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range values {
			if !yield(name) {
				return
			}
		}
	}) {
		slices.Sort(values[name])
		for _, value := range values[name] {
			pairs = append(pairs, escaped(name)+"="+escaped(value))
		}
	}
	return strings.Join(pairs, "&")
}

// text writes a request out.
func text(method, target string, header http.Header, body string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s %s HTTP/1.1\r\n", method, target)
	for name, values := range header {
		for _, value := range values {
			fmt.Fprintf(&out, "%s: %s\r\n", name, value)
		}
	}
	if body != "" {
		fmt.Fprintf(&out, "Content-Length: %d\r\n", len(body))
	}
	return out.String() + "\r\n" + body
}

// send signs a request and sends it.
func (s signing) send(t testing.TB, to *testGateway, method, target, body string) answer {
	t.Helper()
	more := http.Header{}
	if body != "" {
		more.Set("Content-Type", "application/json")
	}
	return to.raw(t, "%s", text(method, target, s.sign(t, method, "localhost", target, body, more), body))
}

// The worked vectors of docs/interface/authentication.md#sauthc1.
func TestTheTestVectorsOfSAuthc1(t *testing.T) {
	const id = "MyKeyId/20240215/7b2c0f4e-7c0d-4d0e-9f0a-1d6a5b9e2c11/sauthc1_request"
	for name, c := range map[string]struct{ method, target, host, signed, signature, body, want string }{
		"A": {"GET", "/v1/tenants/current", "localhost", "host;x-service-date",
			"56374c25dad5d1e3eebece25f53e62a2cbaa941a8dae9e8077a07d3606ce349c", "", "/v1/tenants/current"},
		"B": {"GET", "/v1/applications/4Xy7/accounts?orderBy=surname+asc%2Cemail%20desc&limit=5&email=jo*%2bx@example.test", "localhost:8443", "host;x-service-date",
			"14aa1b9def6c5c66a16c1a6ffa0e59893173bdda3f722da2b24391da12e210be", "", "/v1/applications/4Xy7/accounts?orderBy=surname+asc%2Cemail%20desc&limit=5&email=jo*%2bx@example.test"},
		"C": {"POST", "/v1/applications?createDirectory=true", "localhost", "content-type;host;x-service-date",
			"07829df9206e2dc767adf5c1e82efaa743dcc903cf0ce21d594212ca7bad48ff", `{"name":"Best App"}`, "/v1/applications?createDirectory=true"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openGateway(t)
			s.keys.add("MyKeyId", "MyKeySecret", tenant)
			header := http.Header{"Host": {c.host}, "X-Service-Date": {"20240215T083000Z"}, "Content-Type": {"application/json"},
				"Authorization": {"SAuthc1 sauthc1Id=" + id + ", sauthc1SignedHeaders=" + c.signed + ", sauthc1Signature=" + c.signature}}
			e := s.raw(t, "%s", text(c.method, c.target, header, c.body)).echo()
			if e.Target != c.want || e.Body != c.body || e.Caller.Key != "MyKeyId" || e.Caller.Tenant != tenant || e.Caller.Account != account {
				t.Errorf("the signed request arrived as %+v", e)
			}
			if e.Headers["Authorization"] != nil {
				t.Error("the service was sent the signature")
			}
			s.raw(t, "%s", text(c.method, c.target, header, c.body)).wantError(401, 401) // twice
		})
	}
}

func TestTheHeaderOfTheTimeHasTheDeploymentsName(t *testing.T) {
	s := openGateway(t, func(cfg *Config, _ *testGateway) { cfg.Common.Alias = "acme" })
	for date, want := range map[string]int{"x-acme-date": 200, "x-service-date": 200, "x-other-date": 401, "date": 401} {
		with := owner()
		with.date = date
		with.send(t, s, "GET", "/v1/accounts/1", "").want(want)
	}
}

func TestWhatIsSignedIsWhatWasReceived(t *testing.T) {
	s := openGateway(t)
	for target, want := range map[string]int{
		"/v1/accounts/1":                                     200,
		"/v1/accounts/1/":                                    200,
		"//v1//accounts///1//":                               200,
		"/v1/accounts/%41b~c-d_e.f":                          200,
		"/v1/accounts/a%20b+c%2B*%2a":                        200,
		"/v1/accounts/%C3%A9\xc3\xa9":                        200,
		"/v1/accounts/1%2Fgroups":                            404,
		"/v1/accounts/..":                                    404,
		"/v1/":                                               404,
		"/v1/accounts/1?":                                    200,
		"/v1/accounts/1?a":                                   200,
		"/v1/accounts/1?a=":                                  200,
		"/v1/accounts/1?a&b=&c=1":                            200,
		"/v1/accounts/1?b=2&a=1&b=1&a=2&B=3":                 200,
		"/v1/accounts/1?a=x&a%20b=y&a%2Fb=z&a-b=w":           200,
		"/v1/accounts/1?a=1=2&b=c%26d":                       200,
		"/v1/accounts/1?&a=1&&b=2&":                          200,
		"/v1/accounts/1?=x&a=1":                              200,
		"/v1/accounts/1?q=%E2%82%AC+%7E~*%2A'()!":            200,
		"/v1/accounts/1?_method=DELETE&x=1":                  200,
		"/v1/directories/1/accounts?expand=tenant,groups&q=": 200,
		"/v1/accounts/1?a=" + strings.Repeat("x", 10_000):    200,
	} {
		owner().send(t, s, "GET", target, "").want(want)
	}
	if e := owner().send(t, s, "POST", "/v1/accounts/1?_method=DELETE", "").echo(); e.Method != "DELETE" {
		t.Errorf("_method arrived as %s", e.Method)
	}
	s.do(t, call{method: "HEAD", path: "/v1/accounts/1", header: owner().sign(t, "HEAD", s.address, "/v1/accounts/1", "", nil)}).want(200)
	owner().send(t, s, "PUT", "/v1/accounts/1", "").wantError(405, 1100)
	t.Run("headers with several values and more blanks", func(t *testing.T) {
		with := owner()
		with.more = []string{"accept", "x-list"}
		header := with.sign(t, "GET", "localhost", "/v1/accounts/1", "", http.Header{"Accept": {"a, b"}, "X-List": {"1", "2", ""}})
		sent := strings.Replace(text("GET", "/v1/accounts/1", header, ""), "Accept: a, b\r\n", "aCCept:\t  a, b \t\r\n", 1)
		s.raw(t, "%s", sent).want(200)
	})
	t.Run("a body in chunks", func(t *testing.T) {
		header := owner().sign(t, "POST", "localhost", "/v1/applications", `{"a":1}`, http.Header{"Content-Type": {"application/json"}, "Transfer-Encoding": {"chunked"}})
		if e := s.raw(t, "%s", text("POST", "/v1/applications", header, "")+"3\r\n{\"a\r\n4\r\n\":1}\r\n0\r\n\r\n").echo(); e.Body != `{"a":1}` {
			t.Errorf("the body in chunks arrived as %s", e.Body)
		}
	})
	t.Run("a form", func(t *testing.T) {
		header := owner().sign(t, "POST", "localhost", "/v1/applications/1/oauth/token", "grant_type=password", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}})
		s.raw(t, "%s", text("POST", "/v1/applications/1/oauth/token", header, "grant_type=password")).want(200)
	})
}

func TestTheDigestIsReadInAnyOrder(t *testing.T) {
	s := openGateway(t)
	for _, form := range []string{
		"%[1]s,%[2]s,%[3]s", "%[3]s,  %[1]s ,\t%[2]s", "%[2]s, %[3]s, %[1]s", "  %[1]s, %[2]s, %[3]s",
	} {
		header := owner().sign(t, "GET", "localhost", "/v1/accounts/1", "", nil)
		parts := strings.Split(strings.TrimPrefix(header.Get("Authorization"), "SAuthc1 "), ", ")
		header.Set("Authorization", "sauthC1 "+fmt.Sprintf(form, parts[0], parts[1], parts[2]))
		s.raw(t, "%s", text("GET", "/v1/accounts/1", header, "")).want(200)
	}
	t.Run("and the headers in the order that it names", func(t *testing.T) {
		const canonical = "GET\n/v1/accounts/1\n\nx-service-date:20240215T083000Z\nhost:localhost\n\nX-Service-Date;host\n" +
			"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
		sum := sha256.Sum256([]byte(canonical))
		in := signaturetest.Sign(oauthapi.VerifySignature{ID: keyID, Timestamp: "20240215T083000Z", Nonce: "n", Request: hex.EncodeToString(sum[:])}, keySecret)
		s.raw(t, "GET /v1/accounts/1 HTTP/1.1\r\nHost: localhost\r\nX-Service-Date: 20240215T083000Z\r\n"+
			"Authorization: SAuthc1 sauthc1Id=%s/20240215/n/sauthc1_request, sauthc1SignedHeaders=X-Service-Date;host, sauthc1Signature=%s\r\n\r\n", keyID, in.Signature).want(200)
	})
}

func TestWhatWasNotSignedIsRefused(t *testing.T) {
	s := openGateway(t)
	const target, body = "/v1/applications?createDirectory=true", `{"name":"Best App"}`
	for name, change := range map[string]func(http.Header) (method, target, body string){
		"another body": func(http.Header) (string, string, string) { return "POST", target, `{"name":"Best Aqq"}` },
		"no body":      func(http.Header) (string, string, string) { return "POST", target, "" },
		"another query": func(http.Header) (string, string, string) {
			return "POST", "/v1/applications?createDirectory=false", body
		},
		"no query":   func(http.Header) (string, string, string) { return "POST", "/v1/applications", body },
		"more query": func(http.Header) (string, string, string) { return "POST", target + "&_method=DELETE", body },
		"another path": func(http.Header) (string, string, string) {
			return "POST", "/v1/directories?createDirectory=true", body
		},
		"another case": func(http.Header) (string, string, string) {
			return "POST", "/v1/Applications?createDirectory=true", body
		},
		"a longer path": func(http.Header) (string, string, string) {
			return "POST", "/v1/applications/?createDirectory=true", body
		},
		"another method": func(http.Header) (string, string, string) { return "DELETE", target, body },
		"another host": func(h http.Header) (string, string, string) {
			h.Set("Host", "localhost:443")
			return "POST", target, body
		},
		"another time": func(h http.Header) (string, string, string) {
			h.Set("X-Service-Date", time.Now().Add(time.Second).UTC().Format("20060102T150405Z"))
			return "POST", target, body
		},
		"another type": func(h http.Header) (string, string, string) {
			h.Set("Content-Type", "text/plain")
			return "POST", target, body
		},
		"two times": func(h http.Header) (string, string, string) {
			h["X-Service-Date"] = append(h["X-Service-Date"], h["X-Service-Date"][0])
			return "POST", target, body
		},
		"no time": func(h http.Header) (string, string, string) {
			h.Del("X-Service-Date")
			return "POST", target, body
		},
		"what a proxy says of the host": func(h http.Header) (string, string, string) {
			h["X-Forwarded-Host"], h["Host"] = h["Host"], []string{"inside:8080"}
			return "POST", target, body
		},
	} {
		t.Run(name, func(t *testing.T) {
			with := owner()
			with.more = []string{"content-type"}
			header := with.sign(t, "POST", "localhost", target, body, http.Header{"Content-Type": {"application/json"}})
			method, target, body := change(header)
			a := s.raw(t, "%s", text(method, target, header, body)).wantError(401, 401)
			if a.header.Get("WWW-Authenticate") == "" {
				t.Error("there is no challenge")
			}
		})
	}
	for _, name := range []string{"host", "x-service-date"} {
		t.Run("a signature that leaves out "+name, func(t *testing.T) {
			with := owner()
			with.unsigned = name
			with.send(t, s, "GET", "/v1/accounts/1", "").wantError(401, 401)
		})
	}
	good := owner().sign(t, "GET", "localhost", "/v1/accounts/1", "", nil)
	authorization := good.Get("Authorization")
	id, _, _ := strings.Cut(strings.TrimPrefix(authorization, "SAuthc1 "), ",")
	for name, replace := range map[string][2]string{
		"no host":              {"host;x-service-date", "x-service-date"},
		"no date":              {"host;x-service-date", "host"},
		"nothing signed":       {"host;x-service-date", ""},
		"an empty name":        {"host;x-service-date", "host;;x-service-date"},
		"an absent header":     {"host;x-service-date", "host;x-absent;x-service-date"},
		"many headers":         {"host;x-service-date", strings.Repeat("host;", 64) + "x-service-date"},
		"another date":         {"/20", "/19"},
		"no date in the id":    {time.Now().UTC().Format("/20060102/"), "//"},
		"another key":          {keyID, "X" + keyID},
		"no key":               {keyID + "/", "/"},
		"another end":          {"sauthc1_request", "sauthc2_request"},
		"no end":               {"/sauthc1_request", ""},
		"a step more":          {"/sauthc1_request", "/x/sauthc1_request"},
		"a part twice":         {id, id + ", " + id},
		"a part missing":       {id + ", ", ""},
		"a part nobody knows":  {id, id + ", sauthc1More=1"},
		"an empty part":        {id, id + ","},
		"quotes":               {id, strings.Replace(id, "=", `="`, 1) + `"`},
		"half of the scheme":   {"SAuthc1 ", "SAuthc "},
		"nothing but a scheme": {authorization, "SAuthc1"},
		"five kilobytes":       {"sauthc1Signature=", "sauthc1Signature=" + strings.Repeat("0", 5<<10)},
	} {
		t.Run(name, func(t *testing.T) {
			header := good.Clone()
			changed := strings.Replace(authorization, replace[0], replace[1], 1)
			if changed == authorization {
				t.Fatal("nothing was changed")
			}
			header.Set("Authorization", changed)
			s.raw(t, "%s", text("GET", "/v1/accounts/1", header, "")).wantError(401, 401)
		})
	}
	header := good.Clone()
	header.Add("Authorization", authorization)
	s.raw(t, "%s", text("GET", "/v1/accounts/1", header, "")).wantError(400, 400)
	for name, service := range s.services {
		if n := service.calls.Load(); n > 0 {
			t.Errorf("the %s service was sent %d requests", name, n)
		}
	}
	s.raw(t, "%s", text("GET", "/v1/accounts/1", good, "")).want(200)
}

func TestASignedRequestCannotBeReplayed(t *testing.T) {
	s := openGateway(t)
	c := call{method: "GET", path: "/v1/accounts/1", header: owner().sign(t, "GET", s.address, "/v1/accounts/1", "", nil)}
	statuses := make(chan int, 50)
	for range cap(statuses) {
		go func() {
			a, err := s.try(t, c)
			if err != nil {
				t.Error(err)
			}
			statuses <- a.status
		}()
	}
	counts := map[int]int{}
	for range cap(statuses) {
		counts[<-statuses]++
	}
	if counts[200] != 1 || counts[401] != cap(statuses)-1 {
		t.Errorf("the answers to the replayed request by status were %v", counts)
	}
}

func TestALargeSignedBodyArrivesWhole(t *testing.T) {
	s := openGateway(t)
	body := `"` + strings.Repeat("x", rest.MaxBody-2) + `"`
	if e := owner().send(t, s, "POST", "/v1/applications", body).echo(); e.Body != body {
		t.Errorf("%d of %d bytes arrived", len(e.Body), len(body))
	}
	owner().send(t, s, "POST", "/v1/applications", body+" ").wantError(413, 413)
	// announce is a request up to the first byte of its body.
	announce := func(with signing, body string) string {
		header := with.sign(t, "POST", "localhost", "/v1/applications", body, http.Header{"Content-Type": {"application/json"}})
		return strings.TrimSuffix(text("POST", "/v1/applications", header, body), body[1:])
	}
	large := strings.Repeat(" ", maxUnauthenticated+1)
	t.Run("one for a key that is not good is not read", func(t *testing.T) {
		stranger := owner()
		stranger.key = "STRANGER"
		s.raw(t, "%s", announce(stranger, large)).wantError(401, 401)
	})
	t.Run("one that was signed otherwise is refused", func(t *testing.T) {
		forger := owner()
		forger.secret += "x"
		for range 2 * maxSignedBodies {
			forger.send(t, s, "POST", "/v1/applications", large).wantError(401, 401)
		}
	})
	t.Run("only so many are read before their signature is", func(t *testing.T) {
		var waiting []io.Writer
		var answers []*bufio.Reader
		for range maxSignedBodies {
			conn := s.dial(t)
			fmt.Fprint(conn, announce(owner(), large))
			waiting, answers = append(waiting, conn), append(answers, bufio.NewReader(conn))
		}
		eventually(t, "all are being read", func() bool { return inFlight(s, hashedSubject(signedBodyLimit, []byte(keyID))) == maxSignedBodies })
		a := s.raw(t, "%s", announce(owner(), large)).wantError(429, 429)
		if a.header.Get("RateLimit-Policy") != `"authentication_limit";q=8;qu="concurrent-requests"` || a.header.Get("RateLimit") != `"authentication_limit";r=0;t=1` {
			t.Errorf("the limit is reported as %v", a.header)
		}
		s.keys.add("OTHER", "secret", tenant)
		signing{key: "OTHER", secret: "secret", date: "x-service-date"}.send(t, s, "POST", "/v1/applications", large).want(200)
		for i, conn := range waiting {
			fmt.Fprint(conn, large[1:])
			readAnswer(t, answers[i]).want(200)
		}
		if n := inFlight(s, hashedSubject(signedBodyLimit, []byte(keyID))); n != 0 {
			t.Errorf("%d requests stay counted", n)
		}
	})
}

// inFlight returns how many requests are counted for a subject.
func inFlight(s *testGateway, who subject) int {
	s.Limiter.mu.Lock()
	defer s.Limiter.mu.Unlock()
	if u := s.Limiter.local[who]; u != nil {
		return u.inFlight
	}
	return 0
}

func TestWrongSignaturesOfAnAddressAreBounded(t *testing.T) {
	s := openGateway(t, func(cfg *Config, _ *testGateway) { cfg.Tenant.InFlight = 10 })
	owner().send(t, s, "GET", "/v1/accounts/1", "").want(200)
	forger := owner()
	forger.key, forger.secret = "OTHER", "wrong"
	began, before := time.Now(), s.keys.verified.Load()
	statuses := map[int]int{}
	for range 40 {
		statuses[forger.send(t, s, "GET", "/v1/accounts/1", "").status]++
	}
	rounds := 1 + int64(time.Since(began)/rejectedTTL)
	if asked := s.keys.verified.Load() - before; asked > 10*rounds || statuses[429] == 0 || statuses[401]+statuses[429] != 40 {
		t.Errorf("the OAuth service was asked %d times in %d s; the answers were %v", asked, rounds, statuses)
	}
	owner().send(t, s, "GET", "/v1/accounts/1", "").want(200) // a client whose signatures were right is still served
}

// A client does not follow the redirect blindly: it signs the next request.
func TestARedirectIsSignedAnew(t *testing.T) {
	s := openGateway(t)
	s.services["directory"].setHandler(func(c *fiber.Ctx) error {
		if strings.HasPrefix(c.Path(), "/v1/tenants/current") {
			return rest.Redirect(c, string(base)+"/tenants/4Xy7")
		}
		return c.SendString(`{"href":"x"}`)
	})
	a := owner().send(t, s, "GET", "/v1/tenants/current?expand=applications", "").want(302)
	to, err := url.Parse(a.header.Get("Location"))
	if err != nil || to.RequestURI() != "/v1/tenants/4Xy7?expand=applications" {
		t.Fatalf("the redirect leads to %s, %v", to, err)
	}
	if a := owner().send(t, s, "GET", to.RequestURI(), "").want(200); !bytes.Contains(a.body, []byte("href")) {
		t.Errorf("the request after the redirect is answered with %s", a.body)
	}
}

func TestASignedRequestBehindALoadBalancer(t *testing.T) {
	s := openGateway(t, func(cfg *Config, _ *testGateway) { cfg.Proxied, cfg.TrustedHops = true, 1 })
	header := owner().sign(t, "GET", "id.example.com", "/v1/accounts/1", "", http.Header{"X-Forwarded-Proto": {"https"}, "X-Forwarded-For": {"203.0.113.1"}})
	s.raw(t, "%s", text("GET", "/v1/accounts/1", header, "")).want(200)
}

// A digest is refused or is exactly its parts.
func FuzzDigest(f *testing.F) {
	f.Add("sauthc1Id=K/20240215/n/sauthc1_request, sauthc1SignedHeaders=host;x-service-date, sauthc1Signature=00")
	f.Add("sauthc1Signature=00,sauthc1SignedHeaders=host,sauthc1Id=K/2/n/sauthc1_request")
	f.Add("sauthc1Id==,,=;")
	f.Fuzz(func(t *testing.T, sent string) {
		d, ok := parseSignature([]byte(sent))
		if !ok {
			return
		}
		again, ok := parseSignature([]byte("sauthc1Id=" + d.keyID + "/" + d.date + "/" + d.nonce + "/" + signatureSuffix + ",sauthc1SignedHeaders=" + d.signedHeaders + ",sauthc1Signature=" + d.signature))
		if !ok || again.keyID != d.keyID || again.date != d.date || again.nonce != d.nonce || again.signedHeaders != d.signedHeaders || again.signature != d.signature {
			t.Fatalf("%q returns %+v, read again %+v", sent, d, again)
		}
		for _, part := range []string{d.keyID, d.date, d.nonce, d.signedHeaders, d.signature} {
			if strings.ContainsAny(part, " ,\r\n\x00") || !strings.Contains(sent, part) {
				t.Fatalf("%q returns %+v", sent, d)
			}
		}
	})
}

// What is signed says the same as what was sent, in one spelling, and as other
// readers spell it.
func FuzzCanonical(f *testing.F) {
	for _, seed := range [][2]string{{"", ""}, {"/v1//accounts/", "a=1&b"}, {"/%41%zz", "b=2&a=1&b=1&=x&&"}, {"/\xff%ff", "q=a+b%20c*~%2B"}, {"/a b", "%=%&%41=%4"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, path, query string) {
		gotPath, gotQuery := requestpath.Canonical([]byte(path)), requestpath.CanonicalQuery([]byte(query))
		if strings.ContainsAny(gotPath+gotQuery, "\n\r \x00;+*") {
			t.Fatalf("%q?%q is spelt %q?%q", path, query, gotPath, gotQuery)
		}
		if again := requestpath.Canonical([]byte(gotPath)); again != gotPath {
			t.Fatalf("%q is spelt %q, and that %q", path, gotPath, again)
		}
		if again := requestpath.CanonicalQuery([]byte(gotQuery)); again != gotQuery {
			t.Fatalf("%q is spelt %q, and that %q", query, gotQuery, again)
		}
		if _, err := url.PathUnescape(path); err == nil && path != "" && gotPath != signedPath(t, path) {
			t.Fatalf("%q is spelt %q, by others %q", path, gotPath, signedPath(t, path))
		}
		if _, err := url.ParseQuery(query); err == nil && gotQuery != signedQuery(t, query) {
			t.Fatalf("%q is spelt %q, by others %q", query, gotQuery, signedQuery(t, query))
		}
	})
}

package gateway

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/api/oauthapi/signaturetest"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/certificate/certtest"
	"github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/rpc"
	"github.com/doorward/doorward/pkg/secure"
)

const (
	keyID       = "KEYKEYKEYKEYKEYKEYKEYKEYKE"
	keySecret   = "a-secret-that-only-its-owner-knows"
	base        = href.Base("https://id.example.com/v1")
	testTimeout = 20 * time.Second // bounds what a test waits for
)

var (
	tenant  = id.New(time.Unix(1_790_000_000, 0))
	account = id.New(time.Unix(1_790_000_001, 0))
	common  = deployment.Common{Base: base, Alias: "service", Now: time.Now,
		Signer: caller.NewSigner("an internal secret of 32 characters", time.Now)}
)

// testGateway is a gateway on a socket, in front of fake services.
type testGateway struct {
	*Gateway
	address  string
	http     *http.Client
	keys     *fakeOAuth
	tenants  *fakeDirectory
	ahead    atomic.Int64   // nanoseconds that the clock is ahead
	stopped  atomic.Int64   // when the clock was stopped, in Unix nanoseconds; 0: it runs
	prepare  func(*Gateway) // before it serves
	services map[string]*fakeService
}

// option changes the gateway of a test before it starts.
type option func(*Config, *testGateway)

func openGateway(t testing.TB, settings ...option) *testGateway {
	t.Helper()
	s := &testGateway{keys: newFakeOAuth(), services: map[string]*fakeService{}}
	cfg := Config{Common: common, Keys: s.keys, ClientSuffix: "apps.localhost", Tenant: Limit{InFlight: 100}, Users: Limit{InFlight: 100}, Address: Limit{InFlight: 20}, Upstreams: Upstreams{}}
	for _, name := range deployment.Services {
		cfg.Upstreams[name] = s.service(t, name)
	}
	cfg.Common.Now = func() time.Time {
		now := time.Now()
		if at := s.stopped.Load(); at != 0 {
			now = time.Unix(0, at)
		}
		return now.Add(time.Duration(s.ahead.Load()))
	}
	s.tenants = &fakeDirectory{log: cache.NewLog()}
	cfg.Tenants = directoryapi.NewTenantGate("test.tenants", s.tenants, cfg.Common.Now)
	for _, set := range settings {
		set(&cfg, s)
	}
	var err error
	if s.Gateway, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	if s.prepare != nil {
		s.prepare(s.Gateway)
	}
	s.settle()
	s.serve(t, cfg.Proxied)
	return s
}

// settle asks for the changes, and lets so much time pass that answers are kept from then on.
func (s *testGateway) settle() {
	s.ahead.Add(int64(time.Second))
	_, _ = s.apiKeys.answers.Peek(context.Background(), "")
	_ = s.cfg.Tenants.Check(context.Background(), tenant)
	s.ahead.Add(int64(time.Second))
}

func (s *testGateway) serve(t testing.TB, plain bool) {
	t.Helper()
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener := closedOnce{socket, sync.OnceValue(socket.Close)}
	s.address = listener.Addr().String()
	use := func() *tls.Certificate { return &certificate }
	if plain {
		use = nil
	}
	ended := make(chan error, 1)
	go func() { ended <- s.HTTP.Listener(s.Listen(listener, use)) }()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "localhost"}, MaxIdleConnsPerHost: 200, DisableCompression: true}
	s.http = &http.Client{Transport: transport, Timeout: testTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := listener.Close(); err != nil {
			t.Errorf("close the listener: %v", err)
		}
		if err := <-ended; err != nil {
			t.Errorf("the gateway ended: %v", err)
		}
		s.awaitConnections()
		ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
		defer cancel()
		if err := s.HTTP.ShutdownWithContext(ctx); err != nil {
			t.Errorf("stop the gateway: %v", err)
		}
	})
}

// closedOnce is a listener that may be closed again.
type closedOnce struct {
	net.Listener
	close func() error
}

func (l closedOnce) Close() error { return l.close() }

// awaitConnections waits for a moment until all connections of a gateway that accepts
// no more are closed. Its shutdown closes the rest, and looks for that only ten
// times a second.
func (s *testGateway) awaitConnections() {
	const interval = 100 * time.Millisecond
	server := s.HTTP.Server() // counts the listener too, and subtracts it even where it is closed
	for end := time.Now().Add(interval); server.GetOpenConnectionsCount() >= 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
}

// fakeService is a service behind the gateway: an application of the same kind as the real
// services. It answers with the request that it received, or with the handler of the test.
type fakeService struct {
	name   string
	mu     sync.Mutex
	answer func(*fiber.Ctx) error
	seen   []echo
	calls  atomic.Int64
}

// echo is a request that a service received.
type echo struct {
	Service string              `json:"service"`
	Method  string              `json:"method"`
	Target  string              `json:"target"`
	Body    string              `json:"body"`
	Headers map[string][]string `json:"headers"`
	Caller  caller.Caller       `json:"caller"`
	caller  caller.Caller       // with Ended, which is no text
}

func (s *testGateway) service(t testing.TB, name string) *rpc.Upstream {
	fake := &fakeService{name: name}
	s.services[name] = fake
	app := rest.NewFiber(func(c *fiber.Ctx, err error) error { return rest.Fail(c, base, err) })
	app.Use(fake.handle)
	return rpc.LocalUpstream(name, app.Handler())
}

func (f *fakeService) handle(c *fiber.Ctx) error {
	f.calls.Add(1)
	who, err := common.Signer.Verify(c.Request().Header.Peek(caller.Header))
	if err != nil {
		return err
	}
	e := echo{Service: f.name, Method: c.Method(), Target: string(c.Request().Header.RequestURI()), Body: string(c.Request().Body()), Headers: map[string][]string{}, Caller: who, caller: who}
	for name, value := range c.Request().Header.All() {
		e.Headers[string(name)] = append(e.Headers[string(name)], string(value))
	}
	f.mu.Lock()
	f.seen = append(f.seen, e)
	answer := f.answer
	f.mu.Unlock()
	if answer != nil {
		return answer(c)
	}
	return rest.OK(c, e)
}

// setHandler sets how the service answers.
func (f *fakeService) setHandler(answer func(*fiber.Ctx) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = answer
}

// setAnswers makes the service answer with JSON by path and query.
func (f *fakeService) setAnswers(answers map[string]string) {
	f.setHandler(func(c *fiber.Ctx) error {
		body, ok := answers[strings.TrimPrefix(string(c.Request().Header.RequestURI()), "/v1")]
		if !ok {
			return apierr.NotFound
		}
		c.Set(fiber.HeaderContentType, rest.MIME)
		return c.SendString(body)
	})
}

// requests returns the requests that the service received so far.
func (f *fakeService) requests() []echo {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]echo(nil), f.seen...)
}

// fakeDirectory is the directory service with the status of the tenants of the tests.
type fakeDirectory struct {
	directoryapi.API
	calls atomic.Int64
	log   *cache.Log

	status sync.Map // of tenants, by id; without one they are enabled
}

func (d *fakeDirectory) set(tenant id.ID, status string) {
	d.status.Store(tenant, status)
	d.log.Append(tenant)
}

func (d *fakeDirectory) Tenant(_ context.Context, in directoryapi.Ref) (directoryapi.Tenant, error) {
	d.calls.Add(1)
	status, _ := d.status.LoadOrStore(in.ID, directoryapi.Enabled)
	return directoryapi.Tenant{ID: in.ID, Status: status.(string)}, nil
}

func (d *fakeDirectory) AccessChanges(_ context.Context, after cache.Position) (cache.Page, error) {
	return d.log.After(after), nil
}

// fakeOAuth is the OAuth service with the API keys of the tests.
type fakeOAuth struct {
	oauthapi.API // of which the gateway calls no other method

	mu     sync.Mutex
	keys   map[string]oauthapi.Key
	secret map[string]string
	nonces map[string]bool
	calls  atomic.Int64 // of Authenticate

	verified atomic.Int64 // calls of VerifySignature
	log      *cache.Log
	silent   atomic.Bool // the feed is behind

	answer func(context.Context, oauthapi.Authenticate) (oauthapi.Key, error)
}

func newFakeOAuth() *fakeOAuth {
	b := &fakeOAuth{keys: map[string]oauthapi.Key{}, secret: map[string]string{}, nonces: map[string]bool{}, log: cache.NewLog()}
	b.add(keyID, keySecret, tenant)
	return b
}

func (b *fakeOAuth) add(name, secret string, tenant id.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keys[name] = oauthapi.Key{TenantID: tenant, ID: name, AccountID: account, Status: "ENABLED", DependsOn: []id.ID{resourceOf(name), account}}
	b.secret[name] = secret
	b.log.Append(resourceOf(name))
}

func (b *fakeOAuth) remove(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.keys, name)
	b.log.Append(resourceOf(name))
}

// resourceOf returns the id under which the changes of an API key are reported.
func resourceOf(name string) id.ID {
	digest := sha256.Sum256([]byte(name))
	return id.ID(digest[:16])
}

func (b *fakeOAuth) AccessChanges(_ context.Context, after cache.Position) (cache.Page, error) {
	if b.silent.Load() {
		return cache.Page{Behind: true}, nil
	}
	return b.log.After(after), nil
}

// setAuthenticate replaces Authenticate.
func (b *fakeOAuth) setAuthenticate(answer func(context.Context, oauthapi.Authenticate) (oauthapi.Key, error)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answer = answer
}

func (b *fakeOAuth) Authenticate(ctx context.Context, in oauthapi.Authenticate) (oauthapi.Key, error) {
	b.calls.Add(1)
	b.mu.Lock()
	answer := b.answer
	b.mu.Unlock()
	if answer != nil {
		return answer(ctx, in)
	}
	return b.lookUp(in)
}

func (b *fakeOAuth) lookUp(in oauthapi.Authenticate) (oauthapi.Key, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key, ok := b.keys[in.ID]
	if !ok || b.secret[in.ID] != in.Secret.Reveal() {
		return oauthapi.Key{}, apierr.Unauthorized
	}
	return key, nil
}

// VerifySignature checks signature and nonce as the OAuth service does.
func (b *fakeOAuth) VerifySignature(_ context.Context, in oauthapi.VerifySignature) (oauthapi.Key, error) {
	b.verified.Add(1)
	b.mu.Lock()
	defer b.mu.Unlock()
	key, ok := b.keys[in.ID]
	if !ok || signaturetest.Sign(in, secure.Secret(b.secret[in.ID])).Signature != in.Signature || b.nonces[in.ID+in.Nonce] {
		return oauthapi.Key{}, apierr.Unauthorized
	}
	b.nonces[in.ID+in.Nonce] = true
	return key, nil
}

func (b *fakeOAuth) ManagementKey(_ context.Context, in oauthapi.ManagementKey) (oauthapi.Key, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key, ok := b.keys[in.ID]
	if !ok {
		return oauthapi.Key{}, apierr.Unauthorized
	}
	return key, nil
}

func (b *fakeOAuth) EnsureKey(context.Context, oauthapi.EnsureKey) (oauthapi.Key, error) {
	return oauthapi.Key{}, apierr.Internal
}

// call is one request of a client.
type call struct {
	method, path, body string
	header             http.Header // Authorization is added unless it is there, even as nil
}

// answer is what the client got.
type answer struct {
	t      testing.TB
	status int
	header http.Header
	body   []byte
}

func (s *testGateway) do(t testing.TB, c call) answer {
	t.Helper()
	a, err := s.try(t, c)
	if err != nil {
		t.Fatalf("%s %s: %v", c.method, c.path, err)
	}
	return a
}

func (s *testGateway) try(t testing.TB, c call) (answer, error) {
	scheme := "https"
	if s.cfg.Proxied {
		scheme = "http"
	}
	request, err := http.NewRequestWithContext(context.Background(), c.method, scheme+"://"+s.address, strings.NewReader(c.body))
	if err != nil {
		return answer{}, err
	}
	if c.body == "" {
		request.Body, request.ContentLength = nil, 0
	}
	request.URL.Opaque = "//" + s.address + c.path // as it is: the client cleans nothing
	for name, values := range c.header {
		request.Header[name] = values
	}
	request.Host = c.header.Get("Host")
	if _, set := c.header["Authorization"]; !set {
		request.SetBasicAuth(keyID, keySecret)
	}
	if c.body != "" && request.Header.Get("Content-Type") == "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := s.http.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return answer{t, response.StatusCode, response.Header, body}, err
}

func (s *testGateway) get(t testing.TB, path string) answer {
	t.Helper()
	return s.do(t, call{method: http.MethodGet, path: path})
}

func (s *testGateway) post(t testing.TB, path, body string) answer {
	t.Helper()
	return s.do(t, call{method: http.MethodPost, path: path, body: body})
}

// anonymous is the header of a client without a key.
func anonymous() http.Header { return http.Header{"Authorization": nil} }

// basicAuth returns the header Authorization with another API key.
func basicAuth(id, secret string) http.Header {
	request := http.Request{Header: http.Header{}}
	request.SetBasicAuth(id, secret)
	return request.Header
}

// echo decodes the request that the service received.
func (a answer) echo() (e echo) {
	a.t.Helper()
	a.want(200)
	if err := json.Unmarshal(a.body, &e); err != nil {
		a.t.Fatalf("the answer is no echo: %s", a.body)
	}
	return e
}

func (a answer) want(status int) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("the status is %d, want %d: %s", a.status, status, a.body)
	}
	return a
}

// wantError checks an error body: six members, the same request id in it and
// in the header.
func (a answer) wantError(status, code int) answer {
	a.t.Helper()
	a.want(status)
	var body map[string]any
	if err := json.Unmarshal(a.body, &body); err != nil {
		a.t.Fatalf("the error body is not JSON: %q", a.body)
	}
	for _, name := range []string{"status", "code", "message", "developerMessage", "moreInfo", "requestId"} {
		if body[name] == nil || body[name] == "" {
			a.t.Errorf("the error body lacks %s: %s", name, a.body)
		}
	}
	if len(body) != 6 {
		a.t.Errorf("the error body has other members: %s", a.body)
	}
	if body["status"] != float64(status) || body["code"] != float64(code) {
		a.t.Errorf("the error is %v/%v, want %d/%d: %s", body["status"], body["code"], status, code, a.body)
	}
	if id := a.header.Get("Service-Request-Id"); id == "" || id != body["requestId"] {
		a.t.Errorf("the header names the request %q, the body %q", id, body["requestId"])
	}
	if kind := a.header.Get("Content-Type"); kind != rest.MIME {
		a.t.Errorf("the error body has the type %q", kind)
	}
	return a
}

// wantClientError checks the error body of a Client API: the message, and beside it
// the status or at its token endpoints an error.
func (a answer) wantClientError(status int, member string) {
	a.t.Helper()
	a.want(status)
	var body map[string]any
	if err := json.Unmarshal(a.body, &body); err != nil || len(body) != 2 || body["message"] == "" || body[member] == nil {
		a.t.Errorf("the error body is %s", a.body)
	}
	if member == "status" && body["status"] != float64(status) {
		a.t.Errorf("the error body of a %d is %s", status, a.body)
	}
}

// dial opens a connection for a test that writes its own HTTP.
func (s *testGateway) dial(t testing.TB) net.Conn {
	t.Helper()
	var conn net.Conn
	var err error
	if s.cfg.Proxied {
		conn, err = net.Dial("tcp", s.address)
	} else {
		conn, err = tls.Dial("tcp", s.address, &tls.Config{RootCAs: roots, ServerName: "localhost"})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(testTimeout)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// raw sends bytes on a connection of its own and reads one answer.
func (s *testGateway) raw(t testing.TB, format string, args ...any) answer {
	t.Helper()
	conn := s.dial(t)
	text := fmt.Sprintf(format, args...)
	go func() { _, _ = io.WriteString(conn, text) }()
	return readAnswer(t, bufio.NewReader(conn))
}

func readAnswer(t testing.TB, from *bufio.Reader) answer {
	t.Helper()
	response, err := http.ReadResponse(from, nil)
	if err != nil {
		t.Fatalf("read the answer: %v", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("read the answer: %v", err)
	}
	return answer{t, response.StatusCode, response.Header, body}
}

// requestHead returns the first lines of an HTTP request with a valid API key.
func requestHead(method, target string) string {
	return method + " " + target + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: " + basicAuth(keyID, keySecret).Get("Authorization") + "\r\n"
}

// eventually waits for a condition.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(testTimeout); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("this never became true: %s", what)
		}
	}
}

var (
	served      = certtest.Now("localhost")
	certificate = served.TLS()
	roots       = served.Roots()
)

func compactJSON(t testing.TB, text []byte) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Compact(&out, text); err != nil {
		t.Fatalf("not JSON: %s", text)
	}
	return out.String()
}

// logBuffer has the log of the gateways of this process.
type logBuffer struct {
	mu    sync.Mutex
	lines []string
}

func (j *logBuffer) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, string(line))
	return len(line), nil
}

// has counts the lines that contain a text.
func (j *logBuffer) has(text string) (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, line := range j.lines {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

var logs = func() *logBuffer {
	j := &logBuffer{}
	slog.SetDefault(slog.New(slog.NewJSONHandler(j, nil)))
	return j
}()

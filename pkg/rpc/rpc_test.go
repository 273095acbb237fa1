package rpc_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/rpc"
)

var signer = caller.NewSigner("a secret that is long enough for this", time.Now)

type question struct {
	Text string `json:"text"`
}

type reply struct {
	Text   string        `json:"text"`
	Caller caller.Caller `json:"caller"`
}

// replica serves one contract method on an address of its own.
func replica(t *testing.T, answer func(context.Context, question) (reply, error)) (address string, stop func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + listener.Addr().String(), serve(t, listener, answer)
}

func serve(t *testing.T, listener net.Listener, answer func(context.Context, question) (reply, error)) (stop func()) {
	t.Helper()
	app := rest.New(rest.Config{Service: "test", Base: "https://localhost/v1", Signer: signer})
	rpc.Serve(rest.Contract(app), "test.Ask", answer)
	done := make(chan error, 1)
	go func() { done <- app.Listener(listener) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			if err := app.ShutdownWithTimeout(time.Second); err != nil {
				t.Log(err) // keep-alive connections are cut
			}
			_ = listener.Close() // also when it had not begun to serve yet
			<-done
		})
	}
	t.Cleanup(stop)
	return stop
}

func ask(ctx context.Context, t *testing.T, peer rpc.Peer, text string) (reply, error) {
	t.Helper()
	return rpc.Call[question, reply](ctx, peer, "test.Ask", question{text})
}

func peerOf(t *testing.T, addresses ...string) rpc.Peer {
	t.Helper()
	upstream, err := rpc.NewUpstream("test", addresses)
	if err != nil {
		t.Fatal(err)
	}
	return rpc.Peer{Upstream: upstream, Signer: signer}
}

func echo(ctx context.Context, q question) (reply, error) {
	return reply{q.Text, caller.From(ctx)}, nil
}

func TestACallCarriesItsCallerAndItsAnswer(t *testing.T) {
	address, _ := replica(t, echo)
	want := caller.Caller{Tenant: id.New(time.Now()), Key: "K1", RequestID: "r1"}
	got, err := ask(caller.Into(t.Context(), want), t, peerOf(t, address), "hello")
	if err != nil || got.Text != "hello" || got.Caller != want {
		t.Fatalf("Call = %+v, %v", got, err)
	}
}

func TestAnErrorOfTheCatalogueCrossesTheWire(t *testing.T) {
	address, _ := replica(t, func(context.Context, question) (reply, error) {
		return reply{}, apierr.WrongPassword.Because("the password is wrong").With("error", "invalid_request").WithLocation("https://localhost/v1/accounts/1")
	})
	_, err := ask(t.Context(), t, peerOf(t, address), "")
	refusal := apierr.From(err)
	if !errors.Is(err, apierr.WrongPassword) || refusal.Reason != "the password is wrong" || refusal.Fields["error"] != "invalid_request" ||
		refusal.Location != "https://localhost/v1/accounts/1" || refusal.Message != apierr.WrongPassword.Message {
		t.Fatalf("Call = %v", err)
	}
}

func TestAFaultOfThePeerShowsNothing(t *testing.T) {
	address, _ := replica(t, func(context.Context, question) (reply, error) { panic("a secret detail") })
	if _, err := ask(t.Context(), t, peerOf(t, address), ""); !errors.Is(err, apierr.Internal) || apierr.From(err).Reason != "" {
		t.Fatalf("Call = %v", err)
	}
}

func TestAReplicaThatGoesIsReplacedByAnother(t *testing.T) {
	var first, second atomic.Int32
	one, stop := replica(t, count(&first))
	two, _ := replica(t, count(&second))
	peer := peerOf(t, one, two)
	for range 20 {
		if _, err := ask(t.Context(), t, peer, ""); err != nil {
			t.Fatal(err)
		}
	}
	if first.Load() == 0 || second.Load() == 0 {
		t.Fatalf("the replicas answered %d and %d requests: the work is not shared", first.Load(), second.Load())
	}
	stop()
	for range 20 {
		if _, err := ask(t.Context(), t, peer, ""); err != nil {
			t.Fatalf("with one replica gone: %v", err)
		}
	}
}

func TestNoReplicaIsUnavailable(t *testing.T) {
	address, stop := replica(t, echo)
	peer := peerOf(t, address)
	stop()
	if _, err := ask(t.Context(), t, peer, ""); !errors.Is(err, apierr.Unavailable) || apierr.From(err).RetryAfter == 0 {
		t.Fatalf("Call = %v", err)
	}
}

func TestACallEndsAtItsDeadline(t *testing.T) {
	release := make(chan struct{})
	address, _ := replica(t, func(context.Context, question) (reply, error) { <-release; return reply{}, nil })
	defer close(release)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := ask(ctx, t, peerOf(t, address), ""); !errors.Is(err, apierr.Unavailable) {
		t.Fatalf("Call = %v", err)
	}
}

func TestACallWithinTheProcess(t *testing.T) {
	app := rest.New(rest.Config{Service: "test", Base: "https://localhost/v1", Signer: signer})
	rpc.Serve(rest.Contract(app), "test.Ask", echo)
	peer := rpc.Peer{Upstream: rpc.LocalUpstream("test", app.Handler()), Signer: signer}
	if got, err := ask(t.Context(), t, peer, "hello"); err != nil || got.Text != "hello" {
		t.Fatalf("Call = %+v, %v", got, err)
	}
}

func TestCallsWithinTheProcessDoNotMix(t *testing.T) {
	app := rest.New(rest.Config{Service: "test", Base: "https://localhost/v1", Signer: signer})
	rpc.Serve(rest.Contract(app), "test.Ask", echo)
	peer := rpc.Peer{Upstream: rpc.LocalUpstream("test", app.Handler()), Signer: signer}
	var group sync.WaitGroup
	for n := range 50 {
		group.Go(func() {
			who := caller.Caller{Tenant: id.New(time.Now()), RequestID: strconv.Itoa(n)}
			for length := range 20 {
				text := strings.Repeat(strconv.Itoa(n)+" ", length*length)
				if got, err := ask(caller.Into(t.Context(), who), t, peer, text); err != nil || got.Text != text || got.Caller != who {
					t.Errorf("call %d was answered %+v, %v", n, got, err)
				}
			}
		})
	}
	group.Wait()
}

func TestAddressesAreChecked(t *testing.T) {
	for _, addresses := range [][]string{nil, {"localhost:80"}, {"https://localhost"}, {"http://"}, {"ftp://localhost:80"}} {
		if _, err := rpc.NewUpstream("test", addresses); err == nil {
			t.Errorf("NewUpstream(%v) succeeded", addresses)
		}
	}
}

// severed is a listener whose connections can be cut as by the death of its
// process.
type severed struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func (s *severed) Accept() (net.Conn, error) {
	conn, err := s.Listener.Accept()
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.conns = append(s.conns, conn)
	}
	return conn, err
}

func (s *severed) cut(t *testing.T) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, conn := range s.conns {
		_ = conn.Close()
	}
}

func TestManyKeptConnectionsToADeadReplicaFailNoCall(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dying := &severed{Listener: listener}
	// Answers wait for each other, so that there is a connection for each.
	const callers = 16
	var barrier sync.WaitGroup
	barrier.Add(callers)
	meet := true
	answer := func(ctx context.Context, q question) (reply, error) {
		if meet {
			barrier.Done()
			barrier.Wait()
		}
		return echo(ctx, q)
	}
	app := rest.New(rest.Config{Service: "test", Base: "https://localhost/v1", Signer: signer})
	rpc.Serve(rest.Contract(app), "test.Ask", answer)
	done := make(chan error, 1)
	go func() { done <- app.Listener(dying) }()
	living, _ := replica(t, answer)
	peer := peerOf(t, "http://"+listener.Addr().String(), living)
	together := func() {
		t.Helper()
		var group sync.WaitGroup
		for range callers {
			group.Go(func() {
				if _, err := ask(t.Context(), t, peer, ""); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
	}
	together()
	meet = false
	dying.cut(t)
	<-done
	for range 5 {
		together()
	}
}

// A replica that closes its connections is about to end.
func TestAReplicaThatDrainsGetsNoFurtherCall(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var drained, answered atomic.Int32
	draining := rest.New(rest.Config{Service: "test", Base: "https://localhost/v1", Signer: signer})
	rpc.Serve(rest.Contract(draining), "test.Ask", echo)
	handler := draining.Server().Handler
	draining.Server().Handler = func(c *fasthttp.RequestCtx) {
		drained.Add(1)
		handler(c)
		c.SetConnectionClose()
	}
	go func() { _ = draining.Listener(listener) }()
	t.Cleanup(func() { _ = draining.Shutdown() })
	living, _ := replica(t, func(ctx context.Context, q question) (reply, error) {
		answered.Add(1)
		return echo(ctx, q)
	})
	peer := peerOf(t, "http://"+listener.Addr().String(), living)
	for range 20 {
		if _, err := ask(t.Context(), t, peer, ""); err != nil {
			t.Fatal(err)
		}
	}
	if drained.Load() != 1 || answered.Load() != 19 {
		t.Errorf("the replica that drains had %d calls, the other %d", drained.Load(), answered.Load())
	}
}

package rpc_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/rpc"
)

const name = "directory.test"

// dns answers an upstream's lookups of a name, and has its clock.
type dns struct {
	mu        sync.Mutex
	addresses []string
	err       error
	now       time.Time
}

func (d *dns) set(err error, addresses ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.addresses, d.err = addresses, err
	d.now = d.now.Add(rpc.LookupInterval)
}

func (d *dns) lookup(_ context.Context, asked string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if asked != name {
		return nil, errors.New("another name is looked up: " + asked)
	}
	return d.addresses, d.err
}

func (d *dns) clock() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now
}

// named is a peer whose replicas have one name, and the port of the first.
func named(t *testing.T, scheme string, first net.Listener) (rpc.Peer, *dns) {
	t.Helper()
	_, port, err := net.SplitHostPort(first.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	peer := peerOf(t, scheme+"://"+net.JoinHostPort(name, port))
	d := &dns{now: time.Now()}
	peer.Upstream.Resolve(d.lookup, d.clock)
	return peer, d
}

// listen listens at an address of loopback, at the port of another listener where it has to be the same.
func listen(t *testing.T, host string, other net.Listener) *severed {
	t.Helper()
	port := "0"
	if other != nil {
		_, port, _ = net.SplitHostPort(other.Addr().String())
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		t.Fatal(err)
	}
	return &severed{Listener: listener}
}

// loops makes calls in four loops and returns how many failed.
func loops(t *testing.T, peer rpc.Peer, calls int) (failed int32) {
	t.Helper()
	var group sync.WaitGroup
	var failures atomic.Int32
	for range 4 {
		group.Go(func() {
			for range calls {
				if _, err := ask(t.Context(), t, peer, ""); err != nil {
					failures.Add(1)
				}
			}
		})
	}
	group.Wait()
	return failures.Load()
}

func count(n *atomic.Int32) func(context.Context, question) (reply, error) {
	return func(ctx context.Context, q question) (reply, error) { n.Add(1); return echo(ctx, q) }
}

func TestEachAddressOfANameIsAReplica(t *testing.T) {
	var first, second atomic.Int32
	one := listen(t, "127.0.0.1", nil)
	two := listen(t, "127.0.0.2", one)
	serve(t, one, count(&first))
	app := rest.New(rest.Config{Service: "test", Base: "https://localhost/v1", Signer: signer})
	rpc.Serve(rest.Contract(app), "test.Ask", count(&second))
	done := make(chan error, 1)
	go func() { done <- app.Listener(two) }()
	peer, d := named(t, "http", one)
	d.set(nil, "127.0.0.1")
	if failed := loops(t, peer, 20); failed > 0 || first.Load() != 80 {
		t.Fatalf("with one replica %d of 80 calls failed, and it had %d", failed, first.Load())
	}

	// A replica is added, and gets its share once the name was looked up again.
	d.set(nil, "127.0.0.1", "127.0.0.2")
	for second.Load() == 0 {
		if _, err := ask(t.Context(), t, peer, ""); err != nil {
			t.Fatal(err)
		}
	}
	before := second.Load()
	if failed := loops(t, peer, 100); failed > 0 || second.Load()-before < 100 {
		t.Errorf("%d of 400 calls failed, and the replica that was added had %d, want half of an even share", failed, second.Load()-before)
	}

	// It is killed while DNS has it: its calls go to the other.
	two.cut(t)
	<-done
	if failed := loops(t, peer, 20); failed > 0 {
		t.Errorf("%d of 80 calls failed after one of two replicas was killed", failed)
	}
	// A name that cannot be looked up keeps its addresses.
	d.set(errors.New("no DNS server answers"))
	if failed := loops(t, peer, 20); failed > 0 {
		t.Errorf("%d of 80 calls failed without DNS", failed)
	}
}

func TestTheAddressesOfANameAreLookedUpBeforeACallAfterALongPause(t *testing.T) {
	var first, second atomic.Int32
	one := listen(t, "127.0.0.1", nil)
	two := listen(t, "127.0.0.2", one)
	serve(t, one, count(&first))
	serve(t, two, count(&second))
	peer, d := named(t, "http", one)
	d.set(nil, "127.0.0.1")
	if failed := loops(t, peer, 1); failed > 0 {
		t.Fatalf("%d calls failed", failed)
	}
	for range 12 {
		d.set(nil, "127.0.0.2")
	}
	if failed := loops(t, peer, 1); failed > 0 || first.Load() != 4 || second.Load() != 4 {
		t.Errorf("%d calls failed; the former replica had %d, the one in its place %d, want 4 each", failed, first.Load(), second.Load())
	}
}

func TestTheCertificateOfAReplicaIsForItsName(t *testing.T) {
	listener := listen(t, "127.0.0.1", nil)
	var asked atomic.Pointer[string]
	serve(t, tls.NewListener(listener, &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			asked.Store(&hello.ServerName)
			return &trusted, nil
		},
	}), echo)
	peer, d := named(t, "https", listener)
	d.set(nil, "127.0.0.1")
	if _, err := ask(t.Context(), t, peer, ""); err != nil || *asked.Load() != name {
		t.Errorf("the call is %v", err)
	}
}

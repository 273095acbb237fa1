package harness

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// balancer hands every TCP connection to one of several addresses in turn, and
// to the next one when that refuses: the load balancer that stands before the
// gateways of a deployment. TLS passes through it untouched.
type balancer struct {
	listener net.Listener
	targets  []string
	turn     atomic.Uint32
	leftOut  atomic.Value // the address that gets no new connection; ""
	carrying sync.WaitGroup
	open     context.Context // until cut ends all connections
	cut      context.CancelFunc
}

func startBalancer(listen string, targets []string) (*balancer, error) {
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("start the load balancer: %w", err)
	}
	b := &balancer{listener: listener, targets: targets}
	b.open, b.cut = context.WithCancel(context.Background())
	b.carrying.Go(b.accept)
	return b, nil
}

// leaveOut makes new connections go past an address, or past none.
func (b *balancer) leaveOut(address string) { b.leftOut.Store(address) }

func (b *balancer) accept() {
	for {
		client, err := b.listener.Accept()
		if err != nil { // closed
			return
		}
		b.carrying.Go(func() { b.carry(client) })
	}
}

func (b *balancer) carry(client net.Conn) {
	defer client.Close()
	first := int(b.turn.Add(1))
	for i := range b.targets {
		target := b.targets[(first+i)%len(b.targets)]
		if target == b.leftOut.Load() {
			continue
		}
		server, err := net.DialTimeout("tcp", target, 2*time.Second)
		if err != nil {
			continue
		}
		defer server.Close()
		defer context.AfterFunc(b.open, func() { client.Close(); server.Close() })()
		var back sync.WaitGroup
		back.Go(func() { pass(client, server) })
		pass(server, client)
		back.Wait()
		return
	}
}

// pass copies until the source ends, and then closes the other side for writing. A connection
// that broke is closed whole, so that the other direction ends too.
func pass(to, from net.Conn) {
	if _, err := io.Copy(to, from); err != nil {
		to.Close()
		from.Close()
		return
	}
	if half, ok := to.(*net.TCPConn); ok {
		_ = half.CloseWrite() // it may be closed already
	}
}

// close cuts all connections and returns when nothing is carried any more.
func (b *balancer) close() error {
	err := b.listener.Close()
	b.cut()
	b.carrying.Wait()
	return err
}

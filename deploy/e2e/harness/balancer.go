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

// balancer is the TCP load balancer in front of the gateways of a deployment. It
// connects every client to one of several addresses in turn (round robin), and to the
// next address when that refuses. It does not terminate TLS.
type balancer struct {
	listener   net.Listener
	targets    []string
	next       atomic.Uint32
	excluded   atomic.Value // the address that gets no new connection; "" for none
	forwarding sync.WaitGroup
	open       context.Context // until closeAll ends all connections
	closeAll   context.CancelFunc
}

func startBalancer(listen string, targets []string) (*balancer, error) {
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("start the load balancer: %w", err)
	}
	b := &balancer{listener: listener, targets: targets}
	b.open, b.closeAll = context.WithCancel(context.Background())
	b.forwarding.Go(b.accept)
	return b, nil
}

// exclude sends no new connections to an address; "" excludes none.
func (b *balancer) exclude(address string) { b.excluded.Store(address) }

func (b *balancer) accept() {
	for {
		client, err := b.listener.Accept()
		if err != nil { // closed
			return
		}
		b.forwarding.Go(func() { b.forward(client) })
	}
}

func (b *balancer) forward(client net.Conn) {
	defer client.Close()
	first := int(b.next.Add(1))
	for i := range b.targets {
		target := b.targets[(first+i)%len(b.targets)]
		if target == b.excluded.Load() {
			continue
		}
		server, err := net.DialTimeout("tcp", target, 2*time.Second)
		if err != nil {
			continue
		}
		defer server.Close()
		defer context.AfterFunc(b.open, func() { client.Close(); server.Close() })()
		var back sync.WaitGroup
		back.Go(func() { copyToEnd(client, server) })
		copyToEnd(server, client)
		back.Wait()
		return
	}
}

// copyToEnd copies until the source ends, and then closes the destination for writing. After an
// error it closes both connections, so that the copy in the other direction ends too.
func copyToEnd(to, from net.Conn) {
	if _, err := io.Copy(to, from); err != nil {
		to.Close()
		from.Close()
		return
	}
	if half, ok := to.(*net.TCPConn); ok {
		_ = half.CloseWrite() // it may be closed already
	}
}

// close closes all connections and returns when their goroutines have ended.
func (b *balancer) close() error {
	err := b.listener.Close()
	b.closeAll()
	b.forwarding.Wait()
	return err
}

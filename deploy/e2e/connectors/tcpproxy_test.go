package connectors_test

import (
	"net"
	"sync"
	"testing"
)

// tcpProxy forwards TCP connections to a server, and holds all bytes back while a test
// simulates a network outage.
type tcpProxy struct {
	address string // where it listens, host:port
	target  string

	mu      sync.Mutex
	open    chan struct{} // closed at restore; nil while nothing is held back
	arrived chan struct{} // closed at the first bytes that are held back
	conns   []net.Conn
}

// newTCPProxy listens until the test ends.
func newTCPProxy(t *testing.T, target string) *tcpProxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &tcpProxy{address: listener.Addr().String(), target: target}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { l.serve(conn) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		l.restore()
		l.mu.Lock()
		for _, conn := range l.conns {
			_ = conn.Close()
		}
		l.mu.Unlock()
		running.Wait()
	})
	return l
}

func (l *tcpProxy) serve(from net.Conn) {
	to, err := net.Dial("tcp", l.target)
	if err != nil {
		_ = from.Close()
		return
	}
	l.mu.Lock()
	l.conns = append(l.conns, from, to)
	l.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { l.copy(to, from) })
	both.Go(func() { l.copy(from, to) })
	both.Wait()
}

// copy ends with the first of the two connections.
func (l *tcpProxy) copy(to, from net.Conn) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		l.pass(n)
		if _, failed := to.Write(buffer[:n]); err != nil || failed != nil {
			return
		}
	}
}

// pass returns when n bytes may be forwarded.
func (l *tcpProxy) pass(n int) {
	l.mu.Lock()
	open := l.open
	if open != nil && n > 0 && l.arrived != nil {
		close(l.arrived)
		l.arrived = nil
	}
	l.mu.Unlock()
	if open != nil {
		<-open
	}
}

// cut holds all bytes back from now on, and returns a channel that is closed when the
// first ones arrive.
func (l *tcpProxy) cut() (arrived <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open, l.arrived = make(chan struct{}), make(chan struct{})
	return l.arrived
}

// restore forwards the bytes that were held back, and all later ones.
func (l *tcpProxy) restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open != nil {
		close(l.open)
		l.open = nil
	}
}

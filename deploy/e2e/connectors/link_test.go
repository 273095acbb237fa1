package connectors_test

import (
	"net"
	"sync"
	"testing"
)

// link passes TCP connections on to a server, and holds what they carry while a test
// wants the network to be cut.
type link struct {
	address string // where it listens, host:port
	target  string

	mu      sync.Mutex
	open    chan struct{} // closed when the network is back; nil while nothing is held
	arrived chan struct{} // closed at the first bytes that are held
	conns   []net.Conn
}

// newLink listens until the test ends.
func newLink(t *testing.T, target string) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{address: listener.Addr().String(), target: target}
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

func (l *link) serve(from net.Conn) {
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
func (l *link) copy(to, from net.Conn) {
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

// pass returns when n bytes may go on.
func (l *link) pass(n int) {
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

// cut holds everything from now on, and returns a channel that is closed when there
// is something to hold.
func (l *link) cut() (arrived <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open, l.arrived = make(chan struct{}), make(chan struct{})
	return l.arrived
}

// restore lets everything go on.
func (l *link) restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open != nil {
		close(l.open)
		l.open = nil
	}
}

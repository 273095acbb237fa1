package mailbox

import (
	"errors"
	"net"
	"sync"
	"time"
)

// connections tracks every open SMTP connection for a graceful shutdown: the server library
// waits until each client disconnects, which a client that reuses its connection for the
// next mail does not do.
type connections struct {
	mu        sync.Mutex
	listeners []net.Listener
	open      map[*connection]struct{}
	serving   sync.WaitGroup
	draining  bool
}

// track returns a listener whose connections are tracked, or nil when draining. The caller
// calls serving.Done when it has stopped accepting.
func (c *connections) track(inner net.Listener) net.Listener {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.draining {
		return nil
	}
	c.listeners = append(c.listeners, inner)
	c.serving.Add(1)
	return listener{Listener: inner, connections: c}
}

// address is the address that accepts mail, or an empty string.
func (c *connections) address() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.listeners) == 0 {
		return ""
	}
	return c.listeners[0].Addr().String()
}

// drain accepts no more connections and ends the idle ones. A connection that receives a
// message stays open to the end of that message.
func (c *connections) drain() {
	c.mu.Lock()
	c.draining = true
	for _, listener := range c.listeners {
		_ = listener.Close() // The accepting loop reports the same error.
	}
	for connection := range c.open {
		if !connection.receiving {
			_ = connection.Conn.SetReadDeadline(past)
		}
	}
	c.mu.Unlock()
	c.serving.Wait()
}

// closeAll closes every connection, also those that receive a message.
func (c *connections) closeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for connection := range c.open {
		_ = connection.Conn.Close()
	}
}

// past is a deadline that makes a pending read fail at once.
var past = time.Unix(1, 0)

type listener struct {
	net.Listener
	connections *connections
}

func (l listener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.connections.mu.Lock()
	defer l.connections.mu.Unlock()
	conn := &connection{Conn: inner, connections: l.connections}
	l.connections.open[conn] = struct{}{}
	return conn, nil
}

// Close may come from drain and from the server; the second finds nothing to do.
func (l listener) Close() error {
	if err := l.Listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// connection is one SMTP client.
type connection struct {
	net.Conn
	connections *connections
	receiving   bool // guarded by connections.mu
}

// SetReadDeadline is called by the server before it waits for a command. When
// draining it sets a deadline in the past: the client gets a 421 and retries later.
func (c *connection) SetReadDeadline(deadline time.Time) error {
	c.connections.mu.Lock()
	defer c.connections.mu.Unlock()
	if c.connections.draining && !c.receiving {
		deadline = past
	}
	return c.Conn.SetReadDeadline(deadline)
}

// setReceiving marks whether the connection is receiving a message.
func (c *connection) setReceiving(receiving bool) {
	c.connections.mu.Lock()
	defer c.connections.mu.Unlock()
	c.receiving = receiving
}

func (c *connection) Close() error {
	c.connections.mu.Lock()
	delete(c.connections.open, c)
	c.connections.mu.Unlock()
	return c.Conn.Close()
}

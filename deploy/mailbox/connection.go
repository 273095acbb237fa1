package mailbox

import (
	"errors"
	"net"
	"sync"
	"time"
)

// connections knows every open SMTP connection, because the server library
// waits at its end until each client leaves by itself, which a client that
// keeps its connection for the next mail does not do.
type connections struct {
	mu        sync.Mutex
	listeners []net.Listener
	open      map[*connection]struct{}
	serving   sync.WaitGroup
	draining  bool
}

// listen takes a listener under its care, or returns nil when draining. The
// caller calls serving.Done when it accepts no more.
func (c *connections) listen(inner net.Listener) net.Listener {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.draining {
		return nil
	}
	c.listeners = append(c.listeners, inner)
	c.serving.Add(1)
	return listener{Listener: inner, connections: c}
}

// address returns where mail is accepted, or an empty string.
func (c *connections) address() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.listeners) == 0 {
		return ""
	}
	return c.listeners[0].Addr().String()
}

// drain accepts no more connections and ends the idle ones. One that receives
// a message goes on to the end of that message.
func (c *connections) drain() {
	c.mu.Lock()
	c.draining = true
	for _, listener := range c.listeners {
		_ = listener.Close() // What it would report, the accepting loop reports too.
	}
	for connection := range c.open {
		if !connection.receiving {
			_ = connection.Conn.SetReadDeadline(past)
		}
	}
	c.mu.Unlock()
	c.serving.Wait()
}

// cut closes every connection, whatever it does.
func (c *connections) cut() {
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
// draining there is nothing to wait for: the client gets a 421 and tries again
// later.
func (c *connection) SetReadDeadline(deadline time.Time) error {
	c.connections.mu.Lock()
	defer c.connections.mu.Unlock()
	if c.connections.draining && !c.receiving {
		deadline = past
	}
	return c.Conn.SetReadDeadline(deadline)
}

// receive marks the connection as receiving a message, or no longer so.
func (c *connection) receive(receiving bool) {
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

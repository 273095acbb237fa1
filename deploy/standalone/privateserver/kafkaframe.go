package privateserver

import (
	"encoding/binary"
	"fmt"
	"net"
)

// maxKafkaFrame bounds a request to the embedded broker. A batch of events is at most 1 MB.
const maxKafkaFrame = 8 << 20

// listenKafka listens for the embedded broker, which reserves as many bytes as the first four of a
// request announce, also before the client has authenticated itself: a request that announces more
// than maxKafkaFrame ends its connection.
func listenKafka(network, address string) (net.Listener, error) {
	listener, err := net.Listen(network, address) //nolint:noctx // the broker has no context
	if err != nil {
		return nil, err
	}
	return frameListener{listener}, nil
}

type frameListener struct{ net.Listener }

func (l frameListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &frameConn{Conn: conn}, nil
}

// frameConn follows the requests on a connection: four bytes with the length of what follows.
type frameConn struct {
	net.Conn
	size []byte // of the four bytes, those that were read
	left uint32 // what is left of the request
}

func (c *frameConn) Read(p []byte) (int, error) {
	if c.left > 0 {
		n, err := c.Conn.Read(p[:min(len(p), int(c.left))])
		c.left -= uint32(n) //nolint:gosec // at most left
		return n, err
	}
	n, err := c.Conn.Read(p[:min(len(p), 4-len(c.size))])
	c.size = append(c.size, p[:n]...)
	if len(c.size) < 4 {
		return n, err
	}
	c.left, c.size = binary.BigEndian.Uint32(c.size), c.size[:0]
	if c.left > maxKafkaFrame {
		return 0, fmt.Errorf("a request of %d bytes is larger than %d", c.left, maxKafkaFrame)
	}
	return n, err
}

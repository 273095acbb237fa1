// Package connection has the connections of clients: TLS, what fasthttp hides of the headers, and the end of a
// connection whose client is still sending.
package connection

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sync/semaphore"

	"github.com/doorward/doorward/pkg/rest"
)

// The limits of reading and discarding (lingering close) when a connection is closed whose client
// is still sending. The reading is paced and limited to a few connections at a time, because many
// clients that send large bodies could otherwise keep the processors busy.
const (
	lingerTimeout     = 2 * time.Second
	lingerBytes       = 2 * rest.MaxBody // bytes of one connection
	lingerPause       = 20 * time.Millisecond
	lingerBurst       = lingerBytes / int(lingerTimeout/lingerPause)
	lingerConnections = 8
)

// cipherSuites are those of TLS 1.2 that RFC 9325, section 4.2, recommends, as the FAPI 2.0 Security Profile demands.
// Those of TLS 1.3 are not configured.
var cipherSuites = []uint16{
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
}

// Config is what a listener needs.
type Config struct {
	Server *fasthttp.Server
	// PlainHTTPResponse returns the answer to a client that does not use TLS.
	PlainHTTPResponse func() []byte
	// Certificate returns the certificate of a handshake; nil: a load balancer terminates TLS, and the connections are
	// plain. Clients are asked for no certificate.
	Certificate func(*tls.ClientHelloInfo) *tls.Certificate
}

// Listen returns the HTTPS listener: it terminates TLS on the connections of a listener.
//
// Accept does not wait: the handshake, and the refusal of a client that does not use TLS,
// run in the goroutine of the connection.
func Listen(plain net.Listener, cfg Config) net.Listener {
	l := &listener{Listener: plain, Config: cfg, lingering: semaphore.NewWeighted(lingerConnections)}
	if cfg.Certificate != nil {
		l.config = &tls.Config{MinVersion: tls.VersionTLS12, CipherSuites: cipherSuites,
			NextProtos: []string{"http/1.1"}}
		l.config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			return cfg.Certificate(hello), nil
		}
	}
	return l
}

type listener struct {
	net.Listener
	Config
	config    *tls.Config
	lingering *semaphore.Weighted // bounds the connections in discard
}

func (l *listener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &Conn{Conn: raw, raw: &replayConn{Conn: raw}, listener: l, headerWatcher: NewHeaderWatcher()}
	if l.config != nil {
		c.Conn = tls.Server(c.raw, l.config)
	}
	return c, nil
}

// Conn is the connection of a client: TLS over raw, or raw itself behind a load
// balancer. fasthttp calls Handshake before it reads, because Conn has this method.
type Conn struct {
	net.Conn
	raw           *replayConn
	listener      *listener
	lingering     atomic.Bool
	first         []byte // the first byte of the first request, which Handshake has read
	headerWatcher HeaderWatcher
}

var errPlainHTTP = errors.New("a client does not use TLS")

// Handshake performs the TLS handshake and waits for the first byte of the first request: a
// client may open a connection before it has a request, and headerTimeout starts with the
// first byte. fasthttp does the same between requests, and can close an idle connection when
// it stops.
func (c *Conn) Handshake() error {
	if err := c.handshakeTLS(); err != nil {
		return err
	}
	if err := c.SetReadDeadline(time.Now().Add(c.listener.Server.IdleTimeout)); err != nil {
		return err
	}
	first := make([]byte, 1)
	if _, err := io.ReadFull(c.Conn, first); err != nil {
		return err
	}
	c.first = first
	return nil
}

// handshakeTLS performs the TLS handshake. It first reads one byte of the client: a TLS record
// begins with 22, and a plain HTTP request, which is refused, with a letter. The server has set
// the deadlines.
func (c *Conn) handshakeTLS() error {
	secure, ok := c.Conn.(*tls.Conn)
	if !ok {
		return nil
	}
	first := make([]byte, 1)
	if _, err := io.ReadFull(c.raw.Conn, first); err != nil {
		return err
	}
	if letter := first[0] | 0x20; 'a' <= letter && letter <= 'z' {
		_, _ = c.raw.Write(c.listener.PlainHTTPResponse())
		c.Linger()
		return errPlainHTTP
	}
	c.raw.first = first
	return secure.Handshake()
}

// HeaderWatcher detects folded header lines (obs-fold, RFC 9112, section 5.2) in the bytes of a
// request, for the check of the framing in gateway/framing.go. fasthttp joins folded lines in its buffer before a
// handler can see them, and may take the bytes that are left for another request.
type HeaderWatcher struct {
	FoldedLine   bool // a line began with a space or a tab
	lineStart    bool // the next byte begins a line
	emptyLine    bool // the line so far has nothing but a carriage return
	anyLine      bool // there was a line that is not empty
	headersEnded bool // the empty line behind the headers was read
}

// NewHeaderWatcher returns the state before the first line.
func NewHeaderWatcher() HeaderWatcher { return HeaderWatcher{lineStart: true, emptyLine: true} }

// Watch reads the next bytes of the request.
func (h *HeaderWatcher) Watch(text []byte) {
	for _, b := range text {
		if h.headersEnded {
			return
		}
		switch {
		case b == '\n':
			h.headersEnded = h.anyLine && h.emptyLine
			h.lineStart, h.emptyLine = true, true
			continue
		case b == '\r':
		default:
			h.FoldedLine = h.FoldedLine || h.lineStart && (b == ' ' || b == '\t')
			h.emptyLine, h.anyLine = false, true
		}
		h.lineStart = false
	}
}

// Read reads from the client, and shows the bytes to the HeaderWatcher.
func (c *Conn) Read(into []byte) (int, error) {
	n := copy(into, c.first)
	c.first = c.first[n:]
	var err error
	if n == 0 {
		n, err = c.Conn.Read(into)
	}
	c.headerWatcher.Watch(into[:n])
	return n, err
}

// Write writes an answer to the client. The next bytes of the client begin another request, unless
// the answer is 100 Continue: then they are the body.
func (c *Conn) Write(answer []byte) (int, error) {
	if !bytes.HasPrefix(answer, []byte("HTTP/1.1 100 ")) {
		c.headerWatcher = NewHeaderWatcher()
	}
	return c.Conn.Write(answer)
}

// ConnectionState returns the result of the TLS handshake.
func (c *Conn) ConnectionState() tls.ConnectionState {
	if secure, ok := c.Conn.(*tls.Conn); ok {
		return secure.ConnectionState()
	}
	return tls.ConnectionState{}
}

// HasFoldedLine reports whether the headers of the request have a folded line.
func (c *Conn) HasFoldedLine() bool { return c.headerWatcher.FoldedLine }

// Linger makes Close read and discard for a while what the client is still sending (lingering
// close): else the client would see a reset connection in place of the answer.
func (c *Conn) Linger() { c.lingering.Store(true) }

// Close closes the connection; after Linger it first discards what the client still sends.
func (c *Conn) Close() error {
	if c.lingering.Swap(false) {
		for _, layer := range []net.Conn{c.Conn, c.raw.Conn} {
			if half, ok := layer.(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			}
		}
		c.discard()
	}
	return c.Conn.Close()
}

// discard reads and discards what the client sends, within the limits of lingering.
func (c *Conn) discard() {
	ctx, cancel := context.WithTimeout(context.Background(), lingerTimeout)
	defer cancel()
	if c.listener.lingering.Acquire(ctx, 1) != nil {
		return
	}
	defer c.listener.lingering.Release(1)
	deadline, _ := ctx.Deadline()
	_ = c.raw.SetReadDeadline(deadline)
	buffer := make([]byte, 32<<10)
	for inBurst, total := 0, 0; total < lingerBytes; {
		n, err := c.raw.Read(buffer)
		if err != nil {
			return
		}
		total += n
		if inBurst += n; inBurst >= lingerBurst {
			inBurst = 0
			select {
			case <-ctx.Done():
				return
			case <-time.After(lingerPause):
			}
		}
	}
}

// replayConn is a connection that reads the bytes of first before those of the connection.
type replayConn struct {
	net.Conn
	first []byte
}

func (u *replayConn) Read(into []byte) (int, error) {
	if len(u.first) == 0 {
		return u.Conn.Read(into)
	}
	n := copy(into, u.first)
	u.first = u.first[n:]
	return n, nil
}

package gateway

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"golang.org/x/sync/semaphore"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/rest"
)

// What is read and discarded of clients that are still sending when their
// connection is closed. It is paced, and of a few connections at a time: many
// clients that send large bodies as fast as they can would else keep the
// processors busy.
const (
	lingerTimeout     = 2 * time.Second
	lingerBytes       = 2 * rest.MaxBody // of one connection
	lingerPause       = 20 * time.Millisecond
	lingerBurst       = lingerBytes / int(lingerTimeout/lingerPause)
	lingerConnections = 8
)

// Listen puts TLS on a listener. Without a certificate the connections stay
// plain, for a load balancer that terminates TLS.
//
// Accept returns at once: the handshake, and the refusal of a client that does
// not use TLS, belong to the connection's own goroutine.
func (g *Gateway) Listen(plain net.Listener, certificate func() *tls.Certificate) net.Listener {
	l := &listener{Listener: plain, refusal: g.refusal, server: g.HTTP.Server(), lingering: semaphore.NewWeighted(lingerConnections)}
	if certificate != nil {
		l.config = &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
		l.config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if g.domains != nil {
				if own := g.domains.of(hello); own != nil {
					return own, nil
				}
			}
			return certificate(), nil
		}
	}
	return l
}

type listener struct {
	net.Listener
	config    *tls.Config
	refusal   func() []byte
	server    *fasthttp.Server
	lingering *semaphore.Weighted // connections whose bytes are discarded
}

func (l *listener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: raw, raw: &unread{Conn: raw}, listener: l, headers: newHeaders}
	if l.config != nil {
		c.Conn = tls.Server(c.raw, l.config)
	}
	return c, nil
}

// conn is the connection of a client: TLS over raw, or raw behind a load
// balancer. The server calls Handshake before it reads, because conn has it.
type conn struct {
	net.Conn
	raw       *unread
	listener  *listener
	lingering atomic.Bool
	first     []byte // what Handshake read of the first request
	headers   headers
}

var errPlainHTTP = errors.New("gateway: a client does not use TLS")

// Handshake shakes hands and waits for the first byte of the first request: a
// client may open a connection before it has a request for it, and the time for
// the headers starts with their first byte. The server does the same between
// requests, and can close the connection meanwhile when it stops.
func (c *conn) Handshake() error {
	if err := c.shakeHands(); err != nil {
		return err
	}
	if err := c.SetReadDeadline(time.Now().Add(c.listener.server.IdleTimeout)); err != nil {
		return err
	}
	first := make([]byte, 1)
	if _, err := io.ReadFull(c.Conn, first); err != nil {
		return err
	}
	c.first = first
	return nil
}

// shakeHands performs the TLS handshake, after a look at the first byte that the client sends.
// A TLS record begins with 22, a plain HTTP request with a letter. The server has set
// deadlines.
func (c *conn) shakeHands() error {
	secure, ok := c.Conn.(*tls.Conn)
	if !ok {
		return nil
	}
	first := make([]byte, 1)
	if _, err := io.ReadFull(c.raw.Conn, first); err != nil {
		return err
	}
	if letter := first[0] | 0x20; 'a' <= letter && letter <= 'z' {
		_, _ = c.raw.Write(c.listener.refusal())
		c.linger()
		return errPlainHTTP
	}
	c.raw.first = first
	return secure.Handshake()
}

// headers watches the headers of a request for lines that go on in the next
// one. The server puts such lines together in its buffer before anybody sees
// them, and may take what that leaves at the end for another request.
type headers struct {
	folded bool // a line began with a blank
	fresh  bool // at the start of a line
	empty  bool // nothing but a carriage return on the line so far
	begun  bool // a line was not empty
	ended  bool // the empty line was seen
}

// newHeaders is the state before the first line.
var newHeaders = headers{fresh: true, empty: true}

func (h *headers) watch(text []byte) {
	for _, b := range text {
		if h.ended {
			return
		}
		switch {
		case b == '\n':
			h.ended = h.begun && h.empty
			h.fresh, h.empty = true, true
			continue
		case b == '\r':
		default:
			h.folded = h.folded || h.fresh && (b == ' ' || b == '\t')
			h.empty, h.begun = false, true
		}
		h.fresh = false
	}
}

// Read passes on what the client sends.
func (c *conn) Read(into []byte) (int, error) {
	n := copy(into, c.first)
	c.first = c.first[n:]
	var err error
	if n == 0 {
		n, err = c.Conn.Read(into)
	}
	c.headers.watch(into[:n])
	return n, err
}

// Write answers the client: what it sends next is another request, but for the
// body for which it got 100 Continue.
func (c *conn) Write(answer []byte) (int, error) {
	if !bytes.HasPrefix(answer, []byte("HTTP/1.1 100 ")) {
		c.headers = newHeaders
	}
	return c.Conn.Write(answer)
}

// ConnectionState returns what was negotiated in the TLS handshake.
func (c *conn) ConnectionState() tls.ConnectionState {
	if secure, ok := c.Conn.(*tls.Conn); ok {
		return secure.ConnectionState()
	}
	return tls.ConnectionState{}
}

// linger makes Close wait a little for a client that is still sending: closed
// at once, it would see a reset connection in place of the answer.
func (c *conn) linger() { c.lingering.Store(true) }

func (c *conn) Close() error {
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

func (c *conn) discard() {
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

// unread is a connection whose first bytes were read already.
type unread struct {
	net.Conn
	first []byte
}

func (u *unread) Read(into []byte) (int, error) {
	if len(u.first) == 0 {
		return u.Conn.Read(into)
	}
	n := copy(into, u.first)
	u.first = u.first[n:]
	return n, nil
}

// refusal is the answer to plain HTTP.
func (g *Gateway) refusal() []byte {
	request, base := uuid.NewString(), g.cfg.Common.Base
	err := *plainHTTP
	_ = g.refusals.countAs("plain_http", &err)
	body := err.Body(base.Host()+"/errors/"+strconv.Itoa(err.Code), request)
	var out bytes.Buffer
	_, _ = fmt.Fprintf(&out, "HTTP/1.1 403 Forbidden\r\nContent-Type: %s\r\nContent-Length: %d\r\n%s: %s\r\nConnection: close\r\n\r\n%s",
		rest.MIME, len(body), g.requestHeader, request, body)
	return out.Bytes()
}

// requireTLS refuses what came to the load balancer without TLS. Only the nearest
// proxy is trusted: the last entry. Without a proxy the listener refuses it.
func (g *Gateway) requireTLS(x *exchange) error {
	if !g.cfg.Proxied {
		return nil
	}
	forwarded, _ := header(x.Request().Header.RawHeaders(), "x-forwarded-proto")
	if last := forwarded[strings.LastIndexByte(forwarded, ',')+1:]; !strings.EqualFold(strings.TrimSpace(last), "https") {
		return g.refusals.countAs("plain_http", plainHTTP)
	}
	return nil
}

// plainHTTP refuses a client that does not use TLS.
var plainHTTP = apierr.Forbidden.Because("plain HTTP is not served; send the request to the same address with https://")

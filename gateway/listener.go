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

// Listen returns the HTTPS listener: it terminates TLS on the connections of a listener.
// certificate is certificate.Certificate.Current, so that a renewed certificate is used without
// a restart; custom domains have certificates of their own (domaincertificate.go). Where certificate
// is nil, a load balancer terminates TLS and the connections are plain. Clients are asked for no
// certificate.
//
// Accept does not wait: the handshake, and the refusal of a client that does not use TLS,
// run in the goroutine of the connection.
func (g *Gateway) Listen(plain net.Listener, certificate func() *tls.Certificate) net.Listener {
	l := &listener{
		Listener: plain, plainHTTPResponse: g.plainHTTPResponse, server: g.HTTP.Server(),
		lingering: semaphore.NewWeighted(lingerConnections),
	}
	if certificate != nil {
		l.config = &tls.Config{MinVersion: tls.VersionTLS12, CipherSuites: cipherSuites, NextProtos: []string{"http/1.1"}}
		l.config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if g.domainCertificates != nil {
				if own := g.domainCertificates.forHandshake(hello); own != nil {
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
	config            *tls.Config
	plainHTTPResponse func() []byte
	server            *fasthttp.Server
	lingering         *semaphore.Weighted // bounds the connections in discard
}

func (l *listener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: raw, raw: &replayConn{Conn: raw}, listener: l, headerWatcher: newHeaderWatcher}
	if l.config != nil {
		c.Conn = tls.Server(c.raw, l.config)
	}
	return c, nil
}

// conn is the connection of a client: TLS over raw, or raw itself behind a load
// balancer. fasthttp calls Handshake before it reads, because conn has this method.
type conn struct {
	net.Conn
	raw           *replayConn
	listener      *listener
	lingering     atomic.Bool
	first         []byte // the first byte of the first request, which Handshake has read
	headerWatcher headerWatcher
}

var errPlainHTTP = errors.New("gateway: a client does not use TLS")

// Handshake performs the TLS handshake and waits for the first byte of the first request: a
// client may open a connection before it has a request, and headerTimeout starts with the
// first byte. fasthttp does the same between requests, and can close an idle connection when
// it stops.
func (c *conn) Handshake() error {
	if err := c.handshakeTLS(); err != nil {
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

// handshakeTLS performs the TLS handshake. It first reads one byte of the client: a TLS record
// begins with 22, and a plain HTTP request, which is refused, with a letter. The server has set
// the deadlines.
func (c *conn) handshakeTLS() error {
	secure, ok := c.Conn.(*tls.Conn)
	if !ok {
		return nil
	}
	first := make([]byte, 1)
	if _, err := io.ReadFull(c.raw.Conn, first); err != nil {
		return err
	}
	if letter := first[0] | 0x20; 'a' <= letter && letter <= 'z' {
		_, _ = c.raw.Write(c.listener.plainHTTPResponse())
		c.linger()
		return errPlainHTTP
	}
	c.raw.first = first
	return secure.Handshake()
}

// headerWatcher detects folded header lines (obs-fold, RFC 9112, section 5.2) in the bytes of a
// request, for checkFraming in framing.go. fasthttp joins folded lines in its buffer before a
// handler can see them, and may take the bytes that are left for another request.
type headerWatcher struct {
	foldedLine   bool // a line began with a space or a tab
	lineStart    bool // the next byte begins a line
	emptyLine    bool // the line so far has nothing but a carriage return
	anyLine      bool // there was a line that is not empty
	headersEnded bool // the empty line behind the headers was read
}

// newHeaderWatcher is the state before the first line.
var newHeaderWatcher = headerWatcher{lineStart: true, emptyLine: true}

// watch reads the next bytes of the request.
func (h *headerWatcher) watch(text []byte) {
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
			h.foldedLine = h.foldedLine || h.lineStart && (b == ' ' || b == '\t')
			h.emptyLine, h.anyLine = false, true
		}
		h.lineStart = false
	}
}

// Read reads from the client, and shows the bytes to the headerWatcher.
func (c *conn) Read(into []byte) (int, error) {
	n := copy(into, c.first)
	c.first = c.first[n:]
	var err error
	if n == 0 {
		n, err = c.Conn.Read(into)
	}
	c.headerWatcher.watch(into[:n])
	return n, err
}

// Write writes an answer to the client. The next bytes of the client begin another request, unless
// the answer is 100 Continue: then they are the body.
func (c *conn) Write(answer []byte) (int, error) {
	if !bytes.HasPrefix(answer, []byte("HTTP/1.1 100 ")) {
		c.headerWatcher = newHeaderWatcher
	}
	return c.Conn.Write(answer)
}

// ConnectionState returns the result of the TLS handshake.
func (c *conn) ConnectionState() tls.ConnectionState {
	if secure, ok := c.Conn.(*tls.Conn); ok {
		return secure.ConnectionState()
	}
	return tls.ConnectionState{}
}

// linger makes Close read and discard for a while what the client is still sending (lingering
// close): else the client would see a reset connection in place of the answer.
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

// discard reads and discards what the client sends, within the limits of lingering.
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

// plainHTTPResponse is the HTTP response to a client that does not use TLS.
func (g *Gateway) plainHTTPResponse() []byte {
	requestID, base := uuid.NewString(), g.cfg.Common.Base
	err := *plainHTTP
	_ = g.refusals.countAs("plain_http", &err)
	body := err.Body(base.Host()+"/errors/"+strconv.Itoa(err.Code), requestID)
	var out bytes.Buffer
	_, _ = fmt.Fprintf(&out, "HTTP/1.1 403 Forbidden\r\nContent-Type: %s\r\nContent-Length: %d\r\n%s: %s\r\nConnection: close\r\n\r\n%s",
		rest.MIME, len(body), g.requestHeader, requestID, body)
	return out.Bytes()
}

// requireTLS is the middleware that refuses a request that came to the load balancer without
// TLS. It reads the entry of X-Forwarded-Proto, or of Forwarded, that the first trusted proxy
// added, counted from the right; of a shorter list the first entry, because proxies further in pass
// it on. Without a proxy the listener refuses connections without TLS.
func (g *Gateway) requireTLS(rc *requestContext) error {
	if !g.cfg.Proxied {
		return nil
	}
	entries := forwardedEntries(rc.Ctx, "x-forwarded-proto", "proto")
	if len(entries) == 0 {
		return g.refusals.countAs("plain_http", plainHTTP.Because("%s; the load balancer has sent neither X-Forwarded-Proto nor Forwarded",
			plainHTTP.Reason))
	}
	if proto := entries[max(0, len(entries)-max(1, g.cfg.TrustedHops))]; !strings.EqualFold(proto, "https") {
		return g.refusals.countAs("plain_http",
			plainHTTP.Because("%s; the load balancer says that the client used %.20q", plainHTTP.Reason, proto))
	}
	return nil
}

// plainHTTP refuses a client that does not use TLS.
var plainHTTP = apierr.Forbidden.Because("plain HTTP is not served; send the request to the same address with https://")

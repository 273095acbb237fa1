package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"
)

// patience bounds one request of the generator. It is longer than the bound
// that the product sets itself, so that the product's own answer is seen.
const patience = 20 * time.Second

// subject is something that load is put on.
type subject struct {
	name string
	open func() line
}

// line carries operations one after the other. do performs the nth operation
// of a run and returns nil when it was answered as it should be.
type line interface {
	do(n uint64) error
	close()
}

// wire is one connection over TLS, kept alive, with the request and the answer
// that it uses again and again.
type wire struct {
	client  fasthttp.HostClient
	request fasthttp.Request
	answer  fasthttp.Response
}

func newWire(address string, config *tls.Config, patience time.Duration) *wire {
	return &wire{client: fasthttp.HostClient{
		Addr: address, IsTLS: true, TLSConfig: config, MaxConns: 1,
		Dial:        func(address string) (net.Conn, error) { return fasthttp.DialDualStackTimeout(address, 5*time.Second) },
		ReadTimeout: patience, WriteTimeout: patience,
		MaxIdemponentCallAttempts:     1, // a repeated request would hide a failure
		NoDefaultUserAgentHeader:      true,
		DisablePathNormalizing:        true,
		DisableHeaderNamesNormalizing: true,
	}}
}

// send makes the request that was put into w.request and holds the answer to
// one status.
func (w *wire) send(want int) error {
	if err := w.client.Do(&w.request, &w.answer); err != nil {
		return err
	}
	if got := w.answer.StatusCode(); got != want {
		body := w.answer.Body()
		return refusal{got, fmt.Sprintf("%s %s answered %d %.300s", w.request.Header.Method(), w.request.URI().Path(), got, body)}
	}
	return nil
}

func (w *wire) close() { w.client.CloseIdleConnections() }

// refusal is an answer with another status than the operation needs.
type refusal struct {
	status int
	text   string
}

func (r refusal) Error() string { return r.text }

// kindOf is the name under which a failure is counted.
func kindOf(err error) string {
	var refused refusal
	if errors.As(err, &refused) {
		return strconv.Itoa(refused.status)
	}
	var slow interface{ Timeout() bool }
	if errors.As(err, &slow) && slow.Timeout() {
		return "timeout"
	}
	return "connection"
}

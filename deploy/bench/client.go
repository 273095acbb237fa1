package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/doorward/doorward/deploy/e2e"
)

// requestTimeout is longer than the limit that the product sets itself, so that
// the product's own answer is seen.
const requestTimeout = 20 * time.Second

// browserRequest is a GET of a browser, which has no API key.
func browserRequest(address, cookie string) e2e.Request {
	return e2e.Request{Method: http.MethodGet, URL: address, Header: http.Header{"Cookie": {cookie}}, Anonymous: true}
}

// connection is one over TLS, kept alive, with a request and a response that are
// used again and again: the generator must take less of the processors than what it
// measures.
type connection struct {
	client         fasthttp.Client
	request        fasthttp.Request
	response       fasthttp.Response
	authorization  string
	session        string // token of a hosted page; each answer brings the next one
	sessionCookies string // with which the session was opened
}

func connect(config *tls.Config, authorization string) *connection {
	return &connection{authorization: authorization, client: fasthttp.Client{
		TLSConfig: config, MaxConnsPerHost: 1, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout,
		Dial: func(address string) (net.Conn, error) {
			return fasthttp.DialDualStackTimeout(address, 5*time.Second)
		},
		MaxIdemponentCallAttempts: 1, // a retry would hide a failure
		NoDefaultUserAgentHeader:  true,
		DisablePathNormalizing:    true,
	}}
}

func (c *connection) close() { c.client.CloseIdleConnections() }

// send sends a request and reads its answer, which must have the status.
func (c *connection) send(status int, r e2e.Request) error {
	c.request.Reset()
	c.request.Header.SetMethod(r.Method)
	c.request.SetRequestURI(r.URL)
	if !r.Anonymous && c.authorization != "" {
		c.request.Header.Set("Authorization", c.authorization)
	}
	for name, values := range r.Header {
		if values[0] != "" {
			c.request.Header.Set(name, values[0])
		}
	}
	body, contentType, err := e2e.EncodeBody(r.Body)
	if err != nil {
		return err
	}
	if body != nil {
		c.request.Header.SetContentType(contentType)
		c.request.SetBodyRaw(body)
	}
	if err := c.client.Do(&c.request, &c.response); err != nil {
		return err
	}
	if got := c.response.StatusCode(); got != status {
		return statusError{got, fmt.Sprintf("%s %.200s answered %d %.300s", r.Method, r.URL, got, c.response.Body())}
	}
	return nil
}

// header is a header of the last answer.
func (c *connection) header(name string) string { return string(c.response.Header.Peek(name)) }

// redirectQuery is the query of the address to which the last answer redirects; empty where it cannot be read.
func (c *connection) redirectQuery() url.Values {
	_, text, _ := strings.Cut(c.header("Location"), "?")
	query, _ := url.ParseQuery(text)
	return query
}

// cookies are those that the last answer sets, as a browser returns them.
func (c *connection) cookies() string {
	var pairs []string
	for _, set := range c.response.Header.Cookies() {
		pair, _, _ := strings.Cut(string(set), ";")
		pairs = append(pairs, pair)
	}
	return strings.Join(pairs, "; ")
}

// statusError is an answer with another status than the operation expects.
type statusError struct {
	status int
	text   string
}

func (e statusError) Error() string { return e.text }

// Kind is the status, under which the failure is counted.
func (e statusError) Kind() string { return strconv.Itoa(e.status) }

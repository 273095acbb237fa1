package main

import (
	"crypto/tls"
	"encoding/json"
	"errors"
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

// page is a request of a browser, which has no API key.
func page(address, cookie string) e2e.Request {
	return e2e.Request{Method: http.MethodGet, URL: address, Header: http.Header{"Cookie": {cookie}}, Anonymous: true}
}

// connection is one over TLS, kept alive, with a request and a response that are
// used again and again: the generator must take less of the processors than what it
// measures.
type connection struct {
	client        fasthttp.Client
	authorization string
	session       string // token of a hosted page; each answer brings the next
	request       fasthttp.Request
	response      fasthttp.Response
}

func connect(config *tls.Config, authorization string) *connection {
	return &connection{authorization: authorization, client: fasthttp.Client{
		TLSConfig: config, MaxConnsPerHost: 1, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout,
		Dial:                      func(address string) (net.Conn, error) { return fasthttp.DialDualStackTimeout(address, 5*time.Second) },
		MaxIdemponentCallAttempts: 1, // a retry would hide a failure
		NoDefaultUserAgentHeader:  true,
		DisablePathNormalizing:    true,
	}}
}

// send sends a request and reads its answer, which must have the status.
func (c *connection) send(want int, r e2e.Request) error {
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
	if form, ok := r.Body.(url.Values); ok {
		c.request.Header.SetContentType("application/x-www-form-urlencoded")
		c.request.SetBodyString(form.Encode())
	} else if r.Body != nil {
		raw, err := json.Marshal(r.Body)
		if err != nil {
			return err
		}
		c.request.Header.SetContentType("application/json")
		c.request.SetBodyRaw(raw)
	}
	if err := c.client.Do(&c.request, &c.response); err != nil {
		return err
	}
	if status := c.response.StatusCode(); status != want {
		return refusal{status, fmt.Sprintf("%s %.200s answered %d %.300s", r.Method, r.URL, status, c.response.Body())}
	}
	return nil
}

// follow gets an address that redirects, and then what it redirects to.
func (c *connection) follow(address string) error {
	if err := c.send(http.StatusFound, e2e.Get(address)); err != nil {
		return err
	}
	return c.send(http.StatusOK, e2e.Get(c.answered("Location")))
}

// answered is a header of the last answer.
func (c *connection) answered(name string) string { return string(c.response.Header.Peek(name)) }

// redirect is the query of where the last answer leads to.
func (c *connection) redirect() url.Values {
	_, text, _ := strings.Cut(c.answered("Location"), "?")
	query, _ := url.ParseQuery(text) // what cannot be read is empty
	return query
}

// cookies are those that the last answer sets, as a browser returns them.
func (c *connection) cookies() string {
	var pairs []string
	for _, set := range c.response.Header.PeekAll("Set-Cookie") {
		pair, _, _ := strings.Cut(string(set), ";")
		pairs = append(pairs, pair)
	}
	return strings.Join(pairs, "; ")
}

// object is the last answer.
func (c *connection) object() (answer e2e.Object, err error) {
	err = json.Unmarshal(c.response.Body(), &answer)
	return answer, err
}

func (c *connection) close() { c.client.CloseIdleConnections() }

// refusal is an answer that the operation does not expect.
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

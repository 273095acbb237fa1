package main

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// requestTimeout is longer than the limit that the product sets itself, so that
// the product's own answer is seen.
const requestTimeout = 20 * time.Second

// request is one request as data.
type request struct {
	method, url string
	contentType string
	body        []byte
	header      map[string]string // Authorization "" sends none, not even that of the connection
	want        int               // status of the answer
}

func get(address string) request {
	return request{method: "GET", url: address, want: fasthttp.StatusOK}
}

// page is a request of a browser, which has no API key. The answer redirects.
func page(address, cookie string) request {
	header := map[string]string{"Authorization": ""}
	if cookie != "" {
		header["Cookie"] = cookie
	}
	return request{method: "GET", url: address, header: header, want: fasthttp.StatusFound}
}

func postJSON(address string, body any, want int) request {
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err) // bodies are maps of text
	}
	return request{method: "POST", url: address, contentType: "application/json", body: raw, want: want}
}

func postForm(address string, form url.Values) request {
	body := []byte(form.Encode())
	return request{method: "POST", url: address, contentType: "application/x-www-form-urlencoded", body: body, want: fasthttp.StatusOK}
}

// connection is one over TLS, kept alive, with a request and a response that are
// used again and again.
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
func (c *connection) send(r request) error {
	c.request.Reset()
	c.request.Header.SetMethod(r.method)
	c.request.SetRequestURI(r.url)
	if _, own := r.header["Authorization"]; !own && c.authorization != "" {
		c.request.Header.Set("Authorization", c.authorization)
	}
	for name, value := range r.header {
		if value != "" {
			c.request.Header.Set(name, value)
		}
	}
	if r.body != nil {
		c.request.Header.SetContentType(r.contentType)
		c.request.SetBodyRaw(r.body)
	}
	if err := c.client.Do(&c.request, &c.response); err != nil {
		return err
	}
	if status := c.response.StatusCode(); status != r.want {
		return refusal{status, fmt.Sprintf("%s %.200s answered %d %.300s", r.method, r.url, status, c.response.Body())}
	}
	return nil
}

// sendTwice gets an address that redirects, and then what it redirects to.
func (c *connection) sendTwice(address string) error {
	first := get(address)
	first.want = fasthttp.StatusFound
	if err := c.send(first); err != nil {
		return err
	}
	return c.send(get(c.answered("Location")))
}

// answered is a header of the last answer.
func (c *connection) answered(name string) string { return string(c.response.Header.Peek(name)) }

// cookies are those that the last answer sets, as a browser returns them.
func (c *connection) cookies() string {
	var pairs []string
	for _, set := range c.response.Header.PeekAll("Set-Cookie") {
		pair, _, _ := strings.Cut(string(set), ";")
		pairs = append(pairs, pair)
	}
	return strings.Join(pairs, "; ")
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

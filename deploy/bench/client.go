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

// request is one operation as data.
type request struct {
	method, url string
	contentType string
	body        []byte
	cookie      string
	anonymous   bool   // without an API key
	want        int    // status of the answer
	location    string // what the answer's Location must contain
	follow      bool   // send a GET to the Location too, which must answer 200
}

func get(address string) request {
	return request{method: "GET", url: address, want: fasthttp.StatusOK}
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
	client        fasthttp.HostClient
	base          string // put before addresses that begin with a slash
	authorization string
	request       fasthttp.Request
	response      fasthttp.Response
}

func connect(address string, config *tls.Config, authorization string, timeout time.Duration) *connection {
	return &connection{base: "https://" + address, authorization: authorization, client: fasthttp.HostClient{
		Addr: address, IsTLS: true, TLSConfig: config, MaxConns: 1,
		Dial:        func(address string) (net.Conn, error) { return fasthttp.DialDualStackTimeout(address, 5*time.Second) },
		ReadTimeout: timeout, WriteTimeout: timeout,
		MaxIdemponentCallAttempts:     1, // a retry would hide a failure
		NoDefaultUserAgentHeader:      true,
		DisablePathNormalizing:        true,
		DisableHeaderNamesNormalizing: true,
	}}
}

func (c *connection) send(r request) error {
	c.request.Reset()
	c.request.Header.SetMethod(r.method)
	if strings.HasPrefix(r.url, "/") {
		r.url = c.base + r.url
	}
	c.request.SetRequestURI(r.url)
	if c.authorization != "" && !r.anonymous {
		c.request.Header.Set("Authorization", c.authorization)
	}
	if r.cookie != "" {
		c.request.Header.Set("Cookie", r.cookie)
	}
	if r.body != nil {
		c.request.Header.SetContentType(r.contentType)
		c.request.SetBodyRaw(r.body)
	}
	if err := c.client.Do(&c.request, &c.response); err != nil {
		return err
	}
	location := string(c.response.Header.Peek("Location"))
	if status := c.response.StatusCode(); status != r.want || !strings.Contains(location, r.location) {
		return refusal{status, fmt.Sprintf("%s %.200s answered %d %.200s %.300s", r.method, r.url, status, location, c.response.Body())}
	}
	if r.follow {
		return c.send(get(location))
	}
	return nil
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

package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"strings"
	"time"
)

// Client calls one deployment with one API key. It follows no redirects and retries
// no requests, so that a scenario sees every answer as it was given.
type Client struct {
	Key  Key
	HTTP *http.Client

	anonymous bool // presents no key
	unchecked bool
}

// OpenClient reads the key of a file and returns a client for it.
func OpenClient(keyFile string) (*Client, error) {
	key, err := ReadKey(keyFile)
	if err != nil {
		return nil, err
	}
	return NewClient(key)
}

// NewClient trusts the certificate authority of the key's caFile and, when it
// names one, no other.
func NewClient(key Key) (*Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if key.CAFile != "" {
		pem, err := os.ReadFile(key.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read the certificate authority: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("no certificate found in %s", key.CAFile)
		}
	}
	return &Client{
		Key: key,
		HTTP: &http.Client{
			Timeout: time.Minute,
			Transport: &http.Transport{
				DialContext:           dialLoopback,
				TLSClientConfig:       config,
				MaxIdleConnsPerHost:   512,
				IdleConnTimeout:       30 * time.Second,
				ExpectContinueTimeout: 10 * time.Second,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// dialLoopback connects to names below localhost on this machine, as browsers do
// (RFC 6761, section 6.3); not every resolver knows them.
func dialLoopback(ctx context.Context, network, address string) (net.Conn, error) {
	if host, port, err := net.SplitHostPort(address); err == nil && strings.HasSuffix(host, ".localhost") {
		address = net.JoinHostPort("localhost", port)
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

// Browser returns a client without a key that keeps cookies, as a browser does. It
// shares the connections of c.
func (c *Client) Browser() *Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		panic("a jar without options cannot fail: " + err.Error())
	}
	other, shared := *c, *c.HTTP
	shared.Jar = jar
	other.HTTP, other.anonymous = &shared, true
	return &other
}

// With returns a client for the same deployment that presents another key.
// It shares the connections of c.
func (c *Client) With(id, secret string) *Client {
	other := *c
	other.Key.ID, other.Key.Secret = id, secret
	return &other
}

// Unchecked returns a client that does not check its calls against the OpenAPI description,
// which takes too long for load tests. It shares the connections of c.
func (c *Client) Unchecked() *Client {
	other := *c
	other.unchecked = true
	return &other
}

// TLS returns the configuration that raw connections to the deployment need.
func (c *Client) TLS() *tls.Config {
	config := c.HTTP.Transport.(*http.Transport).TLSClientConfig.Clone()
	config.ServerName = c.base().Hostname()
	return config
}

// Address is the host and port to which raw connections are made.
func (c *Client) Address() string {
	base := c.base()
	if base.Port() == "" {
		return base.Hostname() + ":443"
	}
	return base.Host
}

func (c *Client) base() *url.URL {
	base, err := url.Parse(c.Key.BaseURL)
	if err != nil {
		panic("ReadKey lets no unreadable baseUrl through: " + err.Error())
	}
	return base
}

// Request is one call. Only Method and URL are needed.
type Request struct {
	Method string

	// URL is absolute, or a path below the base address such as
	// "/tenants/current".
	URL string

	Header http.Header

	// Body is sent as JSON; url.Values are sent as a form; a []byte or an
	// io.Reader as it is, with the Content-Type of Header.
	Body any

	// Anonymous leaves the Authorization header out.
	Anonymous bool
}

// Get is the request that reads an address.
func Get(address string) Request { return Request{Method: http.MethodGet, URL: address} }

// Post is the request that sends a body to an address.
func Post(address string, body any) Request {
	return Request{Method: http.MethodPost, URL: address, Body: body}
}

// Delete is the request that deletes what is at an address.
func Delete(address string) Request { return Request{Method: http.MethodDelete, URL: address} }

// UserAddressHeader is the header in which a client states the address of its user.
const UserAddressHeader = "Service-User-Address"

// From is the same call on behalf of an end user at an IP address.
func (r Request) From(address string) Request {
	header := http.Header{}
	maps.Copy(header, r.Header)
	header.Set(UserAddressHeader, address)
	r.Header = header
	return r
}

// Answer is a response, read to its end.
type Answer struct {
	Request string // method and address, for messages
	Status  int
	Header  http.Header
	Body    []byte
}

// String shows the answer in one line of a failed test.
func (a Answer) String() string {
	body := string(a.Body)
	if len(body) > 600 {
		body = body[:600] + "…"
	}
	return fmt.Sprintf("%s answered %d %s", a.Request, a.Status, body)
}

// Object reads the body as one JSON object.
func (a Answer) Object() (Object, error) {
	var object Object
	if err := json.Unmarshal(a.Body, &object); err != nil {
		return nil, fmt.Errorf("%s: not a JSON object: %w", a, err)
	}
	return object, nil
}

// Do makes the call. An error means that no whole answer came back; a refusal
// by the service is an Answer like any other.
func (c *Client) Do(ctx context.Context, r Request) (Answer, error) {
	address := r.URL
	if strings.HasPrefix(address, "/") {
		address = c.Key.BaseURL + address
	}
	answer := Answer{Request: r.Method + " " + shortened(address)}
	body, streamed := r.Body.(io.Reader)
	sent, contentType, err := EncodeBody(r.Body)
	if err != nil {
		return answer, fmt.Errorf("%s: %w", answer.Request, err)
	}
	if !streamed && sent != nil {
		body = bytes.NewReader(sent)
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, address, body)
	if err != nil {
		return answer, fmt.Errorf("%s: %w", answer.Request, err)
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	if !r.Anonymous && !c.anonymous {
		request.SetBasicAuth(c.Key.ID, c.Key.Secret)
	}
	maps.Copy(request.Header, r.Header)
	response, err := c.HTTP.Do(request)
	if err != nil {
		return answer, fmt.Errorf("%s: %w", answer.Request, err)
	}
	defer response.Body.Close()
	answer.Status, answer.Header = response.StatusCode, response.Header
	if answer.Body, err = io.ReadAll(response.Body); err != nil {
		return answer, fmt.Errorf("%s: read the answer: %w", answer.Request, err)
	}
	if c.unchecked {
		return answer, nil
	}
	recordSecrets(address, answer)
	return answer, checkAgainstOpenAPI(r, sent, address, answer)
}

// EncodeBody encodes the Body of a Request. It returns nil for an io.Reader, which it does not read.
func EncodeBody(body any) (sent []byte, contentType string, err error) {
	switch body := body.(type) {
	case nil, io.Reader:
		return nil, "", nil
	case []byte:
		return body, "", nil
	case url.Values:
		return []byte(body.Encode()), "application/x-www-form-urlencoded", nil
	}
	if sent, err = json.Marshal(body); err != nil {
		return nil, "", fmt.Errorf("encode the body: %w", err)
	}
	return sent, "application/json", nil
}

// shortened keeps messages readable when an address holds a token.
func shortened(address string) string {
	if len(address) <= 160 {
		return address
	}
	return address[:120] + "…" + address[len(address)-20:]
}

// Package client is the Go client (SDK) of the management API. Its types, and a method for each
// operation, are generated from the OpenAPI description (pkg/openapi). A link in a resource is a
// value of the linked resource, of which only Href is set unless the request has expanded the link.
// Methods accept both the id and the href of a resource.
//
//	c, err := client.New("https://localhost:8443/v1", key, client.TrustFile("ca.pem"))
//	app, err := c.CreateApplication(ctx, client.NewApplication{Name: "Shop"}, url.Values{"createDirectory": {"true"}})
//	for account, err := range c.ListApplicationAccounts(ctx, app.Href, url.Values{"status": {"ENABLED"}}) { … }
//	client.Is(err, 2001) // the name is taken
//
// Get, Create, Update, Delete and All send a request to a URL of an answer.
package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

//go:generate go run ./internal/generate client.json operations.gen.go
//go:generate env GOWORK=off go tool -modfile ../../.ci/tools/go.mod oapi-codegen -config generate.yaml client.json
//go:generate rm client.json

const (
	attempts        = 4                // of one request
	maxWait         = 20 * time.Second // between two of them
	idleConnTimeout = 60 * time.Second // below that of the server, which must not close a connection in use
)

// Credentials are an API key of an administrator.
type Credentials struct{ ID, Secret string }

// Client sends requests to one deployment. It is safe for concurrent use.
type Client struct {
	base string
	key  Credentials
	http *http.Client
	wait func(context.Context, time.Duration) error
}

// Option changes how a client connects.
type Option func(*Client) error

// TrustFile trusts only the CA certificates of a PEM file, such as that of standalone.
func TrustFile(name string) Option {
	return func(c *Client) error {
		pem, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("read the certificate authority: %w", err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return fmt.Errorf("%s has no certificate in PEM", name)
		}
		transport := newTransport()
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
		c.http.Transport = transport
		return nil
	}
}

func newTransport() *http.Transport {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.IdleConnTimeout = idleConnTimeout
	return transport
}

// HTTPClient sets the http.Client that sends the requests.
func HTTPClient(h *http.Client) Option {
	return func(c *Client) error { c.http = h; return nil }
}

// New makes a client for the management API at a base address such as
// "https://id.example.com/v1".
func New(base string, key Credentials, options ...Option) (*Client, error) {
	c := &Client{base: strings.TrimSuffix(base, "/"), key: key,
		http: &http.Client{Timeout: time.Minute, Transport: newTransport()},
		wait: wait}
	for _, option := range options {
		if err := option(c); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Error makes the generated type an error.
func (e *Error) Error() string {
	return fmt.Sprintf("%d/%d: %s (request %s)", e.Status, e.Code, e.DeveloperMessage, e.RequestId)
}

// Is reports whether an error of the API has a code.
func Is(err error, code int) bool {
	var refusal *Error
	return errors.As(err, &refusal) && refusal.Code == code
}

// Get returns the resource at an address, which is an href or a path below the base URL.
func Get[T any](ctx context.Context, c *Client, address string) (*T, error) {
	return send[T](ctx, c, http.MethodGet, address, nil)
}

// Create creates a resource in the collection at an address.
func Create[T any](ctx context.Context, c *Client, address string, body any) (*T, error) {
	return send[T](ctx, c, http.MethodPost, address, body)
}

// Update changes the resource at an address. Members that the body does not have stay unchanged.
func Update[T any](ctx context.Context, c *Client, address string, body any) (*T, error) {
	return send[T](ctx, c, http.MethodPost, address, body)
}

// Delete deletes the resource at an address. It returns nil if the resource does not exist.
func Delete(ctx context.Context, c *Client, address string) error {
	_, err := send[struct{}](ctx, c, http.MethodDelete, address, nil)
	return err
}

// at returns the path of segments, each of which may be the href of a resource.
func at(segments ...string) string {
	var path strings.Builder
	for _, segment := range segments {
		path.WriteString("/" + url.PathEscape(segment[strings.LastIndexByte(segment, '/')+1:]))
	}
	return path.String()
}

// merged merges queries; the last value of a parameter applies.
func merged(queries []url.Values) url.Values {
	all := url.Values{}
	for _, query := range queries {
		maps.Copy(all, query)
	}
	return all
}

func call[T any](ctx context.Context, c *Client, method, path string, body any, queries []url.Values) (*T, error) {
	if query := merged(queries); len(query) > 0 {
		path += "?" + query.Encode()
	}
	return send[T](ctx, c, method, path, body)
}

func call0(ctx context.Context, c *Client, method, path string, body any, query []url.Values) error {
	_, err := call[struct{}](ctx, c, method, path, body, query)
	return err
}

func all[T any](ctx context.Context, c *Client, path string, queries []url.Values) iter.Seq2[*T, error] {
	return All[T](ctx, c, path, merged(queries))
}

// Collection is a page of a collection, also in place of an expanded link to a collection.
type Collection[T any] struct {
	Href       Href       `json:"href"` // of the collection, without a query
	CreatedAt  CreatedAt  `json:"createdAt"`
	ModifiedAt ModifiedAt `json:"modifiedAt"`
	Offset     int        `json:"offset"` // number of items before the page
	Limit      int        `json:"limit"`  // most items on the page
	Size       int        `json:"size"`   // number of all items that match
	Items      []T        `json:"items"`
}

// All iterates over a collection, page by page (pagination). The query searches, sorts and expands.
func All[T any](ctx context.Context, c *Client, address string, query url.Values) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		q := url.Values{"limit": {"100"}}
		maps.Copy(q, query)
		for offset := 0; ; {
			q.Set("offset", strconv.Itoa(offset))
			p, err := Get[Collection[*T]](ctx, c, address+"?"+q.Encode())
			if err != nil {
				yield(nil, err)
				return
			}
			for _, item := range p.Items {
				if !yield(item, nil) {
					return
				}
			}
			if offset += len(p.Items); len(p.Items) == 0 || offset >= p.Size {
				return
			}
		}
	}
}

// send sends a request and decodes its answer. It retries after 429 and 503, with the delay of
// Retry-After or with back-off.
func send[T any](ctx context.Context, c *Client, method, address string, body any) (*T, error) {
	if strings.HasPrefix(address, "/") {
		address = c.base + address
	}
	content, contentType, err := encoded(body)
	if err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		response, err := c.try(ctx, method, address, content, contentType)
		if err != nil {
			return nil, err
		}
		answer, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil {
			return nil, fmt.Errorf("read the answer of %s %s: %w", method, address, err)
		}
		if busy(response.StatusCode) && attempt < attempts {
			if err := c.wait(ctx, delay(response.Header.Get("Retry-After"), attempt)); err != nil {
				return nil, err
			}
			continue
		}
		return read[T](response.StatusCode, answer)
	}
}

// encoded returns a body as a form, for url.Values, or as JSON.
func encoded(body any) (content []byte, contentType string, err error) {
	switch body := body.(type) {
	case nil:
		return nil, "", nil
	case url.Values:
		return []byte(body.Encode()), "application/x-www-form-urlencoded", nil
	}
	content, err = json.Marshal(body)
	return content, "application/json", err
}

func (c *Client) try(
	ctx context.Context, method, address string, content []byte, contentType string,
) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	// A redirect stays on the host, so that it has the credentials too.
	request.SetBasicAuth(c.key.ID, c.key.Secret)
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	return c.http.Do(request)
}

func busy(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

// delay returns the delay of a retry: Retry-After, or exponential back-off.
func delay(retryAfter string, attempt int) time.Duration {
	if seconds, err := strconv.Atoi(retryAfter); err == nil {
		return min(time.Duration(seconds)*time.Second, maxWait)
	}
	return min(250*time.Millisecond<<attempt, maxWait)
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func read[T any](status int, answer []byte) (*T, error) {
	if status >= http.StatusBadRequest {
		refusal := &Error{Status: status, Code: status, DeveloperMessage: string(answer)}
		_ = json.Unmarshal(answer, refusal) // a body that is no JSON stays in DeveloperMessage
		return nil, refusal
	}
	result := new(T)
	if len(answer) == 0 {
		return result, nil
	}
	if err := json.Unmarshal(answer, result); err != nil {
		return nil, fmt.Errorf("the answer %d is not as it is described: %w", status, err)
	}
	return result, nil
}

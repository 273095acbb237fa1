package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	api "github.com/doorward/doorward/pkg/client"
)

// Setup makes the resources that a scenario or a measurement needs and does not test
// itself (fixture), by the product's Go client (pkg/client). After the first failure it
// sends no further requests, so that the caller checks Err once, after the last call.
type Setup struct {
	Err error

	ctx    context.Context
	client *api.Client
}

// Setup has the API key and the connections of c. Its requests and answers are checked
// against the OpenAPI description too, unless c is Unchecked.
func (c *Client) Setup(ctx context.Context) *Setup {
	made, err := api.New(c.Key.BaseURL, api.Credentials{ID: c.Key.ID, Secret: c.Key.Secret},
		api.HTTPClient(&http.Client{Timeout: time.Minute, Transport: openAPIChecker{c.HTTP.Transport, c.unchecked}}))
	return &Setup{Err: err, ctx: ctx, client: made}
}

// Get reads a resource.
func (s *Setup) Get(address string) Object {
	return s.do(func() (*Object, error) { return api.Get[Object](s.ctx, s.client, address) })
}

// Post creates or changes a resource, or gets a token for url.Values.
func (s *Setup) Post(address string, body any) Object {
	return s.do(func() (*Object, error) { return api.Create[Object](s.ctx, s.client, address, body) })
}

func (s *Setup) do(call func() (*Object, error)) Object {
	if s.Err != nil {
		return nil
	}
	found, err := call()
	if s.Err = err; err != nil {
		return nil
	}
	return *found
}

// Fixture makes an application by its fields, and a directory with it.
func (s *Setup) Fixture(fields Object) Fixture {
	application := s.Post("/applications?createDirectory=true", fields)
	mapping := s.Get(application.Object("defaultAccountStoreMapping").Href())
	return Fixture{Application: application, Directory: s.Get(mapping.Object("accountStore").Href())}
}

// API is the client of the product with the key and the connections of c.
func (c *Client) API(t testing.TB) *api.Client {
	t.Helper()
	return setUp(t, c, func(s *Setup) *api.Client { return s.client })
}

// setUp makes something for a test.
func setUp[T any](t testing.TB, c *Client, build func(*Setup) T) T {
	t.Helper()
	s := c.Setup(t.Context())
	made := build(s)
	if s.Err != nil {
		t.Fatal(s.Err)
	}
	return made
}

// openAPIChecker is a transport that fails requests that are not answered as the OpenAPI
// description has it.
type openAPIChecker struct {
	http.RoundTripper
	unchecked bool
}

// RoundTrip sends a request and checks its answer.
func (c openAPIChecker) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Accept", "application/json") // metadata of SAML are XML otherwise
	response, err := c.RoundTripper.RoundTrip(request)
	if err != nil || c.unchecked {
		return response, err
	}
	defer response.Body.Close()
	answer := Answer{Request: request.Method + " " + request.URL.String(), Status: response.StatusCode, Header: response.Header}
	if answer.Body, err = io.ReadAll(response.Body); err != nil {
		return nil, fmt.Errorf("%s: read the answer: %w", answer.Request, err)
	}
	response.Body = io.NopCloser(bytes.NewReader(answer.Body))
	var sent []byte
	if request.GetBody != nil && request.Header.Get("Content-Type") == "application/json" {
		body, err := request.GetBody()
		if err != nil {
			return nil, err
		}
		if sent, err = io.ReadAll(body); err != nil {
			return nil, err
		}
	}
	return response, checkAgainstOpenAPI(Request{Method: request.Method, Header: request.Header}, sent, request.URL.String(), answer)
}

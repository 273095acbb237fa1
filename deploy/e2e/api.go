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

// API is the client of the product (pkg/client) with the same key and connections.
// Scenarios use it for what they do not test themselves; what it exchanges is
// checked against the description of the interface too.
func (c *Client) API(t testing.TB) *api.Client {
	t.Helper()
	made, err := api.New(c.Key.BaseURL, api.Credentials{ID: c.Key.ID, Secret: c.Key.Secret},
		api.HTTPClient(&http.Client{Timeout: time.Minute, Transport: checked{c.HTTP.Transport}}))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// newResource creates a resource that a scenario needs.
func (c *Client) newResource(t testing.TB, address string, body Object) Object {
	t.Helper()
	made, err := api.Create[Object](t.Context(), c.API(t), address, body)
	if err != nil {
		t.Fatal(err)
	}
	return *made
}

// resource reads a resource that a scenario needs.
func (c *Client) resource(t testing.TB, address string) Object {
	t.Helper()
	found, err := api.Get[Object](t.Context(), c.API(t), address)
	if err != nil {
		t.Fatal(err)
	}
	return *found
}

// remove deletes a resource, which may be gone.
func (c *Client) remove(ctx context.Context, t testing.TB, address string) error {
	return api.Delete(ctx, c.API(t), address)
}

// checked fails requests that are not answered as the interface is described.
type checked struct{ http.RoundTripper }

// RoundTrip sends a request and checks what came back.
func (c checked) RoundTrip(request *http.Request) (*http.Response, error) {
	var sent []byte
	if request.GetBody != nil {
		body, err := request.GetBody()
		if err != nil {
			return nil, err
		}
		if sent, err = io.ReadAll(body); err != nil {
			return nil, err
		}
	}
	response, err := c.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer := Answer{Request: request.Method + " " + request.URL.String(), Status: response.StatusCode, Header: response.Header}
	if answer.Body, err = io.ReadAll(response.Body); err != nil {
		return nil, fmt.Errorf("%s: read the answer: %w", answer.Request, err)
	}
	response.Body = io.NopCloser(bytes.NewReader(answer.Body))
	if len(sent) == 0 || request.Header.Get("Content-Type") != "application/json" {
		sent = nil
	}
	return response, described(Request{Method: request.Method, Header: request.Header, Body: sent}, request.URL.String(), answer)
}

package openapitest

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/gofiber/fiber/v2"
)

var (
	routesChecked sync.Map // of *fiber.App
	aliases       sync.Map // string, by *fiber.App
)

// Speaks sets the alias of an app that is not "service".
func Speaks(app *fiber.App, alias string) { aliases.Store(app, alias) }

// Do sends a request to an app, without a timeout, and validates the request and its answer against the
// OpenAPI description (pkg/openapi). The first request to an app also checks that all its routes
// below /v1 are described.
func Do(t testing.TB, app *fiber.App, request *http.Request) (*http.Response, error) {
	t.Helper()
	alias, other := aliases.Load(app)
	if !other {
		alias = "service"
	}
	checker, err := For(alias.(string))
	if err != nil {
		t.Fatal(err)
	}
	if _, checked := routesChecked.LoadOrStore(app, true); !checked {
		for _, route := range app.GetRoutes(true) {
			if strings.HasPrefix(route.Path, managed) && route.Method != http.MethodHead &&
				!checker.Describes(route.Method, route.Path) {
				t.Errorf("pkg/openapi does not describe %s %s", route.Method, route.Path)
			}
		}
	}
	var sent []byte
	if request.Body != nil {
		if sent, err = io.ReadAll(request.Body); err != nil {
			return nil, err
		}
		request.Body = io.NopCloser(bytes.NewReader(sent))
	}
	response, err := app.Test(request, -1)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	if err := checker.Check(Exchange{
		Method: request.Method, URL: request.URL.String(), RequestBody: sent,
		Status: response.StatusCode, AnswerHeader: response.Header, AnswerBody: body,
	}); err != nil {
		t.Errorf("%s %s: %v", request.Method, request.URL, err)
	}
	return response, nil
}

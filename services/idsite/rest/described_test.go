package rest

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/openapi"
	"github.com/doorward/doorward/pkg/rest"
)

// TestTheDescriptionHasEveryCallOfBrowsers compares the endpoints of the Client API
// and the calls of hosted pages, which the table of the gateway has as one line
// each, with the description of the interface.
func TestTheDescriptionHasEveryCallOfBrowsers(t *testing.T) {
	document, err := openapi.New(openapi.Deployment{Base: "https://localhost:8443/v1", Alias: "service"})
	if err != nil {
		t.Fatal(err)
	}
	described := map[string]bool{}
	for _, op := range document.Operations {
		if path, ok := strings.CutPrefix(op.Path, "/client/{dnsLabel}/"); ok {
			described[op.Method+" "+regexp.MustCompile(`\{\w+\}`).ReplaceAllString(path, ":id")] = true
		} else if op.Server != "" {
			described[op.Method+" "+regexp.MustCompile(`\{\w+\}`).ReplaceAllString(op.Path, ":")] = true
		}
	}
	offered := map[string]bool{}
	for path, endpoint := range clientEndpoints {
		for method, handle := range map[string]clientHandler{"GET": endpoint.get, "POST": endpoint.post, "DELETE": endpoint.delete} {
			if handle != nil {
				offered[method+" "+path] = true
			}
		}
	}
	app := rest.NewFiber(nil)
	new(handlers).mountPageAPI(app)
	choice := regexp.MustCompile(`:\w+<regex\(\^\((.*)\)\$\)>`)
	for _, route := range app.GetRoutes(true) {
		path, ok := strings.CutPrefix(route.Path, "/session/v1")
		if !ok || route.Method == fiber.MethodHead || route.Method == fiber.MethodOptions {
			continue
		}
		kinds := []string{""}
		if match := choice.FindStringSubmatch(path); match != nil {
			kinds = strings.Split(match[1], "|")
		}
		for _, kind := range kinds {
			offered[route.Method+" "+regexp.MustCompile(`:\w+`).ReplaceAllString(choice.ReplaceAllLiteralString(path, kind), ":")] = true
		}
	}
	for _, op := range slices.Sorted(maps.Keys(offered)) {
		if !described[op] {
			t.Errorf("pkg/openapi/source does not describe %s", op)
		}
	}
	for _, op := range slices.Sorted(maps.Keys(described)) {
		if !offered[op] {
			t.Errorf("pkg/openapi/source describes %s, which is not offered", op)
		}
	}
}

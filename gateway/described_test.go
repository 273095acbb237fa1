package gateway

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/openapi"
)

var parameter = regexp.MustCompile(`\{\w+\}|:\w+`)

// TestDescription holds the table of routes and the description of the
// interface (pkg/openapi) to each other, in both directions, and what can be
// expanded too.
func TestDescription(t *testing.T) {
	document, err := openapi.New(openapi.Deployment{Base: base, Alias: "service"})
	if err != nil {
		t.Fatal(err)
	}
	routed, paths := map[string]bool{}, map[string]bool{}
	for _, route := range parsedRoutes() {
		if route.access == privateAccess || route.page != nil || route.services[0] == "gateway" || strings.HasSuffix(route.pattern, "*") {
			continue // the mailbox of a development machine, pages for people, and the Client API, whose paths its service has
		}
		path := parameter.ReplaceAllString(route.pattern, ":")
		paths[path] = true
		for _, method := range route.methods {
			if method != fiber.MethodHead && method != fiber.MethodOptions { // a preflight of CORS is none of the interface
				routed[method+" "+path] = true
			}
		}
	}
	clientAPI := slices.IndexFunc(parsedRoutes(), func(r route) bool { return r.pattern == "/client/:dnsLabel/*" })
	described := map[string]bool{}
	for _, op := range document.Operations {
		path := parameter.ReplaceAllString(op.Path, ":")
		switch {
		case op.Server != "": // the address of a call of a hosted page is one of the management API
			if !paths[op.Server+path] {
				t.Errorf("routes.go does not have %s%s, which pkg/openapi/source describes", op.Server, path)
			}
		case strings.HasPrefix(path, "/client/:/"):
			if !slices.Contains(parsedRoutes()[clientAPI].methods, op.Method) {
				t.Errorf("routes.go does not have %s %s, which pkg/openapi/source describes", op.Method, path)
			}
		default:
			described[op.Method+" "+path] = true
		}
	}
	for _, op := range slices.Sorted(maps.Keys(routed)) {
		if !described[op] {
			t.Errorf("pkg/openapi/source does not describe %s", op)
		}
	}
	for _, op := range slices.Sorted(maps.Keys(described)) {
		if !routed[op] {
			t.Errorf("routes.go does not have %s, which pkg/openapi/source describes", op)
		}
	}
	expand := map[string][]string{}
	for line := range rows(expandableLinks) {
		for _, link := range line[1:] {
			expand[line[0]] = append(expand[line[0]], strings.Trim(link, "[]"))
		}
	}
	for kind, links := range expand {
		if other := document.Expandable(kind); !slices.Equal(slices.Sorted(slices.Values(links)), slices.Sorted(slices.Values(other))) {
			t.Errorf("of %s, routes.go expands %v and pkg/openapi/source %v", kind, links, other)
		}
	}
}

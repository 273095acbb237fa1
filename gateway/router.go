package gateway

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/rpc"
)

// access says how a path is guarded.
type access uint8

const (
	byKey     access = iota + 1 // an API key
	byNone                      // nothing, for programs: the service checks what the request carries
	byBrowser                   // nothing, for browsers: cookies go along
	byNetwork                   // nothing, but only from this machine or a private network
)

var accesses = map[string]access{"key": byKey, "user": byKey, "agent": byKey, "public": byNone, "hosted": byBrowser, "private": byNetwork}

// methods names the methods behind the letters of the table.
var methods = map[byte][]string{
	'G': {fiber.MethodGet, fiber.MethodHead},
	'P': {fiber.MethodPost},
	'D': {fiber.MethodDelete},
	'O': {fiber.MethodOptions},
	'A': {fiber.MethodGet, fiber.MethodHead, fiber.MethodPost, fiber.MethodPut, fiber.MethodDelete, fiber.MethodOptions},
}

// route is one line of the table.
type route struct {
	pattern    string // as written, for logs, traces and metrics
	methods    []string
	allow      string // the same, as the header Allow
	access     access
	users      bool            // lets an end user in, which counts apart
	agents     bool            // takes the keys of the agent that the path names
	owners     []string        // services, asked one after the other until one has what the path names
	upstreams  []*rpc.Upstream // those of the owners
	page       page            // of the gateway itself, in place of owners
	collection bool            // a GET answers items
	expandable []expandable    // links of the answer that can be expanded
}

// expandable is a link that can be expanded.
type expandable struct {
	name       string
	collection bool // it leads to a page of a collection
}

// offers reports whether the path has the method.
func (r *route) offers(method string) bool { return slices.Contains(r.methods, method) }

// table is the parsed page routes.go, in the order of its lines. A line with
// braces becomes several routes.
var table = sync.OnceValue(func() []route {
	links := map[string][]expandable{"-": nil}
	for line := range lines(expandableLinks) {
		for _, name := range line[1:] {
			single := strings.Trim(name, "[]")
			links[line[0]] = append(links[line[0]], expandable{single, single != name})
		}
	}
	pages := ownPages()
	maps.Copy(pages, referencePages())
	var routes []route
	for line := range lines(surface) {
		if len(line) != 5 {
			panic("routes.go: a line has five columns: " + strings.Join(line, " "))
		}
		kind, collection := strings.CutPrefix(line[4], "[")
		resource, known := links[strings.TrimSuffix(kind, "]")]
		r := route{
			access: accesses[line[1]], users: line[1] == "user", agents: line[1] == "agent", owners: strings.Split(line[3], "|"),
			collection: collection, expandable: resource,
		}
		if r.access == 0 || !known && !collection && kind != "-" {
			panic("routes.go: unknown word in: " + strings.Join(line, " "))
		}
		for i := range len(line[0]) {
			r.methods = append(r.methods, methods[line[0][i]]...)
		}
		r.allow = strings.Join(r.methods, ", ")
		for _, pattern := range expandBraces(line[2]) {
			r.pattern = pattern
			if line[3] == "gateway" {
				if r.owners, r.page = nil, pages[pattern]; r.page == nil {
					panic("routes.go: the gateway has no page " + pattern)
				}
			}
			routes = append(routes, r)
		}
	}
	return routes
})

// lines yields the columns of each line that has some.
func lines(page string) func(func([]string) bool) {
	return func(yield func([]string) bool) {
		for line := range strings.Lines(page) {
			if columns := strings.Fields(line); len(columns) > 0 && !yield(columns) {
				return
			}
		}
	}
}

// expandBraces expands "/a/{b,c}/d" to "/a/b/d" and "/a/c/d".
func expandBraces(pattern string) []string {
	head, rest, braces := strings.Cut(pattern, "{")
	if !braces {
		return []string{pattern}
	}
	choices, tail, _ := strings.Cut(rest, "}")
	var all []string
	for choice := range strings.SplitSeq(choices, ",") {
		all = append(all, head+choice+tail)
	}
	return all
}

// router finds the route of a path. A literal segment goes before a parameter, and matching
// does not backtrack out of a literal segment: no id is spelled like a literal of the table.
//
// Fiber's router cannot take its place. It names the route of a request only by running its
// handlers: here the route decides whether a key is needed and which limit counts before the
// method is looked at (401 before 404 and 405), and links are expanded by the routes of paths
// that no request has. It would also try the hundred patterns below /v1 one after the other,
// which share their first three bytes, the only ones that it indexes.
type router struct {
	root       node
	hostRoutes map[string]*route // of hosted.go, by pattern
}

type node struct {
	literal   map[string]*node
	parameter *node
	rest      *route // of a *
	here      *route
}

// newRouter takes the routes whose owners are deployed.
func newRouter(upstreams map[string]*rpc.Upstream) *router {
	r := &router{hostRoutes: map[string]*route{}}
	for _, line := range table() {
		for _, owner := range line.owners {
			if upstream := upstreams[owner]; upstream != nil {
				line.upstreams = append(line.upstreams, upstream)
			}
		}
		if len(line.upstreams) == len(line.owners) {
			r.add(&line)
		}
	}
	return r
}

func (r *router) add(line *route) {
	if strings.HasPrefix(line.pattern, "//") {
		r.hostRoutes[line.pattern] = line
		return
	}
	at := &r.root
	for segment := range strings.SplitSeq(strings.TrimSuffix(line.pattern[1:], "/"), "/") {
		if segment == "" { // the path /
			break
		}
		if segment == "*" {
			at.rest = line
			return
		}
		at = at.child(segment)
	}
	if at.here != nil {
		panic(fmt.Sprintf("routes.go: %s and %s are the same path", at.here.pattern, line.pattern))
	}
	at.here = line
}

func (n *node) child(segment string) *node {
	if segment[0] == ':' {
		if n.parameter == nil {
			n.parameter = &node{}
		}
		return n.parameter
	}
	if n.literal == nil {
		n.literal = map[string]*node{}
	}
	if n.literal[segment] == nil {
		n.literal[segment] = &node{}
	}
	return n.literal[segment]
}

// match returns the route of a path in its normal spelling; nil where there is
// none.
func (r *router) match(path []byte) *route {
	at := &r.root
	var rest *route // the last * passed
	for len(path) > 1 {
		path = path[1:]
		if at.rest != nil {
			rest = at.rest
		}
		end := 0
		for end < len(path) && path[end] != '/' {
			end++
		}
		next := at.literal[string(path[:end])]
		if next == nil {
			next = at.parameter
		}
		if next == nil {
			return rest
		}
		at, path = next, path[end:]
	}
	if at.here == nil {
		return rest
	}
	return at.here
}

// locate finds the path in the table.
func (g *Gateway) locate(x *exchange) error {
	header := &x.Request().Header
	if len(header.RequestURI()) > maxURL {
		return g.refusals.countAs("too_large", apierr.TooLarge.Because("a URL may have %d bytes", maxURL))
	}
	if err := g.find(x, header); err != nil {
		return err
	}
	rest.SetRoute(x.Ctx, label(x.route))
	x.method = string(header.Method())
	return nil
}

// find sets the route of a request and its target, by its headers alone.
func (g *Gateway) find(x *exchange, header *fasthttp.RequestHeader) error {
	target, ok := origin(header.RequestURI())
	if !ok {
		return apierr.BadRequest.Because("the request target is not a path with a query")
	}
	path, query, _ := bytes.Cut(target, []byte{'?'})
	x.query = query
	x.target, x.canonical = spell(x.target, path)
	x.path = len(x.target)
	x.managed = underV1(x.target)
	if x.canonical {
		x.route = g.hostedRoute(x, header, g.router.match(x.target))
	}
	return nil
}

// needsKey reports whether a request is for clients with an API key. Under /v1 a path
// that does not exist needs one too, so that a stranger cannot know which do.
func (x *exchange) needsKey() bool { return x.managed && (x.route == nil || x.route.access == byKey) }

// clientAPI is what the paths of Client APIs begin with.
const clientAPI = "/client/"

// isClientAPI reports whether a request is to a Client API, by its host or its path. It
// tells that of requests too that could not be read or whose path is unknown.
func (g *Gateway) isClientAPI(header *fasthttp.RequestHeader) bool {
	if _, ok := g.clientHost(hostname(header.Host())); ok {
		return true
	}
	target, _ := origin(header.RequestURI())
	path, _, _ := bytes.Cut(target, []byte{'?'})
	path, _ = spell(nil, path)
	return bytes.HasPrefix(path, []byte(clientAPI))
}

// label is how logs, traces and metrics name a route: never by a path, which may
// hold a secret.
func label(r *route) string {
	if r == nil {
		return "none"
	}
	return r.pattern
}

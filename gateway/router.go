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

	"github.com/doorward/doorward/gateway/expansion"
	"github.com/doorward/doorward/gateway/requestpath"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/rpc"
)

// access says which credential a route requires.
type access uint8

const (
	keyAccess     access = iota + 1 // an API key
	publicAccess                    // no API key, for programs: the service checks the credentials of the request
	hostedAccess                    // no API key, for browsers: the service gets their cookies
	privateAccess                   // no API key, but only from this machine or a private network
)

// accessByName has the access of the words of the second column of routes.go.
var accessByName = map[string]access{
	"key": keyAccess, "user": keyAccess, "agent": keyAccess, "public": publicAccess, "client": publicAccess,
	"hosted": hostedAccess, "private": privateAccess,
}

// methodsByLetter has the HTTP methods that a letter of routes.go stands for.
var methodsByLetter = map[byte][]string{
	'G': {fiber.MethodGet, fiber.MethodHead},
	'P': {fiber.MethodPost},
	'U': {fiber.MethodPut},
	'D': {fiber.MethodDelete},
	'O': {fiber.MethodOptions},
	'A': {fiber.MethodGet, fiber.MethodHead, fiber.MethodPost, fiber.MethodPut, fiber.MethodDelete,
		fiber.MethodOptions},
}

// route is one path of routes.go.
type route struct {
	pattern    string // the path as routes.go has it, for logs, traces and metrics
	methods    []string
	allow      string // the same, as the header Allow
	access     access
	endUsers   bool             // logs an end user in: such requests have a rate limit of their own
	clients    bool             // called by clients of OpenID providers, which have rate limits of their own
	agentKeys  bool             // accepts the API keys of the LDAP agent that the path names
	services   []string         // names; a request is sent to one after the other until one does not answer 404
	upstreams  []*rpc.Upstream  // where the services are
	page       page             // a page of the gateway itself, in place of services
	collection bool             // a GET returns a page of items
	expandable []expansion.Link // links of the answer that can be expanded
	apiKeys    bool             // the answer has API keys, whose secrets can be encrypted
}

// offers reports whether the route allows an HTTP method.
func (r *route) offers(method string) bool { return slices.Contains(r.methods, method) }

// parsedRoutes is the route table of routes.go, parsed, in the order of its lines. A line with
// braces becomes several routes.
var parsedRoutes = sync.OnceValue(func() []route {
	links := map[string][]expansion.Link{"-": nil}
	for line := range rows(expandableLinks) {
		for _, name := range line[1:] {
			single := strings.Trim(name, "[]")
			links[line[0]] = append(links[line[0]], expansion.Link{Name: single, Collection: single != name})
		}
	}
	pages := ownPages()
	maps.Copy(pages, referencePages())
	var parsed []route
	for line := range rows(routes) {
		if len(line) != 5 {
			panic("routes.go: a line has five columns: " + strings.Join(line, " "))
		}
		kind, collection := strings.CutPrefix(line[4], "[")
		kind = strings.TrimSuffix(kind, "]")
		resource, known := links[kind]
		r := route{
			access: accessByName[line[1]], endUsers: line[1] == "user", agentKeys: line[1] == "agent",
			clients: line[1] == "client", services: strings.Split(line[3], "|"),
			collection: collection, expandable: resource, apiKeys: kind == "apiKey",
		}
		if r.access == 0 || !known && !collection && kind != "-" {
			panic("routes.go: unknown word in: " + strings.Join(line, " "))
		}
		for i := range len(line[0]) {
			r.methods = append(r.methods, methodsByLetter[line[0][i]]...)
		}
		r.allow = strings.Join(r.methods, ", ")
		for _, pattern := range expandBraces(line[2]) {
			r.pattern = pattern
			if line[3] == "gateway" {
				if r.services, r.page = nil, pages[pattern]; r.page == nil {
					panic("routes.go: the gateway has no page " + pattern)
				}
			}
			parsed = append(parsed, r)
		}
	}
	return parsed
})

// rows yields the columns of each line that is not empty.
func rows(table string) func(func([]string) bool) {
	return func(yield func([]string) bool) {
		for line := range strings.Lines(table) {
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
// Fiber's router cannot take its place. Fiber tells the route of a request only by running its
// handlers. Here the route decides whether an API key is required and which rate limit applies
// before the method is checked (401 before 404 and 405), and link expansion needs the routes of
// paths that no request has. Fiber would also compare a path with each of the hundred patterns
// below /v1: it indexes the first three bytes of a path only.
type router struct {
	root       node
	hostRoutes map[string]*route // the routes that hosted.go chooses by the host, by pattern
}

// node is a node of the tree of routes, whose edges are path segments.
type node struct {
	literal   map[string]*node // the children by a literal segment
	parameter *node            // the child by a parameter such as :id
	wildcard  *route           // the route of the pattern that goes on with *
	route     *route           // the route of the pattern that ends here
}

// newRouter returns a router of the routes whose services are deployed.
func newRouter(upstreams map[string]*rpc.Upstream) *router {
	r := &router{hostRoutes: map[string]*route{}}
	for _, line := range parsedRoutes() {
		for _, service := range line.services {
			if upstream := upstreams[service]; upstream != nil {
				line.upstreams = append(line.upstreams, upstream)
			}
		}
		if len(line.upstreams) == len(line.services) {
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
			at.wildcard = line
			return
		}
		at = at.child(segment)
	}
	if at.route != nil {
		panic(fmt.Sprintf("routes.go: %s and %s are the same path", at.route.pattern, line.pattern))
	}
	at.route = line
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

// match returns the route of a path as requestpath.Normalize returns it; nil where there is
// none.
func (r *router) match(path []byte) *route {
	at := &r.root
	var wildcard *route // of the longest prefix of the path that has one
	for len(path) > 1 {
		path = path[1:]
		if at.wildcard != nil {
			wildcard = at.wildcard
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
			return wildcard
		}
		at, path = next, path[end:]
	}
	if at.route == nil {
		return wildcard
	}
	return at.route
}

// routeRequest is the middleware that finds the route of a request in the table of routes.go.
func (g *Gateway) routeRequest(rc *requestContext) error {
	header := &rc.Request().Header
	if len(header.RequestURI()) > maxURL {
		return g.refusals.countAs("too_large", apierr.TooLarge.Because("a URL may have %d bytes", maxURL))
	}
	if err := g.matchRoute(rc, header); err != nil {
		return err
	}
	rest.SetRoute(rc.Ctx, routeLabel(rc.route))
	rc.method = string(header.Method())
	return nil
}

// matchRoute sets the route of a request and its target, by the headers of the request alone.
func (g *Gateway) matchRoute(rc *requestContext, header *fasthttp.RequestHeader) error {
	target, ok := requestpath.OriginForm(header.RequestURI())
	if !ok {
		return apierr.BadRequest.Because("the request target is not a path with a query")
	}
	path, query, _ := bytes.Cut(target, []byte{'?'})
	rc.query = query
	rc.target, rc.validPath = requestpath.Normalize(rc.target, path)
	rc.pathLength = len(rc.target)
	rc.managementAPI = requestpath.IsManagement(rc.target)
	if rc.validPath {
		rc.route = g.hostedRoute(rc, header, g.router.match(rc.target))
	}
	return nil
}

// needsAPIKey reports whether a request requires an API key. A path under /v1 that does not
// exist requires one too, so that clients without a key cannot find out which paths exist.
func (rc *requestContext) needsAPIKey() bool {
	return rc.managementAPI && (rc.route == nil || rc.route.access == keyAccess)
}

// clientAPI is what the paths of Client APIs begin with.
const clientAPI = "/client/"

// isClientAPI reports whether a request is to a Client API, by its host or its path. The
// request need not be valid, nor its path known.
func (g *Gateway) isClientAPI(header *fasthttp.RequestHeader) bool {
	if _, ok := g.clientAPILabelOfHost(hostname(header.Host())); ok {
		return true
	}
	target, _ := requestpath.OriginForm(header.RequestURI())
	path, _, _ := bytes.Cut(target, []byte{'?'})
	path, _ = requestpath.Normalize(nil, path)
	return bytes.HasPrefix(path, []byte(clientAPI))
}

// routeLabel is how logs, traces and metrics name a route: by its pattern and not by the path
// of the request, which may hold a secret.
func routeLabel(r *route) string {
	if r == nil {
		return "none"
	}
	return r.pattern
}

package gateway

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/gofiber/fiber/v2"

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

var accesses = map[string]access{"key": byKey, "user": byKey, "public": byNone, "hosted": byBrowser, "private": byNetwork}

// methods names the methods behind the letters of the table.
var methods = map[byte][]string{
	'G': {fiber.MethodGet, fiber.MethodHead},
	'P': {fiber.MethodPost},
	'D': {fiber.MethodDelete},
	'O': {fiber.MethodOptions},
}

// route is one line of the table.
type route struct {
	pattern    string // as written, for logs, traces and metrics
	methods    []string
	allow      string // the same, as the header Allow
	access     access
	users      bool            // lets an end user in, which counts apart
	owners     []string        // services, asked one after the other until one has what the path names
	upstreams  []*rpc.Upstream // those of the owners
	collection bool            // a GET answers items
	expandable []string        // what can be expanded in the answer
}

// offers reports whether the path has the method.
func (r *route) offers(method string) bool { return slices.Contains(r.methods, method) }

// table is the parsed page routes.go, in the order of its lines. A line with
// braces gives several routes.
var table = sync.OnceValue(func() []route {
	names := map[string][]string{"-": nil}
	for line := range lines(expandable) {
		names[line[0]] = append(names[line[0]], line[1:]...)
	}
	var routes []route
	for line := range lines(surface) {
		if len(line) != 5 {
			panic("routes.go: a line has five columns: " + strings.Join(line, " "))
		}
		kind, collection := strings.CutPrefix(line[4], "[")
		resource, known := names[strings.TrimSuffix(kind, "]")]
		r := route{access: accesses[line[1]], users: line[1] == "user", owners: strings.Split(line[3], "|"), collection: collection, expandable: resource}
		if r.access == 0 || !known && !collection && kind != "-" {
			panic("routes.go: unknown word in: " + strings.Join(line, " "))
		}
		for i := range len(line[0]) {
			r.methods = append(r.methods, methods[line[0][i]]...)
		}
		r.allow = strings.Join(r.methods, ", ")
		for _, pattern := range unfold(line[2]) {
			r.pattern = pattern
			routes = append(routes, r)
		}
	}
	return routes
})

// lines gives the columns of each line that has some.
func lines(page string) func(func([]string) bool) {
	return func(yield func([]string) bool) {
		for line := range strings.Lines(page) {
			if columns := strings.Fields(line); len(columns) > 0 && !yield(columns) {
				return
			}
		}
	}
}

// unfold writes out "/a/{b,c}/d" as "/a/b/d" and "/a/c/d".
func unfold(pattern string) []string {
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

// router finds the route of a path. A literal segment goes before a parameter,
// and what has gone into a literal does not come back out: no id is spelled
// like a literal of the table.
type router struct{ root node }

type node struct {
	literal   map[string]*node
	parameter *node
	rest      *route // of a *
	here      *route
}

// newRouter takes the routes whose owners are deployed.
func newRouter(upstreams map[string]*rpc.Upstream) *router {
	r := &router{}
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
	at := &r.root
	for segment := range strings.SplitSeq(line.pattern[1:], "/") {
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

// match finds the route of a path in its normal spelling; nil where there is
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

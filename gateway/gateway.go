// Package gateway is the one address that clients see. It admits a request,
// finds out who asks, and forwards it to the service that owns the path.
//
// routes.go is the public surface on one page. This file has the order in
// which a request is treated; each step has a file of its own.
package gateway

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/rpc"
	"github.com/doorward/doorward/pkg/service"
)

// patience bounds the work on one request, from when its body was read. It is
// a little more than a service's own, so that the service's answer wins.
const requestTimeout = 18 * time.Second

// Upstreams are the services behind the gateway. The paths of one that is nil
// are unknown.
type Upstreams struct {
	Directory, Application, OAuth, MFA, Notification, IDSite, Mailbox *rpc.Upstream
}

// Config describes a gateway.
type Config struct {
	Common    service.Common
	Upstreams Upstreams
	Keys      oauthapi.API

	// Proxied says that a load balancer in front ends TLS and tells how the
	// client came in X-Forwarded-Proto.
	Proxied bool
	// TrustedHops is how many proxies in front add to X-Forwarded-For.
	TrustedHops int
	// Tenant is what the requests with a tenant's keys may take; Users is for
	// those among them that let its end users in, and again for those to the
	// Client API of one of its applications; Address is for the requests of one
	// address without a key.
	Tenant, Users, Address Budget
}

// Gateway is the HTTP application in front of the services.
type Gateway struct {
	HTTP   *fiber.App
	Limits *Limits

	cfg     Config
	router  *router
	keys    *keys
	refused *refusals
	steps   []step
	pool    sync.Pool

	userHeader    string   // name of the header in which a client tells the end user's address
	requestHeader string   // name of the header of a request's id
	challenge     string   // value of WWW-Authenticate
	dates         []string // names of the header with the time of a signed request
	admissions    sync.Map // of func(), by the header of the request that has one
}

// step is one thing done to a request. An error ends the request.
type step func(*exchange) error

// exchange is one request on its way through the steps.
type exchange struct {
	*fiber.Ctx
	ctx           context.Context // ends when the requestTimeout does
	route         *route          // nil for a path that is not in the table
	managed       bool            // below /v1
	target        []byte          // path and query as they are forwarded, the path in its normal spelling
	path          int             // length of the path in target
	query         []byte          // as sent
	method        string          // what the request means, after HEAD and _method
	address       netip.Addr      // of the client
	caller        caller.Caller
	signed        string // the caller for the service
	ownParameters ownParameters
	expansions    []expansion
	held          [2]subject // what the request counts for
	holds         int        // how many of them
}

// New makes a gateway. It serves nothing until its HTTP application is given a
// listener of Listen.
func New(cfg Config) (*Gateway, error) {
	refused, err := newRefusals()
	if err != nil {
		return nil, err
	}
	up := cfg.Upstreams
	g := &Gateway{
		cfg: cfg, refused: refused,
		Limits: newLimits(cfg),
		router: newRouter(map[string]*rpc.Upstream{
			"directory": up.Directory, "application": up.Application, "oauth": up.OAuth, "mfa": up.MFA,
			"notification": up.Notification, "idsite": up.IDSite, "mailbox": up.Mailbox,
		}),
		pool:          sync.Pool{New: func() any { return new(exchange) }},
		requestHeader: cfg.Common.Title() + "-Request-Id",
		userHeader:    cfg.Common.Title() + "-User-Address",
		challenge:     `Basic realm="` + cfg.Common.Alias + `", SAuthc1`,
		dates:         dateHeaders(cfg.Common.Alias),
	}
	g.keys = newKeys(cfg.Keys, g.Limits)
	g.steps = []step{
		g.checkFraming,   // one reading of the request only
		g.requireTLS,     // HTTPS only
		g.locate,         // which line of the table
		g.clientIP,       // the client's address
		g.authenticate,   // the API key, under /v1
		g.limit,          // not too many at once
		g.methodOverride, // _method and expand, out of the query
		g.checkMethod,    // 404, 405
		g.parseExpand,    // what to expand
		g.forward,        // the service's answer
		g.expand,         // its links expanded
	}
	g.HTTP = rest.NewFiber(g.fail)
	g.HTTP.Use(g.identify, rest.Observe("gateway"), g.serve)
	g.admit(g.HTTP.Server())
	return g, nil
}

func (g *Gateway) serve(c *fiber.Ctx) error {
	ctx, cancel := context.WithTimeout(c.UserContext(), requestTimeout)
	x := g.pool.Get().(*exchange)
	*x = exchange{Ctx: c, ctx: ctx, target: x.target[:0]}
	defer func() {
		cancel()
		for _, who := range x.held[:x.holds] {
			g.Limits.leave(who)
		}
		*x = exchange{target: x.target}
		g.pool.Put(x)
	}()
	for _, step := range g.steps {
		if err := step(x); err != nil {
			return err
		}
	}
	return nil
}

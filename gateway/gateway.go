// Package gateway is the one address that clients see. It admits a request,
// authenticates its client, and forwards it to the service that owns the path.
//
// routes.go is the public surface on one page. This file has the order in
// which a request passes the steps, the middleware; each has a file of its own.
package gateway

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/idsiteapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/fairqueue"
	"github.com/doorward/doorward/pkg/openapi"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/rpc"
)

// requestTimeout bounds the work on one request, from when its body was read. It is a little
// more than a service's own, so that the service times out first.
const requestTimeout = 18 * time.Second

// Upstreams are the services behind the gateway. The paths of one that is nil
// are unknown.
type Upstreams map[string]*rpc.Upstream

// Config describes a gateway.
type Config struct {
	Common    deployment.Common
	Upstreams Upstreams
	Keys      oauthapi.API

	// Proxied says that a load balancer in front terminates TLS and says in
	// X-Forwarded-Proto how the client came.
	Proxied bool
	// TrustedHops is how many proxies in front add to X-Forwarded-For.
	TrustedHops int
	// Data is the folder of standalone's data, which the start page names.
	Data string
	// ClientSuffix is the domain under which applications have their Client APIs,
	// <label>.<suffix>.
	ClientSuffix string
	// Tenant limits the requests with a tenant's keys; Users those among them that
	// let its end users in, and apart from them those to the Client API of one of
	// its applications; Address the requests of one address without a key.
	Tenant, Users, Address Budget
}

// Gateway is the HTTP application in front of the services.
type Gateway struct {
	HTTP   *fiber.App
	Limits *Limits

	cfg       Config
	router    *router
	keys      *keys
	domains   *certificates // of tenants' own domains; nil without the idsite service
	refusals  *refusalCounter
	steps     []step
	reference func() (map[string]referenceFile, error) // written at the first use
	pool      sync.Pool

	userHeader    string   // header in which a client names the end user's address
	requestHeader string   // header of a request's id
	challenge     string   // value of WWW-Authenticate
	hostname      string   // of the base URL
	hsts          string   // value of Strict-Transport-Security; empty for none
	dates         []string // names of the header with the time of a signed request
	admissions    sync.Map // of *admission, by the header of the request
	bodies        *fairqueue.Queue
}

// step is a middleware: one thing done to a request. An error ends the request.
type step func(*exchange) error

// exchange is one request on its way through the steps.
type exchange struct {
	*fiber.Ctx
	ctx        context.Context // ends with the request's timeout
	admission  *admission      // of a large body, else nil
	route      *route          // nil for a path that is not in the table
	managed    bool            // below /v1
	canonical  bool            // whether the path has a canonical form, and so can be an address
	host       string          // that a browser asked for, where the idsite service is to know
	target     []byte          // path and query as they are forwarded, the path in its normal spelling
	path       int             // length of the path in target
	query      []byte          // as sent
	method     string          // what the request means, after HEAD and _method
	address    netip.Addr      // of the client
	caller     caller.Caller
	signed     string // the caller for the service
	own        ownParameters
	expansions []expansion
	counted    [2]subject // what the request counts for
	counts     int        // how many of them
	queued     bool       // its body has a worker of Gateway.bodies
}

// New returns a gateway. It serves nothing until its HTTP application is given a
// listener of Listen.
func New(cfg Config) (*Gateway, error) {
	refusals, err := newRefusalCounter()
	if err != nil {
		return nil, err
	}
	g := &Gateway{
		cfg: cfg, refusals: refusals,
		Limits:        newLimits(cfg),
		bodies:        fairqueue.New(maxBodies, maxTenantBodies, maxBodyQueue),
		pool:          sync.Pool{New: func() any { return new(exchange) }},
		requestHeader: cfg.Common.Alias.Title() + "-Request-Id",
		userHeader:    cfg.Common.Alias.Title() + "-User-Address",
		challenge:     `Basic realm="` + string(cfg.Common.Alias) + `", SAuthc1`,
		hostname:      cfg.Common.Base.Hostname(),
		hsts:          hsts(cfg.Common.Base),
		dates:         dateHeaders(cfg.Common.Alias),
	}
	g.router = newRouter(cfg.Upstreams)
	g.reference = sync.OnceValues(func() (map[string]referenceFile, error) {
		return makeReference(openapi.Deployment{Base: cfg.Common.Base, Alias: string(cfg.Common.Alias)})
	})
	if site := cfg.Upstreams["idsite"]; site != nil && cfg.Common.Shared != nil {
		g.domains = newCertificates(idsiteapi.Client(rpc.Peer{Upstream: site, Signer: cfg.Common.Signer}), cfg.Common.Shared, g.isOwnName)
	}
	g.keys = newKeys(cfg.Keys, g.Limits)
	g.steps = []step{
		g.checkFraming,   // the request can be read in one way only
		g.requireTLS,     // HTTPS only
		g.locate,         // its line in the table of routes
		g.clientIP,       // the client's address
		g.authenticate,   // the API key, under /v1
		g.limit,          // not too many at once
		g.methodOverride, // _method and expand, out of the query
		g.checkMethod,    // 404, 405
		g.parseExpand,    // what to expand
		g.queueBody,      // the turn of a large body
		g.answer,         // the service's answer, or a page of the gateway's own
		g.expand,         // its links expanded
	}
	g.HTTP = rest.NewFiber(g.fail)
	g.HTTP.Use(g.identify, rest.Observe("gateway"), g.serve)
	g.readLimits(g.HTTP.Server())
	return g, nil
}

func (g *Gateway) serve(c *fiber.Ctx) error {
	x := g.pool.Get().(*exchange)
	*x = exchange{Ctx: c, target: x.target[:0], admission: g.takeAdmission(&c.Request().Header)}
	deadline := time.Now().Add(requestTimeout)
	if a := x.admission; a != nil && !a.deadline.IsZero() {
		deadline = a.deadline
	}
	ctx, cancel := context.WithDeadline(c.UserContext(), deadline)
	x.ctx = ctx
	defer func() {
		cancel()
		if x.queued {
			g.bodies.Release(x.caller.Tenant)
		}
		for _, s := range x.counted[:x.counts] {
			g.Limits.release(s)
		}
		if x.admission != nil {
			x.admission.release()
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

// answer asks the service that owns the path, or writes a page of the gateway's
// own.
func (g *Gateway) answer(x *exchange) error {
	if x.route.page != nil {
		return x.route.page(g, x)
	}
	return g.forward(x)
}

// Package gateway is the API gateway (reverse proxy): the one address that clients see. It
// authenticates the client of a request, applies the rate limits, and forwards the request to the
// service that owns the path.
//
// routes.go has every public path. This file has the middlewares in their order; each has a
// file of its own.
package gateway

import (
	"context"
	"crypto/sha256"
	"net/netip"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	lru "github.com/hashicorp/golang-lru/v2"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/doorward/doorward/gateway/clientcredential"
	"github.com/doorward/doorward/gateway/domaincertificate"
	"github.com/doorward/doorward/gateway/expansion"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/idsiteapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/fairqueue"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/openapi"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/rpc"
)

// requestTimeout bounds the work on one request, from when its body was read. It is a little
// more than the request timeout of a service (pkg/rest/app.go), so that the service times out first.
const requestTimeout = 18 * time.Second

// Upstreams are the services behind the gateway, by name. The paths of a service that is not
// in the map are answered with 404.
type Upstreams map[string]*rpc.Upstream

// Config describes a gateway.
type Config struct {
	Common    deployment.Common
	Upstreams Upstreams
	Keys      oauthapi.API
	Feeds     []cache.Source // of the changes of the application and the directory service
	Tenants   *directoryapi.TenantGate

	// Proxied says that a load balancer in front terminates TLS and names the scheme of
	// the client's request in X-Forwarded-Proto.
	Proxied bool
	// TrustedHops is how many proxies in front add to X-Forwarded-For.
	TrustedHops int
	// Data is the folder of standalone's data, which the start page names.
	Data string
	// SignUp says that anyone can create a tenant, so that the start page leads to /register.
	SignUp bool
	// ClientSuffix is the domain under which applications have their Client APIs,
	// <label>.<suffix>.
	ClientSuffix string
	// Tenant is the limit of the requests with API keys of one tenant, without those of Users.
	// Users is the limit of the requests that log end users of one tenant in, and separately
	// of the requests to the Client API of one application. Address is the limit of the requests
	// of one client address without an API key.
	Tenant, Users, Address Limit
}

// Gateway is the HTTP application in front of the services.
type Gateway struct {
	HTTP    *fiber.App
	Limiter *Limiter

	cfg     Config
	router  *router
	apiKeys *apiKeyCache
	clients *openIDClients
	// certificates of tenants' own domains; nil without the idsite service
	domainCertificates *domaincertificate.Certificates
	refusals           *refusalCounter
	middlewares        []middleware
	// the pages of /docs and /openapi.json, made at the first use
	reference       func() (map[string]referenceFile, error)
	requestContexts sync.Pool

	userHeader      string   // header in which a client names the end user's address
	requestHeader   string   // header of a request's id
	wwwAuthenticate string   // value of WWW-Authenticate
	hostname        string   // of the base URL
	hsts            string   // value of Strict-Transport-Security; empty for none
	dateHeaderNames []string // names of the header with the time of a signed request
	bodyQueue       *fairqueue.Queue

	largeBodyTimeout time.Duration // the constant, which tests replace
}

// middleware is one step of the work on a request. An error ends the request.
type middleware func(*requestContext) error

// requestContext is what the middlewares know about one request.
type requestContext struct {
	*fiber.Ctx
	ctx            context.Context // ends with the request's timeout, which begins when the body was read
	cancel         func()          // ends ctx
	route          *route          // nil for a path that is not in routes.go
	managementAPI  bool            // the path is below /v1
	preflight      bool            // a CORS preflight, perhaps of a hosted page
	validPath      bool            // requestpath.Normalize accepted the path
	forwardedHost  string          // the header Host, where the idsite service gets it as hostHeader; else empty
	target         []byte          // path and query as they are forwarded, the path normalized
	pathLength     int             // number of bytes of the path in target
	query          []byte          // as the client sent it
	method         string          // as the service gets it: GET for HEAD, DELETE for a POST with _method=DELETE
	address        netip.Addr      // IP address of the client
	caller         caller.Caller
	signedCaller   string // caller, signed, as the header Doorward-Caller
	parameters     gatewayParameters
	expansions     []expansion.Expansion
	acquiredLimits [4]subject // the limits that the request has acquired
	acquiredCount  int        // number of acquiredLimits
	body           []byte     // empty until it is read
	bodyRead       bool
	bodyLength     int           // as the client announces it, or chunked
	bodyLimit      int           // how much of it is read; 0 until that is decided
	tooLarge       *apierr.Error // the error for a body that is larger
	isLarge        bool          // it may be larger than maxSmall
	inBodyQueue    bool          // the request has acquired Gateway.bodyQueue

	credential      clientcredential.Credential // of a client of an OpenID provider
	hasCredential   bool
	wrongCredential bool // the OAuth service did not accept it
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
		Limiter:          newLimiter(cfg),
		bodyQueue:        fairqueue.New(maxConcurrentBodies, maxTenantBodies, maxBodyQueue),
		largeBodyTimeout: largeBodyTimeout,
		requestContexts:  sync.Pool{New: func() any { return new(requestContext) }},
		requestHeader:    cfg.Common.Alias.Title() + "-Request-Id",
		userHeader:       cfg.Common.Alias.Title() + "-User-Address",
		wwwAuthenticate:  cfg.Common.Alias.WWWAuthenticate(),
		hostname:         cfg.Common.Base.Hostname(),
		hsts:             hsts(cfg.Common.Base),
		dateHeaderNames:  dateHeaders(cfg.Common.Alias),
	}
	g.router = newRouter(cfg.Upstreams)
	g.reference = sync.OnceValues(func() (map[string]referenceFile, error) {
		return makeReference(openapi.Deployment{Base: cfg.Common.Base, Alias: string(cfg.Common.Alias)})
	})
	if site := cfg.Upstreams["idsite"]; site != nil && cfg.Common.Shared != nil {
		idsite := idsiteapi.Client(rpc.Peer{Upstream: site, Signer: cfg.Common.Signer})
		g.domainCertificates = domaincertificate.New(idsite, cfg.Common.Shared, g.isDeploymentHost)
	}
	g.apiKeys = newAPIKeyCache(cfg.Keys, cfg.Feeds, g.Limiter, cfg.Common.Now)
	g.clients, _ = lru.New[[sha256.Size]byte, id.Ref](maxKeys) // fails only for a size below one
	g.middlewares = []middleware{
		g.checkFraming,   // no request smuggling
		g.requireTLS,     // HTTPS only
		g.routeRequest,   // the route of the path
		g.clientIP,       // the client's IP address
		g.authenticate,   // the API key, under /v1
		g.rateLimit,      // concurrency and rate limits, 429
		g.methodOverride, // takes _method and expand out of the query
		g.checkMethod,    // 404, 405
		g.parseExpand,    // the links to expand
		g.admitBody,      // the size of the body, and how many large ones there are, 413, 429
		g.readBody,       // the body
		g.queueBody,      // large bodies wait, the tenants take turns
		g.answer,         // the answer of the service, or a page of the gateway itself
		g.expand,         // replaces links of the answer by what they name
	}
	g.HTTP = rest.NewFiber(g.handleError)
	g.HTTP.Use(g.identify, rest.ObserveEdge("gateway", g.cfg.TrustedHops > 0), g.serve)
	g.setReadLimits(g.HTTP.Server())
	return g, nil
}

// serve runs the middlewares on a request.
func (g *Gateway) serve(c *fiber.Ctx) error {
	rc := g.requestContexts.Get().(*requestContext)
	*rc = requestContext{
		Ctx: c, ctx: c.UserContext(), cancel: func() {}, target: rc.target[:0], body: rc.body[:0],
		bodyLength: announcedLength(&c.Request().Header),
	}
	defer func() {
		rc.describeSpan()
		rc.cancel()
		g.skipBody(rc)
		if rc.inBodyQueue {
			g.bodyQueue.Release(rc.caller.Tenant)
		}
		g.releaseLimits(rc)
		if cap(rc.body) > maxUnqueued {
			rc.body = nil
		}
		*rc = requestContext{target: rc.target, body: rc.body}
		g.requestContexts.Put(rc)
	}()
	for _, handle := range g.middlewares {
		if err := handle(rc); err != nil {
			return err
		}
	}
	return nil
}

// describeSpan sets the attributes of the span of the request that only the gateway knows: the tenant and the client.
func (rc *requestContext) describeSpan() {
	span := trace.SpanFromContext(rc.ctx)
	if !span.IsRecording() {
		return
	}
	if !rc.caller.Tenant.IsZero() {
		span.SetAttributes(attribute.String("doorward.tenant", rc.caller.Tenant.String()))
	}
	if rc.address.IsValid() {
		span.SetAttributes(attribute.String("client.address", rc.address.String()))
	}
}

// answer forwards the request to the service that owns the path, or writes a page of the
// gateway itself.
func (g *Gateway) answer(rc *requestContext) error {
	if rc.route.page != nil {
		return rc.route.page(g, rc)
	}
	err := g.forward(rc)
	// not a path of hosted pages
	if err == nil && rc.preflight && rc.Response().StatusCode() == fiber.StatusUnauthorized {
		rc.Response().Reset()
		_, err = g.findCaller(rc)
		return g.refusals.count(err)
	}
	return err
}

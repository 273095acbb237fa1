package gateway

import (
	"bytes"
	"net"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// hostHeader is the header that tells the idsite service the header Host of the request of a
// browser. A client cannot set it: it is not in forwardedHeaders.
const hostHeader = "X-Doorward-Host"

// The routes that are not chosen by the path alone. No path of a client matches them, because
// requestpath.Normalize reduces repeated slashes to one.
const (
	sessionRoute = "//session/*" // paths under /v1, also unknown paths, with the session token of a hosted page
	siteRoute    = "//site/*"    // hosted pages on a custom domain, by the host
	issuerRoute  = "//issuer/*"  // what browsers see of an OpenID provider whose issuer has such a domain
)

// samlRoute is a public route that hosted pages also call with their session token.
const samlRoute = "/v1/applications/:id/saml/sso/idpRedirect"

// hostedRoute returns the route of a request. Where the host or the credential decides about the
// route, it also rewrites the target of the request: for the session of a hosted page, the Client
// API of an application and the hosted pages of a tenant. r is the route by the path alone.
func (g *Gateway) hostedRoute(rc *requestContext, header *fasthttp.RequestHeader, r *route) *route {
	host := hostname(header.Host())
	if label, ok := g.clientAPILabelOfHost(host); ok {
		rc.forwardedHost = strings.ToLower(string(header.Host()))
		prependPath(rc, "/client/"+label)
		return g.router.match(rc.target)
	}
	if rc.managementAPI {
		if r != nil && r.access != keyAccess && r.pattern != samlRoute {
			return r
		}
		if rc.preflight = isPreflight(header); !rc.preflight && !hasSessionToken(header) {
			return r
		}
		prependPath(rc, "/session")
		return g.router.hostRoutes[sessionRoute]
	}
	// Every other host is taken for the custom domain of a tenant. The paths of routes.go
	// are the same on every host, but for those of OpenID providers that browsers open; only the
	// other paths are hosted pages.
	switch {
	case !g.isCustomDomain(host):
		return r
	case r == nil || r.pattern == "/":
		rc.forwardedHost = host
		prependPath(rc, "/site")
		return g.router.hostRoutes[siteRoute]
	case r.access == hostedAccess && strings.HasPrefix(r.pattern, "/oidc/"):
		return g.router.hostRoutes[issuerRoute]
	}
	return r
}

// redirectToBase redirects a browser to the same path at the base URL, which has its cookies: the session and the
// logins in progress of all issuers (docs/interface/openid.md#provider). A form goes along (307; RFC 9110, section
// 15.4.8).
func (g *Gateway) redirectToBase(rc *requestContext) error {
	rc.Set(fiber.HeaderCacheControl, "no-store")
	rc.Set(fiber.HeaderReferrerPolicy, "no-referrer")
	location := g.cfg.Common.Base.Host() + string(rc.target[:rc.pathLength])
	if len(rc.query) > 0 {
		location += "?" + string(rc.query)
	}
	rc.Set(fiber.HeaderLocation, location)
	g.setHSTS(rc)
	rc.Status(fiber.StatusTemporaryRedirect)
	return nil
}

// clientAPILabelOfHost returns the label of the application whose Client API has a host.
func (g *Gateway) clientAPILabelOfHost(host string) (label string, ok bool) {
	label, below := strings.CutSuffix(host, "."+g.cfg.ClientSuffix)
	return label, below && g.cfg.ClientSuffix != "" && label != "" && !strings.Contains(label, ".")
}

// hostname returns a host in lower case, without its port.
func hostname(host []byte) string {
	name := strings.ToLower(string(host))
	if without, _, err := net.SplitHostPort(name); err == nil {
		name = without
	}
	return strings.Trim(name, "[].")
}

// isDeploymentHost reports whether a host is that of the base URL or of a Client API. Such hosts
// have the certificate of the deployment (package domaincertificate).
func (g *Gateway) isDeploymentHost(host string) bool {
	return host == g.hostname || g.cfg.ClientSuffix != "" && strings.HasSuffix("."+host, "."+g.cfg.ClientSuffix)
}

// isCustomDomain reports whether a host is a name other than that of the base URL.
func (g *Gateway) isCustomDomain(host string) bool {
	return host != g.hostname && host != "localhost" && net.ParseIP(host) == nil
}

// prependPath puts a path in front of the target. Such a request requires no API key: the idsite
// service verifies its token.
func prependPath(rc *requestContext, prefix string) {
	rc.target = append([]byte(prefix), rc.target...)
	rc.pathLength, rc.managementAPI = len(rc.target), false
}

// hasSessionToken reports whether a request has the session token of a hosted page.
func hasSessionToken(header *fasthttp.RequestHeader) bool {
	sent := header.PeekAll(fiber.HeaderAuthorization)
	return len(sent) == 1 && bytes.HasPrefix(sent[0], []byte("Bearer "))
}

// isPreflight reports whether a request is a CORS preflight, which has no credentials (Fetch
// standard, section 4.8).
func isPreflight(header *fasthttp.RequestHeader) bool {
	return string(header.Method()) == fiber.MethodOptions && len(header.Peek(fiber.HeaderOrigin)) > 0 &&
		len(header.Peek(fiber.HeaderAccessControlRequestMethod)) > 0 && len(header.Peek(fiber.HeaderAuthorization)) == 0
}

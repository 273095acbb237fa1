package gateway

import (
	"bytes"
	"net"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// hostHeader names, to the idsite service, the host that a browser asked for. What a
// client sends under this name is dropped.
const hostHeader = "X-Doorward-Host"

// The routes that are chosen by more than the path. No client can spell them:
// doubled slashes count as one.
const (
	sessionRoute = "//session/*" // management paths, also unknown ones, with a session token of a hosted page
	siteRoute    = "//site/*"    // hosted pages, by the host
)

// samlRoute is public, and hosted pages call it with their session too.
const samlRoute = "/v1/applications/:id/saml/sso/idpRedirect"

// hostedRoute finds the route of a request whose host or credential decides where
// it goes, and rewrites its target: a session of a hosted page, the Client API of
// an application, the hosted pages of a tenant. r is the route by the path alone.
func (g *Gateway) hostedRoute(x *exchange, header *fasthttp.RequestHeader, r *route) *route {
	host := hostname(header.Host())
	if label, ok := g.clientHost(host); ok {
		x.host = strings.ToLower(string(header.Host()))
		rewrite(x, "/client/"+label)
		return g.router.match(x.target)
	}
	if x.managed {
		if r != nil && r.access != byKey && r.pattern != samlRoute || !isSession(header) {
			return r
		}
		rewrite(x, "/session")
		return g.router.hostRoutes[sessionRoute]
	}
	// A tenant's own domain is any other name. Only its pages are there: the paths
	// of the table are the same at every host.
	if g.otherName(host) && (r == nil || r.pattern == "/") {
		x.host = host
		rewrite(x, "/site")
		return g.router.hostRoutes[siteRoute]
	}
	return r
}

// clientHost returns the label of the application whose Client API has a host.
func (g *Gateway) clientHost(host string) (label string, ok bool) {
	label, below := strings.CutSuffix(host, "."+g.cfg.ClientSuffix)
	return label, below && g.cfg.ClientSuffix != "" && label != "" && !strings.Contains(label, ".")
}

// hostname is a host in lower case, without its port.
func hostname(host []byte) string {
	name := strings.ToLower(string(host))
	if without, _, err := net.SplitHostPort(name); err == nil {
		name = without
	}
	return strings.Trim(name, "[].")
}

// isOwnName reports whether a host is that of the base URL or of a Client API.
func (g *Gateway) isOwnName(host string) bool {
	return host == g.hostname || g.cfg.ClientSuffix != "" && strings.HasSuffix("."+host, "."+g.cfg.ClientSuffix)
}

// otherName reports whether a host is a name other than that of the base URL.
func (g *Gateway) otherName(host string) bool {
	return host != g.hostname && host != "localhost" && net.ParseIP(host) == nil
}

// rewrite puts a path in front of the target. What is routed so needs no key.
func rewrite(x *exchange, prefix string) {
	x.target = append([]byte(prefix), x.target...)
	x.path, x.managed = len(x.target), false
}

// isSession reports whether a request is that of a hosted page: with a session
// token, or the preflight of one (Fetch standard, section 4.8).
func isSession(header *fasthttp.RequestHeader) bool {
	if sent := header.PeekAll(fiber.HeaderAuthorization); len(sent) == 1 && bytes.HasPrefix(sent[0], []byte("Bearer ")) {
		return true
	}
	return string(header.Method()) == fiber.MethodOptions && len(header.Peek(fiber.HeaderAccessControlRequestMethod)) > 0
}

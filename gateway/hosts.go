package gateway

import (
	"bytes"
	"net"
	"strings"

	"github.com/gofiber/fiber/v2"
)

// The routes that are not chosen by the path. No client can spell them: doubled
// slashes count as one.
const (
	siteRoute    = "//site/*"    // the hosted pages of a tenant, by the host of its ID site
	sessionRoute = "//session/*" // the calls of hosted pages to the management API, by their Bearer token
)

// hostHeader tells the idsite service which host a browser asked for.
const hostHeader = "X-Doorward-Host"

// routeByHost finds the route of a request to another host than that of the base
// URL, and of one of a hosted page. It puts the service's path in front of the
// target.
func (g *Gateway) routeByHost(x *exchange) {
	host := hostname(x.Request().Header.Host())
	label, client := under(host, g.cfg.ClientAPISuffix)
	_, site := under(host, siteSuffix(g.cfg.IDSiteSuffix))
	session := g.router.unspelled[sessionRoute]
	switch {
	case client:
		prepend(x, "/client/"+label)
		x.route = g.router.match(x.target)
	case site:
		prepend(x, "/site")
		x.route, x.host = g.router.unspelled[siteRoute], host
	case session != nil && g.cfg.IDSiteSuffix != "" && x.managed && x.route != nil && x.route.access == byKey && fromHostedPage(x):
		prepend(x, "/session")
		x.route = session
	}
}

// prepend puts a path in front of the target. What is routed so needs no key.
func prepend(x *exchange, path string) {
	x.target = append([]byte(path), x.target...)
	x.path, x.managed = len(x.target), false
}

// fromHostedPage reports whether a request carries the token of a hosted login, or
// asks whether one may (docs/interface/id-site.md#browser-transport).
func fromHostedPage(x *exchange) bool {
	h := &x.Request().Header
	if string(h.Method()) == fiber.MethodOptions {
		return len(h.Peek(fiber.HeaderOrigin)) > 0 && len(h.Peek(fiber.HeaderAccessControlRequestMethod)) > 0
	}
	scheme, _, _ := bytes.Cut(h.Peek(fiber.HeaderAuthorization), []byte{' '})
	return bytes.EqualFold(scheme, []byte("Bearer"))
}

// hostname is a host without its port, in lower case.
func hostname(host []byte) string {
	name := strings.ToLower(string(host))
	if without, _, err := net.SplitHostPort(name); err == nil {
		name = without
	}
	return strings.TrimSuffix(name, ".")
}

// siteSuffix is the domain under which tenants have their hosted pages.
func siteSuffix(suffix string) string {
	if suffix == "" {
		return ""
	}
	return "id." + suffix
}

// under returns what stands before a domain: label for label.suffix.
func under(host, suffix string) (label string, ok bool) {
	if suffix == "" {
		return "", false
	}
	label, ok = strings.CutSuffix(host, "."+suffix)
	return label, ok && label != ""
}

package gateway

import (
	"bytes"
	"net"
	"net/netip"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// hostHeader tells the idsite service which host a browser asked for. What a
// client sends under this name is dropped.
const hostHeader = "X-Doorward-Host"

// Where requests of browsers go that are told apart by more than their path. The
// lines of the table with these paths lead to the idsite service.
const (
	sessionPath = "/session" // management paths with a session token of a hosted page
	clientPath  = "/client/" // Client APIs, by the label in the host
	sitePath    = "/site"    // hosted pages, by the host
)

// hostedRoute finds the route of a request whose host or credential tells where it
// goes, and rewrites its target: a session of a hosted page, the Client API of an
// application, the hosted pages of a tenant. r is the route by the path alone.
func (g *Gateway) hostedRoute(x *exchange, r *route) *route {
	header := &x.Request().Header
	if x.managed {
		if !isSession(header) {
			return r
		}
		return g.rewrite(x, sessionPath)
	}
	host := strings.ToLower(string(header.Host()))
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if label, below := strings.CutSuffix(host, "."+g.cfg.ClientSuffix); below && !strings.Contains(label, ".") {
		x.host = strings.ToLower(string(header.Host()))
		return g.rewrite(x, clientPath+label)
	}
	// A tenant's own domain is any other host. Only its pages are there: the paths
	// of the table are the same at every host.
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if isName := err != nil; isName && host != g.cfg.Common.Base.Hostname() && (r == nil || bytes.Equal(x.target, []byte("/"))) {
		x.host = host
		return g.rewrite(x, sitePath)
	}
	return r
}

func (g *Gateway) rewrite(x *exchange, prefix string) *route {
	x.target = append([]byte(prefix), x.target...)
	x.path = len(x.target)
	x.managed = false
	return g.router.match(x.target)
}

// isSession reports whether a request is that of a hosted page: with a session
// token, or the preflight of one (Fetch standard, section 4.8).
func isSession(header *fasthttp.RequestHeader) bool {
	if sent := header.PeekAll(fiber.HeaderAuthorization); len(sent) == 1 && bytes.HasPrefix(sent[0], []byte("Bearer ")) {
		return true
	}
	return string(header.Method()) == fiber.MethodOptions && len(header.Peek(fiber.HeaderAccessControlRequestMethod)) > 0
}

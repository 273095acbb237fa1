package gateway

import (
	"net"
	"net/netip"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
)

// clientIP is the middleware that finds the IP address of the client. Routes with the access
// private do not exist for clients outside a private network.
func (g *Gateway) clientIP(rc *requestContext) error {
	rc.address = g.clientAddress(rc.Ctx)
	if rc.route != nil && rc.route.access == privateAccess && !g.onPrivateNetwork(rc) {
		rc.route = nil
	}
	return nil
}

// onPrivateNetwork reports whether the client is on this machine or on a private
// network. It is false for a request that came through a proxy while no proxy is trusted: the
// address of its client is unknown.
func (g *Gateway) onPrivateNetwork(rc *requestContext) bool {
	if g.cfg.TrustedHops == 0 {
		for _, name := range []string{"x-forwarded-for", "forwarded", "via"} {
			if _, proxied := header(rc.Request().Header.RawHeaders(), name); proxied {
				return false
			}
		}
	}
	return rc.address.IsLoopback() || rc.address.IsPrivate()
}

// clientAddress returns the entry of X-Forwarded-For, or of Forwarded, that the first trusted proxy
// added, counted from the right. Each trusted proxy adds the address of its peer; entries further
// left may be forged by the client. Where there are too few entries, the address is that of the
// connection.
func (g *Gateway) clientAddress(c *fiber.Ctx) netip.Addr {
	peer := netip.Addr{}
	if tcp, ok := c.Context().RemoteAddr().(*net.TCPAddr); ok {
		peer = tcp.AddrPort().Addr().Unmap()
	}
	if g.cfg.TrustedHops == 0 {
		return peer
	}
	entries := forwardedEntries(c, "x-forwarded-for", "for")
	if from := len(entries) - g.cfg.TrustedHops; from >= 0 && len(entries) > 0 {
		if address, ok := parseAddress(entries[from]); ok {
			return address
		}
	}
	return peer
}

// userAddress returns the IP address that the services get as the caller's address: that of the end
// user. A client with an API key names it in a header: the key allows it more than that anyway. Where
// it does not, the address is not valid: the client's own is that of a server, which all its users
// share. The header of other clients is ignored.
func (g *Gateway) userAddress(rc *requestContext) (netip.Addr, error) {
	if rc.caller.Tenant.IsZero() {
		return rc.address, nil
	}
	named := rc.Request().Header.PeekAll(g.userHeader)
	if len(named) == 0 {
		return netip.Addr{}, nil
	}
	address, ok := parseAddress(strings.TrimSpace(string(named[0])))
	if !ok || len(named) > 1 {
		return netip.Addr{}, apierr.BadRequest.Because("the header %s must hold one IP address, that of the end user",
			g.userHeader)
	}
	return address, nil
}

// parseAddress parses an IP address, with or without a port, an IPv6 address also in brackets.
func parseAddress(text string) (netip.Addr, bool) {
	if inner, ok := strings.CutPrefix(text, "["); ok && strings.HasSuffix(inner, "]") {
		text = strings.TrimSuffix(inner, "]")
	}
	if address, err := netip.ParseAddr(text); err == nil {
		return address.Unmap().WithZone(""), true
	}
	address, err := netip.ParseAddrPort(text)
	return address.Addr().Unmap().WithZone(""), err == nil
}

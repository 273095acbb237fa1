package gateway

import (
	"net"
	"net/netip"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
)

// clientIP finds the address of the client, and hides what is for the private
// network from all others.
func (g *Gateway) clientIP(x *exchange) error {
	x.address = g.clientAddress(x.Ctx)
	if x.route != nil && x.route.access == byNetwork && !g.onPrivateNetwork(x) {
		x.route = nil
	}
	return nil
}

// onPrivateNetwork reports whether the client is on this machine or on a private
// network. A request that a proxy passed on says nothing of its client while no
// hops are trusted.
func (g *Gateway) onPrivateNetwork(x *exchange) bool {
	if g.cfg.TrustedHops == 0 {
		for _, name := range []string{"x-forwarded-for", "forwarded", "via"} {
			if _, proxied := header(x.Request().Header.RawHeaders(), name); proxied {
				return false
			}
		}
	}
	return x.address.IsLoopback() || x.address.IsPrivate()
}

// clientAddress counts the trusted proxies from the right of X-Forwarded-For:
// each has added the address it was called from, and what stands further left
// was written by the client. A request that skipped a proxy is known by its peer.
func (g *Gateway) clientAddress(c *fiber.Ctx) netip.Addr {
	peer := netip.Addr{}
	if tcp, ok := c.Context().RemoteAddr().(*net.TCPAddr); ok {
		peer = tcp.AddrPort().Addr().Unmap()
	}
	if g.cfg.TrustedHops == 0 {
		return peer
	}
	forwarded, _ := header(c.Request().Header.RawHeaders(), "x-forwarded-for")
	entries := strings.Split(forwarded, ",")
	if from := len(entries) - g.cfg.TrustedHops; from >= 0 {
		if address, ok := parseAddress(strings.TrimSpace(entries[from])); ok {
			return address
		}
	}
	return peer
}

// userAddress returns the address that the services are given. A client with an
// API key may name the address of the end user that it asks for: it can do more
// to its tenant's accounts than that. From other clients the header is ignored.
func (g *Gateway) userAddress(x *exchange) (netip.Addr, error) {
	if x.caller.Tenant.IsZero() {
		return x.address, nil
	}
	named := x.Request().Header.PeekAll(g.userHeader)
	if len(named) == 0 {
		return x.address, nil
	}
	address, ok := parseAddress(strings.TrimSpace(string(named[0])))
	if !ok || len(named) > 1 {
		return netip.Addr{}, apierr.BadRequest.Because("the header %s must hold one IP address, that of the end user", g.userHeader)
	}
	return address, nil
}

// parseAddress reads an address that a proxy wrote, some with a port.
func parseAddress(text string) (netip.Addr, bool) {
	if address, err := netip.ParseAddr(text); err == nil {
		return address.Unmap().WithZone(""), true
	}
	address, err := netip.ParseAddrPort(text)
	return address.Addr().Unmap().WithZone(""), err == nil
}

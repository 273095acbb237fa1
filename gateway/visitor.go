package gateway

import (
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
)

// visitor finds the address of the client, and hides what is for the private
// network from everybody else.
func (g *Gateway) visitor(x *exchange) error {
	x.address = g.clientAddress(x.Ctx)
	if x.route != nil && x.route.access == byNetwork && !x.address.IsLoopback() && !x.address.IsPrivate() {
		x.route = nil
	}
	return nil
}

// clientAddress counts the trusted proxies from the right of X-Forwarded-For:
// each has added whom it saw, and what stands further left was written by the
// client. A request that skipped a proxy is known by its peer.
func (g *Gateway) clientAddress(c *fiber.Ctx) netip.Addr {
	peer := netip.Addr{}
	if tcp, ok := c.Context().RemoteAddr().(*net.TCPAddr); ok {
		peer = tcp.AddrPort().Addr().Unmap()
	}
	if g.cfg.TrustedHops == 0 {
		return peer
	}
	hops := g.cfg.TrustedHops
	headers := c.Request().Header.PeekAll(fiber.HeaderXForwardedFor)
	for i := len(headers) - 1; i >= 0; i-- {
		entries := strings.Split(string(headers[i]), ",")
		if hops > len(entries) {
			hops -= len(entries)
			continue
		}
		if address, ok := parseAddress(strings.TrimSpace(entries[len(entries)-hops])); ok {
			return address
		}
		break
	}
	return peer
}

// userAddress gives where the services are told that the request comes from. A
// client with an API key may tell the address of the end user that it asks for:
// it can do more to its tenant's accounts than that. From anybody else the
// header means nothing.
func (g *Gateway) userAddress(x *exchange) (netip.Addr, error) {
	if x.caller.Tenant.IsZero() {
		return x.address, nil
	}
	told := x.Request().Header.PeekAll(g.userHeader)
	if len(told) == 0 {
		return x.address, nil
	}
	address, ok := parseAddress(strings.TrimSpace(string(told[0])))
	if !ok || len(told) > 1 {
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

// limit counts the request as in flight, of its tenant or, where nobody was
// asked for a key, of its address.
func (g *Gateway) limit(x *exchange) error {
	who, most, reason := tenantSubject(x.caller.Tenant), g.cfg.TenantLimit, "tenant_limit"
	if x.caller.Tenant.IsZero() {
		who, most, reason = addressSubject(anAddress, x.address), g.cfg.AddressLimit, "address_limit"
	}
	if !g.Limits.enter(x.UserContext(), who, most) {
		return g.refused.as(reason, tooMany)
	}
	x.leave, x.counted = who, true
	return nil
}

// tooMany is what a client hears that has too many requests in flight.
var tooMany = apierr.TooMany.Because("too many requests are in flight; repeat the request when others have ended").After(time.Second)

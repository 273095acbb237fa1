package gateway

import (
	"bytes"
	"net"
	"net/netip"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
)

// visitor finds the address of the client, and hides what is for the private
// network from everybody else.
func (g *Gateway) clientIP(x *exchange) error {
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
	told, _ := header(c.Request().Header.RawHeaders(), "x-forwarded-for")
	entries := strings.Split(told, ",")
	if from := len(entries) - g.cfg.TrustedHops; from >= 0 {
		if address, ok := parseAddress(strings.TrimSpace(entries[from])); ok {
			return address
		}
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

// limit counts the request for its tenant, apart for what lets an end user in,
// or, where nobody was asked for a key, for its address and for the
// application whose Client API it is.
func (g *Gateway) limit(x *exchange) error {
	switch label, client := clientLabel(x.target); {
	case x.caller.Tenant.IsZero() && client:
		return g.enter(x, addressSubject(addressLimit, x.address), textSubject(clientAPILimit, label))
	case x.caller.Tenant.IsZero():
		return g.enter(x, addressSubject(addressLimit, x.address))
	case x.route != nil && x.route.users:
		return g.enter(x, tenantSubject(userLimit, x.caller.Tenant))
	}
	return g.enter(x, tenantSubject(tenantLimit, x.caller.Tenant))
}

func (g *Gateway) enter(x *exchange, all ...subject) error {
	for _, who := range all {
		if limit := g.Limits.enter(x.UserContext(), who); limit != nil {
			return g.refused.because(limit)
		}
		x.held[x.holds] = who
		x.holds++
	}
	return nil
}

// clientLabel gives the label of the application whose Client API a path belongs to.
func clientLabel(path []byte) (label []byte, ok bool) {
	rest, ok := bytes.CutPrefix(path, []byte("/client/"))
	label, _, _ = bytes.Cut(rest, []byte{'/'})
	return bytes.ToLower(label), ok
}

// Package outbound makes connections to addresses that tenants choose: mail servers, providers,
// repositories. It prevents server-side request forgery (SSRF): such an address must not be in the
// private network of the deployment.
package outbound

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
)

// ErrForbidden is the failure of a connection to an address that is not public.
var ErrForbidden = errors.New("the address is not public")

// Guard decides which addresses are allowed: public addresses, and the networks that the operator
// allows. The zero value allows public addresses only.
type Guard struct {
	allowed []netip.Prefix
	roots   *x509.CertPool // trusted CA certificates; nil: those of the system
}

// ParseGuard returns a guard with further allowed networks, each an address or a prefix such as
// 10.1.0.0/16.
func ParseGuard(networks []string) (Guard, error) {
	var g Guard
	for _, text := range networks {
		text = strings.TrimSpace(text)
		if address, err := netip.ParseAddr(text); err == nil {
			g.allowed = append(g.allowed, netip.PrefixFrom(address, address.BitLen()))
			continue
		}
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return g, fmt.Errorf("%q is not a network such as 10.1.0.0/16", text)
		}
		g.allowed = append(g.allowed, prefix.Masked())
	}
	return g, nil
}

// Dialer returns a dialer that connects to allowed addresses only. It checks the address of each
// connection after the name was resolved, which prevents DNS rebinding.
func (g Guard) Dialer() *net.Dialer {
	return &net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil || !g.Allows(at.Addr()) {
			return ErrForbidden
		}
		return nil
	}}
}

// Allows reports whether an address is allowed.
func (g Guard) Allows(address netip.Addr) bool {
	address = address.Unmap().WithZone("")
	return isPublic(address) || contains(g.allowed, address)
}

func isPublic(address netip.Addr) bool {
	return address.IsGlobalUnicast() && !address.IsPrivate() && !contains(specialPurpose, address)
}

func contains(networks []netip.Prefix, address netip.Addr) bool {
	for _, network := range networks {
		if network.Contains(address) {
			return true
		}
	}
	return false
}

// specialPurpose are networks that are not public: those of the IANA registries of special-purpose
// addresses, IPv6 networks that embed an IPv4 address, which may be private, and the address of the
// metadata service of a cloud.
var specialPurpose = prefixes(
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24",
	"203.0.113.0/24", "240.0.0.0/4", "168.63.129.16/32",
	"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
	"5f00::/16", "fec0::/10",
)

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}

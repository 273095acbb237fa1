package outbound_test

import (
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/doorward/doorward/pkg/outbound"
)

func TestOnlyPublicAddressesAreReached(t *testing.T) {
	for text, want := range map[string]bool{
		"8.8.8.8": true, "1.1.1.1": true, "172.15.0.1": true, "172.32.0.1": true, "2606:4700:4700::1111": true, "::ffff:8.8.8.8": true,

		"127.0.0.1": false, "127.8.9.10": false, "::1": false, "::ffff:127.0.0.1": false, "0.0.0.0": false, "::": false, "0.1.2.3": false,
		"10.0.0.1": false, "172.16.0.1": false, "172.31.255.255": false, "192.168.1.1": false, "fd00::1": false, "::ffff:10.0.0.1": false,
		"169.254.169.254": false, "::ffff:169.254.169.254": false, "fe80::1": false, "fe80::1%lo": false, "fd00:ec2::254": false,
		"100.64.0.1": false, "100.100.100.200": false, "192.0.0.192": false, "168.63.129.16": false,
		"224.0.0.1": false, "255.255.255.255": false, "240.0.0.1": false, "ff02::1": false,
		"64:ff9b::7f00:1": false, "2002:7f00:1::": false, "::7f00:1": false, "2001::1": false, "fec0::1": false, "198.18.0.1": false,
		"192.0.2.1": false, "192.88.99.1": false, "198.51.100.1": false, "203.0.113.1": false, "64:ff9b:1::1": false, "100::1": false,
		"2001:db8::1": false, "3fff::1": false, "5f00::1": false, "2002:7f00:1::%lo": false,
	} {
		if got := (outbound.Guard{}).Allows(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s may be reached: %v, want %v", text, got, want)
		}
	}
}

func TestTheOperatorMayAllowNetworks(t *testing.T) {
	g, err := outbound.ParseGuard([]string{"10.1.0.0/16", " 192.168.7.7", "fd00:1::/32"})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"10.1.2.3": true, "::ffff:10.1.2.3": true, "192.168.7.7": true, "fd00:1::5": true, "8.8.8.8": true,
		"10.2.0.1": false, "192.168.7.8": false, "fd00:2::5": false, "127.0.0.1": false,
	} {
		if got := g.Allows(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s may be reached: %v, want %v", text, got, want)
		}
	}
	for _, text := range []string{"", "ten", "10.0.0.0/33", "localhost"} {
		if _, err := outbound.ParseGuard([]string{text}); err == nil {
			t.Errorf("%q is taken for a network", text)
		}
	}
}

func TestATransportUsesNoProxyAndNoOldTLS(t *testing.T) {
	transport := outbound.Guard{}.Transport()
	if transport.Proxy != nil {
		t.Error("a proxy would connect to addresses that nobody looks at")
	}
	if v := transport.TLSClientConfig.MinVersion; v < tls.VersionTLS12 {
		t.Errorf("the lowest version of TLS is %x", v)
	}
}

// The name is public in its looks and private in what it resolves to: what
// counts is the address at the moment of the connection.
func TestANameIsJudgedByTheAddressThatIsDialed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	for _, host := range []string{"localhost", "127.0.0.1"} {
		conn, err := (outbound.Guard{}).Dialer().DialContext(t.Context(), "tcp", net.JoinHostPort(host, port))
		if !errors.Is(err, outbound.ErrForbidden) {
			t.Errorf("%s was reached: %v, %v", host, conn, err)
		}
	}
	g, err := outbound.ParseGuard([]string{"127.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := g.Dialer().DialContext(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		t.Fatalf("an allowed network was refused: %v", err)
	}
	_ = conn.Close()
}

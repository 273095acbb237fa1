package outbound

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Config is the configuration of connections to addresses that tenants choose.
type Config struct {
	PrivateNetworks []string `env:"DOORWARD_OUTBOUND_PRIVATE_NETWORKS,DOORWARD_SMTP_PRIVATE_NETWORKS"`
	CA              string   `env:"DOORWARD_OUTBOUND_CA"`
}

// Help has the help texts that are longer than a line.
func (Config) Help() map[string]string {
	return map[string]string{
		"DOORWARD_OUTBOUND_PRIVATE_NETWORKS": "networks besides the public ones in which providers, mail servers " +
			"and git repositories may be, comma separated, such as 10.1.0.0/16",
		"DOORWARD_OUTBOUND_CA": "CA certificates in PEM to verify such servers with, besides those of the system; " +
			"mostly given as DOORWARD_OUTBOUND_CA_FILE",
	}
}

// Open validates the configuration and returns its guard.
func (c Config) Open() (Guard, error) {
	g, err := ParseGuard(c.PrivateNetworks)
	if err != nil {
		return g, fmt.Errorf("DOORWARD_OUTBOUND_PRIVATE_NETWORKS, also called DOORWARD_SMTP_PRIVATE_NETWORKS: %w", err)
	}
	if c.CA != "" {
		if g, err = g.Trusting(c.CA); err != nil {
			return g, fmt.Errorf("DOORWARD_OUTBOUND_CA: %w", err)
		}
	}
	return g, nil
}

// Trusting returns a guard that trusts further CA certificates in PEM, besides those of the system.
func (g Guard) Trusting(authorities string) (Guard, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM([]byte(authorities)) {
		return g, errors.New("the text has no certificate in PEM; name a file with DOORWARD_OUTBOUND_CA_FILE")
	}
	g.roots = roots
	return g, nil
}

// TLS returns the TLS configuration for a server with that name.
func (g Guard) TLS(serverName string) *tls.Config {
	return &tls.Config{ServerName: serverName, MinVersion: tls.VersionTLS12, RootCAs: g.roots}
}

// Transport returns an HTTP transport that connects to allowed addresses only, without a proxy. The
// TLS handshake has the timeout connectTimeout.
func (g Guard) Transport() *http.Transport {
	return &http.Transport{
		DialContext: g.Dialer().DialContext, TLSClientConfig: g.TLS(""), ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: connectTimeout,
		MaxIdleConnsPerHost: 4, MaxIdleConns: 256, IdleConnTimeout: 30 * time.Second,
	}
}

const connectTimeout = 10 * time.Second

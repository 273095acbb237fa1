package harness

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"time"

	"github.com/doorward/doorward/pkg/certificate/certtest"
)

// Authority signs the certificates of servers on this machine. Its key lives in
// memory only.
type Authority struct {
	// CAFile is the authority's certificate in PEM.
	CAFile string

	pair certtest.Pair
}

// NewAuthority makes an authority and writes its certificate into the folder.
func NewAuthority(dir string) (*Authority, error) {
	now := time.Now()
	a := &Authority{filepath.Join(dir, "ca.pem"), certtest.SelfSigned(now.Add(-time.Hour), now.AddDate(0, 0, 30), "ca.doorward.test")}
	return a, os.WriteFile(a.CAFile, []byte(a.pair.Chain()), 0o600)
}

// TLS is the configuration of a client that trusts the authority and no other.
func (a *Authority) TLS() *tls.Config {
	return &tls.Config{RootCAs: a.pair.Roots(), MinVersion: tls.VersionTLS12}
}

// Issue writes a certificate for names and addresses of this machine, and its
// private key, into the folder.
func (a *Authority) Issue(dir string, hosts ...string) (cert, key string, err error) {
	return a.IssueUntil(a.pair.NotAfter, dir, hosts...)
}

// IssueUntil is Issue for a certificate that expires at a time.
func (a *Authority) IssueUntil(expires time.Time, dir string, hosts ...string) (cert, key string, err error) {
	cert, key = filepath.Join(dir, "server.pem"), filepath.Join(dir, "server.key")
	return cert, key, a.pair.Issue(time.Now().Add(-time.Hour), expires, hosts...).Write(cert, key)
}

// GatewayHosts are the names that a gateway's certificate is for: localhost, hosted
// pages and Client APIs.
var GatewayHosts = []string{"localhost", "*.localhost", "*.id.localhost", "*.apps.localhost", "127.0.0.1", "::1"}

package mailtest

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"time"

	"github.com/doorward/doorward/pkg/certificate/certtest"
)

// Trust makes a certificate for a server on loopback that this process trusts,
// good for an hour around now. It must come before the process first looks at a certificate: package
// crypto/x509 reads the trusted ones once.
func Trust(dir string, now time.Time) (*tls.Config, error) {
	certificate := certtest.SelfSigned(now.Add(-time.Hour), now.Add(time.Hour), "localhost", "127.0.0.1")
	file := filepath.Join(dir, "trusted.pem")
	if err := os.WriteFile(file, []byte(certificate.Chain()), 0o600); err != nil {
		return nil, err
	}
	return &tls.Config{Certificates: []tls.Certificate{certificate.TLS()}}, os.Setenv("SSL_CERT_FILE", file)
}

package secure

import (
	"crypto/x509"
	"errors"
)

// Authorities parses CA certificates in PEM: the RootCAs of a tls.Config. For an empty text it
// returns nil, which stands for the CA certificates of the system.
func Authorities(text string) (*x509.CertPool, error) {
	if text == "" {
		return nil, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(text)) {
		return nil, errors.New("it holds no certificate in PEM")
	}
	return pool, nil
}

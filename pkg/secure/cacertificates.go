package secure

import (
	"crypto/x509"
	"errors"
)

// Authorities reads the certificates in PEM of the authorities whose signature a
// server's certificate needs. Of an empty text it returns nil, which stands for
// those of the system.
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
